"""Which keys of slurm.conf a release knows, asked of two of them: 22.05 of this host, and 24.11.

Slurm's commands read slurm.conf first, name every key that they do not know, and end before they ask slurmctld.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from generator import catalog
from generator.plan.slurm_conf import slurm_release
from tests.bed.machines.overlay import PATH
from tests.bed.machines.roots import needs
from tests.bed.slurm.newer import unpacked_root

NEWER = 'mount --bind "$1" "$2/mnt" && exec chroot "$2" "${@:3}"'
"""In a mount namespace of its own."""
REFUSED = {"AccountingStoreJobComment", "FastSchedule", "FrontendName", "SallocDefaultCommand"}
"""Removed, but still read, only to end with a message of their own; FrontendName unless Slurm is built for front ends.

Source: https://github.com/SchedMD/slurm/blob/slurm-25.11/src/common/read_config.c
"""


def answers(command: list[str]) -> str:
    done = subprocess.run(
        command, env={"PATH": PATH, "SLURM_CONF": "/mnt/slurm.conf"}, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_the_catalogue_says_which_keys_a_release_knows(release: str, tmp_path: Path) -> None:
    needs("unshare", "chroot", "sinfo", "mmdebstrap")
    facts = catalog.slurm_conf()
    since, until = facts["keys_by_version"]["since"], facts["keys_by_version"]["until"]
    known = {key for key, bound in since.items() if slurm_release(bound) <= slurm_release(release)}
    known |= {key for key, bound in until.items() if slurm_release(release) <= slurm_release(bound)}
    known |= set(facts["defunct_keys"]["since"]) | set(facts["lists"]["keys"]) - set(since)
    asked = sorted({*since, *until, *known} - REFUSED)
    lines = ["ClusterName=x", "SlurmctldHost=localhost(127.0.0.1)", "SlurmctldPort=1", "NodeName=n1", "Surely=nobody"]
    (tmp_path / "slurm.conf").write_text("\n".join([*lines, *(f"{key}=1" for key in asked), ""]))
    root = unpacked_root() if release == "24.11" else Path("/")
    inside = [*("unshare", "--mount", "bash", "-c", NEWER, "bash"), str(tmp_path), str(root)]
    assert f" {release}." in answers([*inside, "slurmctld", "-V"])
    unknown = set(re.findall(r"unrecognized key: (\w+)", answers([*inside, "sinfo"])))
    assert unknown == {"Surely", *asked} - known
