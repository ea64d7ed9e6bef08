"""The stand-in for nccl-tests is launched for real, over several nodes. Its model is tested in tests/bed."""

from __future__ import annotations

import re

from tests.bed.cloud import Cloud

NODES = "emu-hpc-1", "emu-hpc-2", "emu-hpc-3", "emu-hpc-4"
BINARY = "/opt/nccl-tests/build/{}_perf"
ROW = re.compile(
    r"^ +(\d+) +(\d+) +float +(none|sum) +-1 +\S+ +\S+ +(\S+) +(\S+) +\S+ +\S+ +(\S+) +(\S+)$", re.MULTILINE
)
MODEL = "FAKE_BUSBW=100 FAKE_HALF_BYTES=0"
PMIX = "srun --mpi=pmix --gpus-per-node=8"


def test_it_is_one_test_over_all_gpus_of_all_nodes(mpi_cluster: Cloud) -> None:
    command = f"{BINARY.format('alltoall')} -b 1G -e 2G -f 2 -g 4"
    said = mpi_cluster.ok(f"env {MODEL} {PMIX} --nodelist=emu-hpc-[1-2] --ntasks-per-node=2 {command}")
    ranks = re.findall(r"^#  Rank +(\d+) Group  0 Pid +\d+ on +(\S+) device +(\d) ", said, re.MULTILINE)
    assert ranks == [(str(rank), NODES[rank // 8], str(rank % 8)) for rank in range(16)]
    rows = [found.groups() for found in ROW.finditer(said)]
    assert rows == [(str(size), str(size // 64), "none", "100.00", "0", "100.00", "N/A") for size in (1 << 30, 2 << 30)]
    assert "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 100 \n" in said
    assert said.endswith("#\n# Collective test concluded: alltoall_perf\n")


def test_a_program_without_mpi_tests_each_gpu_alone(mpi_cluster: Cloud) -> None:
    said = mpi_cluster.ok(
        f"FAKE_WITHOUT_MPI=1 srun --nodes=1 --ntasks=2 {BINARY.format('all_reduce')} -b 1M -e 1M -g 1"
    )
    assert len(re.findall("#  Rank  0 ", said)) == 2
    assert said.count("# Collective test concluded") == 2
    assert {row[3] for row in ROW.findall(said)} == {"0.00"}


def test_one_launch_may_test_several_groups(mpi_cluster: Cloud) -> None:
    """The time is the mean over groups, or with -a 3 that of the slowest: nobody learns which one is slow."""
    slow = "FAKE_SLOW_NODE=emu-hpc-3 FAKE_SLOW_PERCENT=50 NCCL_TESTS_SPLIT='DIV 2'"
    command = f"{BINARY.format('all_reduce')} -b 1G -e 1G -g 8"
    mean, worst = (mpi_cluster.ok(f"env {MODEL} {slow} {PMIX} --nodes=4 {command} -a {average}") for average in (1, 3))
    assert set(re.findall(r"Group +(\d)", mean)) == {"0", "1"}
    assert [row[3] for row in ROW.findall(mean)] == ["66.67"]
    assert [row[3] for row in ROW.findall(worst)] == ["50.00"]


def test_ends_as_the_real_one_does(mpi_cluster: Cloud) -> None:
    program = f"{BINARY.format('all_reduce')} -b 1G -e 1G -g 8"
    lost = mpi_cluster.run(f"FAKE_BAD_NODE=emu-hpc-2 {PMIX} --nodelist=emu-hpc-[1-2] --kill-on-bad-exit=1 {program}")
    assert lost.code != 0
    assert "emu-hpc-2: task 1: Exited with exit code 1" in lost.output
    alone = {
        "FAKE_STOP_AT=row": (-9, "busbw"),
        "FAKE_WRONG=3": (1, "# Out of bounds values : 2 FAILED"),
        "CUDA_VISIBLE_DEVICES=0,1": (3, "Invalid number of GPUs: 8 requested but only 2 were found."),
    }
    for environment, (code, contains) in alone.items():
        done = mpi_cluster.run(f"env {environment} {program}")
        assert (done.code, contains in done.output) == (code, True), done
    usage = mpi_cluster.run(f"{program} --no-such-option")
    assert usage.code == 0
    assert "USAGE: all_reduce_perf" in usage.output
