"""Which keys of slurm.conf a release knows, asked of two of them: 22.05 of this host, and 24.11.

Slurm's commands read slurm.conf first, name every key that they do not know, and end before they ask slurmctld.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from generator import catalog
from generator.definition.model.policy import FairShare, Policy, Qos
from generator.definition.model.slurm import NewDatabase, Partition, Slurm
from generator.plan.slurm_conf import slurm_conf_lines, slurm_release
from tests.bed.machines.overlay import PATH
from tests.bed.machines.roots import needs
from tests.bed.slurm.newer import unpacked_root

NEWER = 'mount --bind "$1" "$2/mnt" && exec chroot "$2" "${@:3}"'
"""In a mount namespace of its own."""
REFUSED = {"AccountingStoreJobComment", "FastSchedule", "FrontendName", "SallocDefaultCommand"}
"""Removed, but still read, only to end with a message of their own; FrontendName unless Slurm is built for front ends.

Source: https://github.com/SchedMD/slurm/blob/slurm-25.11/src/common/read_config.c
"""

EVERYTHING = Slurm(
    partitions=[Partition(name="gpu", max_nodes=1)],
    accounting=NewDatabase(type="new"),
    idle_timeout_s=600,
    policy=Policy(
        qos=[Qos(name="cap", max_tres_per_user="license/ansys=2")],
        fair_share=FairShare(),
        preemption="qos",
        max_array_size=11,
        max_job_count=100,
    ),
)
"""Everything with which we add lines to slurm.conf."""


def answers(command: list[str]) -> str:
    done = subprocess.run(
        command, env={"PATH": PATH, "SLURM_CONF": "/mnt/slurm.conf"}, capture_output=True, text=True, check=False,
        timeout=60,
    )  # fmt: skip
    return done.stdout + done.stderr


@pytest.mark.parametrize("release", ["22.05", "24.11"])
def test_the_catalogue_says_which_keys_a_release_knows(release: str, tmp_path: Path) -> None:
    needs("unshare", "chroot", "sinfo", "mmdebstrap")
    facts, names = catalog.slurm_conf(), catalog.slurm_keys()
    since, until = facts.keys_by_version.since, facts.keys_by_version.until
    known = {
        key
        for key in names.slurm_conf.keys
        if slurm_release(since.get(key, "0.0")) <= slurm_release(release) <= slurm_release(until.get(key, "99.11"))
    }
    lower = {key.lower() for key in names.slurm_conf.keys}
    elsewhere = {key for place in names.elsewhere.places.values() for key in place if key.lower() not in lower}
    asked = sorted({*names.slurm_conf.keys, *until, *elsewhere} - REFUSED)
    lines = ["ClusterName=x", "SlurmctldHost=localhost(127.0.0.1)", "SlurmctldPort=1", "NodeName=n1", "Surely=nobody"]
    (tmp_path / "slurm.conf").write_text("\n".join([*lines, *(f"{key}=1" for key in asked), ""]))
    root = unpacked_root() if release == "24.11" else Path("/")
    inside = [*("unshare", "--mount", "bash", "-c", NEWER, "bash"), str(tmp_path), str(root)]
    assert f" {release}." in answers([*inside, "slurmctld", "-V"])
    unknown = set(re.findall(r"unrecognized key: (\w+)", answers([*inside, "sinfo"])))
    assert unknown == {"Surely", *asked} - known


def test_every_key_that_the_catalogue_says_something_of_is_one_of_its_names() -> None:
    facts, names = catalog.slurm_conf(), set(catalog.slurm_keys().slurm_conf.keys)
    last = {key for key, bound in facts.keys_by_version.until.items() if slurm_release(bound) >= (22, 5)}
    said = {*facts.lists.keys, *facts.defunct_keys.since, *facts.keys_by_version.since, *last}
    said |= {*facts.values.refused, *facts.values.risky}
    assert said - names == set()
    written = {line.partition("=")[0] for line in slurm_conf_lines(EVERYTHING, "26.05.0", keeps_drained=True)}
    assert {key.lower() for key in written} - {key.lower() for key in names} == set()
