"""A node that hangs on the shared file system, and a user's own options of srun, on real Slurm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.cloud import Cloud
from tests.mpi.conftest import PATH
from tests.mpi.test_nccl_jobs import Jobs, verdicts

STAT = """#!/bin/bash
# stat of a node that a server of the shared file system does not answer: nothing but SIGKILL ends it.
if [[ "$(hostname -s)" == emu-hpc-3 && "$*" == *--file-system* ]]; then
    trap '' TERM INT HUP
    while :; do sleep 1; done
fi
exec /usr/bin/stat "$@"
"""
LABELS = {"SLURM_LABELIO": "1", "SLURM_TIMELIMIT": "1", "SLURM_CPU_BIND": "map_cpu:0", "SLURM_EXIT_IMMEDIATE": "1"}


@pytest.fixture
def made(mpi_cluster: Cloud) -> Iterator[Jobs]:
    yield Jobs(mpi_cluster)
    mpi_cluster.wait("all nodes are idle again", mpi_cluster.all_resumed)


def test_the_node_that_hangs_is_named_by_the_smoke_test(made: Jobs) -> None:
    tools = made.cloud.shared / "silent"
    tools.mkdir(exist_ok=True)
    (tools / "stat").write_text(STAT)
    (tools / "stat").chmod(0o755)
    folder = made.folder("smoke", "silent", nodes=4)
    environment = {"PATH": f"/mnt/shared/silent:{PATH}", "SET_SHARED_DIR": "/mnt/shared", "SET_TIMEOUT_S": "20"}
    status, record = made.submit(folder, **environment)
    assert (status, record["verdict"]) == (1, "fail"), record
    assert [check["nodes"] for check in record["checks"] if check["verdict"] == "fail"] == [["emu-hpc-3"]]
    assert record["summary"] == "3 of 4 nodes answered"


def test_options_of_srun_in_the_shell_of_a_user_change_no_verdict(made: Jobs) -> None:
    folder = made.folder("nccl-allreduce", "labels")
    status, record = made.submit(folder, **LABELS)
    assert (status, verdicts(record)["all_reduce"]) == (0, "pass"), record["checks"]
