"""The whole way of a new user: the rendered `ssh_config`, Azure's Bastion, the server, the scheduler, real Slurm."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.bed.arm import running_arm
from tests.bed.cloud.inside import ENVIRONMENT as INSIDE
from tests.bed.cloud.inside import NAMESPACES
from tests.bed.ssh.deployed import a_user
from tests.bed.ssh.host import Host
from tests.connect.kinds import KINDS, gone
from tests.runs.bed import ENVIRONMENT, User


def move_in(host: Host, user: User) -> None:
    """From now on what is typed on the host happens on the cluster's scheduler."""
    spaces = " ".join(f"--{kind}=/proc/{user.cloud.holder}/ns/{name}" for kind, name in NAMESPACES.items())
    environment = " ".join(f"{name}={value}" for name, value in (INSIDE | ENVIRONMENT).items())
    (host.folder / "entry").write_text(
        "#!/bin/bash\n"
        f"exec nsenter {spaces} --wd=/ -- env --ignore-environment {environment}"
        ' bash -c "cd; ${SSH_ORIGINAL_COMMAND:-exec bash -l}"\n'
    )


def test_a_job_and_a_proof(user: User, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder: Path = tmp_path_factory.mktemp("way")
    with running_arm(tmp_path_factory.mktemp("arm")) as arm, a_user(folder, arm) as ann:
        deployed = ann.deploy("way", KINDS["bybastion"])
        shutil.rmtree(ann.here / "output/way")
        built = ann.types("cycleforge", "build", "way")
        assert built.returncode == 0, built.stderr
        move_in(deployed.scheduler, user)
        ran = ann.types("cycleforge", "run", "way", "smoke", "--wait", "--fetch", "got", "--json")
        assert ran.returncode == 0, ran.stderr
        assert json.loads(ran.stdout)["verdict"] == "pass"
        assert list((ann.here / "got/results").glob("*/run.json"))
        proved = ann.types("cycleforge", "prove", "way", "--nodes", "1", "--yes")
        # No GPU is here: gates that need one prove nothing.
        assert proved.returncode == 4, proved.stderr
        assert b"smoke: pass: 1 of 1 nodes answered" in proved.stderr
        assert (ann.here / "report.html").is_file()
        assert gone(ann), "no tunnel is left"
        assert arm.changes == [], "Azure was only asked"
