"""Clusters for the tests of this folder: real Slurm, four nodes with eight GPUs, Open MPI and PMIx between them.

Nodes are those of `tests.bed.cloud`: processes in namespaces of their own, with host names and addresses, which stay
once they have started. `/opt/nccl-tests/build` and `/opt/rccl-tests` hold the stand-ins of `tests.bed.collective`,
/opt/fakes the program of a GPU driver, and an `ssh` with which the scheduler enters a node.
`tests/bed/order.py` keeps all these tests in one process, so that the first one is booted once.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.collective import install, needs_mpi
from tests.bed.fakes import NVIDIA_SMI
from tests.bed.slurm.newer import HOST

NODES = 4
PATH = "/opt/fakes:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MOUNT = "/mnt/data"
"""A file system of its own, on all nodes."""
PMIX = """
folder="$(echo /usr/lib/*/pmix2/lib)"
cp -a "${folder}" /mnt/pmix
ln -sf libpmix.so.2 /mnt/pmix/libpmix.so
mount --bind /mnt/pmix "${folder}"
"""
"""Debian's plug-in asks for the name of PMIx that comes with libpmix-dev."""


@pytest.fixture(scope="session")
def mpi_cluster() -> Iterator[Cloud]:
    """All nodes running and idle; a test leaves no jobs."""
    with _running() as cloud:
        yield cloud


@pytest.fixture
def own_mpi_cluster() -> Iterator[Cloud]:
    """Another one, whose nodes are all as new: for a test that needs them so, or that loses some.

    A node that a job with whole nodes and `--no-kill` has lost stays closed to jobs that share it, also when it is
    back: each time after another job with whole nodes, until it answers a ping. Slurm counts the lost job for ever.
    Source: SchedMD/slurm, 22.05 to 25.05: excise_node_from_job (src/slurmctld/job_mgr.c) calls make_node_idle
    (node_mgr.c), which leaves no_share_job_cnt as it was.
    """
    with _running() as cloud:
        yield cloud


@contextmanager
def _running() -> Iterator[Cloud]:
    needs_mpi()
    # Nobody waits for a node to start again: idle nodes stay for longer than the tests run.
    lines = ("SuspendTime=108000",)
    pool = Pool("hpc", NODES, gpus=8, cpus=96, memory_mib=64000, default=True)
    with running_cloud([pool], lines, release=HOST) as cloud:
        for place in ("nccl-tests/build", "rccl-tests"):
            install(cloud.folder / "opt" / place)
        fakes = cloud.folder / "opt/fakes"
        fakes.mkdir()
        shutil.copy(NVIDIA_SMI, fakes / "nvidia-smi")
        shutil.copy(Path(__file__).parent / "machine/ssh", fakes)
        (cloud.shared / "faked").mkdir()
        cloud.ok(PMIX)
        cloud.ok('mkdir /mnt/shared/.data "$1" && mount --bind /mnt/shared/.data "$1"', MOUNT)
        cloud.start(*pool.node_names)
        cloud.wait("all nodes are idle", lambda: {row.state for row in cloud.states().values()} == {"idle"})
        yield cloud
