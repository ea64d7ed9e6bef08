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

import pytest

from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.collective import install, needs_mpi
from tests.bed.fakes import NVIDIA_SMI

NODES = 4
PATH = "/opt/fakes:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
SSH = """#!/usr/bin/env bash
# ssh OPTION… HOST COMMAND…: a login on a node, as Open MPI's plm_rsh makes it; only from the scheduler, which sees the
# first process of every node. That process holds the node's namespaces.
# Source: https://github.com/open-mpi/ompi/blob/v4.1.x/orte/mca/plm/rsh/plm_rsh_module.c
while [[ "${1:-}" == -* ]]; do
    case "$1" in -o | -p | -l | -i | -F) shift ;; esac
    shift
done
host="$1"
shift
pid="$(pgrep --oldest --full "^bash /mnt/machine/node.sh ${host} ")"
if [[ -z "${pid}" ]]; then echo "ssh: connect to host ${host} port 22: No route to host" >&2; exit 255; fi
printf 'ssh %s %s\\n' "${host}" "$*" >>/mnt/shared/ssh.calls
# A login has an environment of its own; what the stand-ins read comes along, as by AcceptEnv.
mapfile -t fakes < <(env | grep '^FAKE_')
exec nsenter --target "${pid}" --all --wd=/root \
    env --ignore-environment HOME=/root USER=root PATH="${PATH}" "${fakes[@]}" sh -c "$*"
"""
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
    """Another one, on which nothing has run or broken yet."""
    with _running() as cloud:
        yield cloud


@contextmanager
def _running() -> Iterator[Cloud]:
    needs_mpi()
    # Nobody waits for a node to start again: idle nodes stay for longer than the tests run. And now and then Slurm
    # 22.05 starts no job on an idle node until its next ping, which comes after a third of this time; why is not known.
    lines = ("SuspendTime=108000", "SlurmdTimeout=90")
    pool = Pool("hpc", NODES, gpus=8, cpus=96, memory_mib=64000, default=True)
    with running_cloud([pool], lines) as cloud:
        for place in ("nccl-tests/build", "rccl-tests"):
            install(cloud.folder / "opt" / place)
        fakes = cloud.folder / "opt/fakes"
        fakes.mkdir()
        shutil.copy(NVIDIA_SMI, fakes / "nvidia-smi")
        (fakes / "ssh").write_text(SSH, encoding="utf-8")
        (fakes / "ssh").chmod(0o755)
        (cloud.shared / "faked").mkdir()
        cloud.ok(PMIX)
        cloud.ok('mkdir /mnt/shared/.data "$1" && mount --bind /mnt/shared/.data "$1"', MOUNT)
        cloud.start(*pool.node_names)
        cloud.wait("all nodes are idle", lambda: {row.state for row in cloud.states().values()} == {"idle"})
        yield cloud
