"""srun with and without PMIx, on real Slurm with the lines that a plan appends to slurm.conf.

Slurm's plug-in loads the library when srun starts and when slurmd launches a step, and refuses every step with it where
the library is missing. Source: Slurm 22.05 and 25.11, src/plugins/mpi/pmix/mpi_pmix.c (init, _libpmix_open).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.machines.roots import needs
from tests.bed.plans import plan_from, slurm_of

NODES = ("emu-htc-1", "emu-htc-2")
PROGRAM = Path(__file__).with_name("mpi_program.py")
FOLDERS = """
folder="$(echo /usr/lib/*/pmix2/lib)"
mkdir /mnt/pmix-without
cp -a "${folder}" /mnt/pmix-with
ln -sf libpmix.so.2 /mnt/pmix-with/libpmix.so
"""
"""What the folder of Debian's PMIx may hold. Debian's plug-in asks for the name that comes with libpmix-dev."""


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    needs("mpirun")
    lines = slurm_of(plan_from()).additional_config
    with running_cloud([Pool("htc", 2, default=True)], lines) as cloud:
        if cloud.run("ls /usr/lib/*/slurm-wlm/mpi_pmix.so").code:
            pytest.skip("this Slurm was built without PMIx, as Debian's 26.05 is")
        shutil.copy(PROGRAM, cloud.shared)
        cloud.ok(FOLDERS)
        yield cloud


def provide(cloud: Cloud, which: str) -> Cloud:
    """Give the scheduler, and the nodes that start from now on, the folder of PMIx `with` or `without` the library."""
    cloud.restore()
    cloud.ok('mount --bind "/mnt/pmix-$1" /usr/lib/*/pmix2/lib', which)
    return cloud


def test_srun_needs_no_pmix_unless_it_is_asked_for(running: Cloud) -> None:
    cloud = provide(running, "without")
    refused = cloud.run("srun --mpi=pmix hostname")
    assert refused.code != 0
    assert "can not load PMIx library" in refused.output
    assert cloud.ok("srun --nodes=2 hostname | sort").split() == [*NODES]
    with cloud.with_settings("MpiDefault=pmix"):
        refused = cloud.run("srun --nodes=2 hostname")
        assert refused.code != 0, "what the line would do, so that its absence is worth a test"
        assert "can not load PMIx library" in refused.output


def test_an_mpi_program_runs_over_two_nodes(running: Cloud) -> None:
    cloud = provide(running, "with")
    said = cloud.ok("srun --nodes=2 --ntasks=4 --mpi=pmix python3 /mnt/shared/mpi_program.py | sort -k 2n")
    rows = [line.split() for line in said.splitlines()]
    assert [row[1:] for row in rows] == [[str(rank), "4", "10"] for rank in range(4)]
    assert {row[0] for row in rows} == {*NODES}
    alone = cloud.run("srun --nodes=2 --ntasks=4 python3 /mnt/shared/mpi_program.py")
    assert "10" not in [line.split()[-1] for line in alone.output.splitlines() if line], "nobody joins them"
