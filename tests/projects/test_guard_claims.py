"""The folder of claims on a large cluster, and with what one node can write there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projects.test_guard_watch import NODES, Scheduler

CHECKS = ("nccl_all_reduce", "nccl_loopback", "ib_write", "gpu_copy_peer", "gpu_copy_to_device", "gpu_copy_from_device",
          "gpu_diagnostic", "cpu_stream")  # fmt: skip


@pytest.fixture
def watch(tmp_path: Path) -> Scheduler:
    made = Scheduler(tmp_path)
    made.partition("hpc", *NODES)
    return made


def files(watch: Scheduler, folder: str, *names: str) -> None:
    (watch.claims / folder).mkdir()
    for name in names:
        (watch.claims / folder / name).touch()


def test_the_passes_of_1300_nodes_in_two_partitions_are_read(tmp_path: Path) -> None:
    watch = Scheduler(tmp_path)
    nodes = [f"big-cluster-hpc-{number}" for number in range(1300)]
    for partition in ("hpc", "all"):
        watch.partition(partition, *nodes)
        for check in CHECKS:
            files(watch, f"deep_passed.{check}@{partition}", *nodes)
    watch.claim("deep_checks.ib_write_host", "hpc", *nodes[:3])
    watch.claim("mount_shared", "hpc", *nodes[:500])
    assert "does not answer" not in watch.look()
    (alarm,) = watch.alarms()
    assert alarm.startswith("partition hpc: mount_shared fails on 500 of 1300 nodes")


@pytest.mark.parametrize(
    "form", ["deep_passed.x{0}@hpc/hpc-1", "x{0}@hpc/hpc-1", "mount_shared@hpc/x{0}", "x@p{0}/hpc-1"]
)
def test_one_node_cannot_fill_the_folder_for_all(watch: Scheduler, form: str) -> None:
    for number in range(20_000):
        path = watch.claims / form.format(f"{number}-{'long' * 8}" if "/x" in form else number)
        path.parent.mkdir(exist_ok=True)
        path.touch()
    watch.claim("mount_shared", "hpc", *NODES[1:5])
    assert "does not answer" not in watch.look()
    assert [alarm.split(" nodes")[0] for alarm in watch.alarms()] == ["partition hpc: mount_shared fails on 4 of 8"]


def test_what_no_deep_check_is_called_blames_no_floor(watch: Scheduler) -> None:
    watch.claim("deep_checks.everything", "hpc", *NODES)
    watch.claim("deep_other.ib_write", "hpc", *NODES)
    watch.look(2)
    assert (watch.state(), watch.alarms()) == ("up", [])


def test_a_node_that_slurm_has_just_resumed_takes_part_in_the_comparison_of_deep_runs(watch: Scheduler) -> None:
    """It is `idle*` until it answers. What it misses meanwhile counted for nobody, and others drained in its place."""
    watch.node(NODES[0], "idle*")
    watch.look()
    assert "partition hpc 7" in watch.told()
    assert f"boots {NODES[0]} hpc" in watch.told()
