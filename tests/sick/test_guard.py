"""Many nodes that fail the same check at once, on running Slurm: one alarm, no more drains, and jobs that wait."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from generator.cli import main
from tests.bed.sick import SickCluster, running_sick
from tests.bed.sick.table import rows
from tests.bed.sick.watch import PROGRAM, install_watch

RESULTS = "/results/health"
REPAIRED = "bash /opt/cycleforge/slurm_nhc/health.sh repaired"
LOGGER = '#!/usr/bin/env bash\nprintf "%s\\n" "${*: -1}" >>/mnt/guard/alarms\n'


class Guarded:
    """The cluster with the watch on its scheduler; nodes and scheduler share a folder of results."""

    def __init__(self, cluster: SickCluster) -> None:
        self.cluster = cluster
        self.root = cluster.folder / "guard"
        install_watch(self.root, RESULTS)
        (self.root / "etc/slurm").symlink_to("/etc/slurm")
        (self.root / "bin").mkdir()
        (self.root / "bin/logger").write_text(LOGGER)
        (self.root / "bin/logger").chmod(0o755)
        self.share = cluster.shared / "health"
        self.roots = [self.root, *(node.root for node in cluster.nodes.values())]

    def mount(self) -> None:
        (self.share.parent / "health.guard/claims").mkdir(parents=True, exist_ok=True)
        self.share.mkdir(exist_ok=True)
        for root in self.roots:
            (root / "results").unlink(missing_ok=True)
            (root / "results").symlink_to("/mnt/shared")

    def unmount(self) -> None:
        for root in self.roots:
            (root / "results").unlink()

    def look(self, times: int = 1) -> None:
        """What cycleforge-guard.service does."""
        for _ in range(times):
            self.cluster.ok(f"PATH=/mnt/guard/bin:$PATH CYCLEFORGE_ROOT=/mnt/guard bash /mnt/guard/{PROGRAM} look")

    def alarms(self) -> list[str]:
        path = self.root / "alarms"
        return path.read_text().splitlines() if path.exists() else []

    def fail(self, *names: str) -> None:
        """Quick runs at the same time that find a fault."""
        results = self.cluster.quick(*names)
        assert {name: result["verdict"] for name, result in results.items()} == dict.fromkeys(names, "fail")

    def claim(self, *names: str) -> None:
        folder = self.share.parent / "health.guard/claims/ib_rate@hpc"
        folder.mkdir(exist_ok=True)
        for name in names:
            (folder / name).touch()

    def passes(self, *names: str) -> None:
        for name in names:
            (self.share.parent / "health.guard/claims/ib_rate@hpc" / name).unlink()

    def partition(self) -> str:
        return self.cluster.slurm("sinfo", "-h", "-o", "%a").split()[0]

    def set_to(self, state: str) -> None:
        self.cluster.slurm("scontrol", "update", "PartitionName=hpc", f"State={state}")

    def drained(self) -> set[str]:
        return {name for name, row in self.cluster.states().items() if row.state.startswith("drain")}


@pytest.fixture(scope="module")
def whole_guarded() -> Iterator[Guarded]:
    with running_sick(8, attributes={"cycleforge.health.results": RESULTS}) as cluster:
        yield Guarded(cluster)


@pytest.fixture
def guarded(whole_guarded: Guarded) -> Guarded:
    whole_guarded.set_to("UP")
    whole_guarded.cluster.restore()
    for path in (whole_guarded.root / "alarms", whole_guarded.root / "var/lib/cycleforge/guard/record"):
        path.unlink(missing_ok=True)
    for path in whole_guarded.share.parent.glob("health*/**/*"):
        if path.is_file():
            path.unlink()
    whole_guarded.mount()
    whole_guarded.look()
    return whole_guarded


@pytest.mark.fault("share-gone-half")
def test_a_share_gone_on_half_of_the_nodes_drains_two_and_holds_jobs_until_it_is_back(
    guarded: Guarded, capsys: pytest.CaptureFixture[str]
) -> None:
    sick = guarded.cluster
    half = ("n1", "n2", "n3", "n4")
    for name in half:
        sick[name].lose_mount()
    # Of four at once each would find the claims of the others, and none would be drained.
    for name in half:
        guarded.fail(name)
    first = {"n1", "n2"}
    assert guarded.drained() == first
    for name in first:
        assert sick.states()[name].reason.startswith(rows()["share-gone-half"].reason)
    guarded.look()
    assert guarded.partition() == "down"
    (alarm,) = guarded.alarms()
    assert alarm.startswith("partition hpc: mount fails on ")
    assert "mount fails on 4 of 8 nodes" in (guarded.share / "ALARM").read_text()

    jobs = [sick.submit("true", "--nodelist=n8"), sick.submit("true", "--nodelist=n4")]
    sick["n5"].lose_mount()
    sick.quick("n5", *half)
    guarded.look(2)
    assert guarded.drained() == first, "no further node is drained"
    for state, names in (("failed", ""), ("held", "n[1-5]\n")):
        assert main(["health", "report", str(guarded.share), "--kind", "quick", "--nodes-only", state]) == 1
        assert capsys.readouterr().out == names, "who drains what failed must leave these alone"
    assert len(guarded.alarms()) == 1
    assert {sick.job(job)["JobState"] for job in jobs} == {"PENDING"}
    assert {sick.job(job)["Reason"] for job in jobs} == {"PartitionDown"}
    for name in first:
        assert sick[name].read("var/lib/cycleforge/health/strikes").split()[-1] == "shared"

    for name in ("n5", *half):
        sick[name].heal()
    sick.quick("n5", *half)
    guarded.look()
    assert guarded.partition() == "down", "a check that passed in one look may fail in the next"
    sick.quick("n5", *half)
    guarded.look(2)
    assert guarded.partition() == "up"
    assert not (guarded.share / "ALARM").exists()
    assert {sick.finish(job)["ExitCode"] for job in jobs} == {"0:0"}
    assert guarded.drained() == set()
    assert len(guarded.alarms()) == 2


@pytest.mark.fault("results-share-gone")
def test_when_the_share_with_the_claims_is_gone_the_scheduler_goes_by_slurms_reasons(guarded: Guarded) -> None:
    sick = guarded.cluster
    guarded.unmount()
    for name in ("n1", "n2", "n3"):
        sick[name].lose_mount("sched")
    guarded.fail("n1", "n2", "n3")
    assert guarded.drained() == {"n1", "n2", "n3"}, "nobody can count, so each drains"
    assert all(sick.states()[name].reason.startswith(rows()["results-share-gone"].reason) for name in guarded.drained())
    guarded.look()
    assert guarded.partition() == "down"
    assert len(guarded.alarms()) == 1
    guarded.mount()
    for node in sick.nodes.values():
        node.heal()
    sick.quick("n1", "n2", "n3")
    guarded.look(2)
    assert guarded.partition() == "down"
    sick.quick("n1", "n2", "n3")
    guarded.look(2)
    assert (guarded.partition(), guarded.drained()) == ("up", set())


@pytest.mark.fault("xid-half")
def test_xids_on_half_of_the_partition_drain_every_one_of_these_nodes(guarded: Guarded) -> None:
    sick = guarded.cluster
    half = {"n1", "n2", "n3", "n4"}
    for name in half:
        sick[name].xid(79)
    guarded.fail(*sorted(half))
    assert guarded.drained() == half
    for name in half:
        assert sick.states()[name].reason.startswith(rows()["xid-half"].reason), sick.states()[name]
    guarded.look()
    assert (guarded.partition(), guarded.alarms()) == ("up", [])


@pytest.mark.fault("link-flaps-daily")
def test_a_link_that_comes_and_goes_costs_three_drains_and_then_the_node_stays_out(guarded: Guarded) -> None:
    sick, node = guarded.cluster, guarded.cluster["n6"]
    for strike in (1, 2, 3):
        node.port_down(5)
        node.quick()
        assert guarded.drained() == {"n6"}
        if strike < 3:
            assert sick.states()["n6"].reason.startswith("CycleForge health: ib_ports_active")
        node.heal()
        node.quick()
        node.quick()
        assert guarded.drained() == (set() if strike < 3 else {"n6"})
    assert sick.states()["n6"].reason.startswith(rows()["link-flaps-daily"].reason), sick.states()["n6"]
    node.ok(REPAIRED)
    assert guarded.drained() == set()
    node.port_down(5)
    node.quick()
    assert sick.states()["n6"].reason.startswith("CycleForge health: ib_ports_active")


def _restart(cluster: SickCluster) -> None:
    cluster.stop_controller()
    cluster.start_controller()
    cluster.wait("the nodes answer", lambda: cluster.slurm("sinfo", "-h", "-o", "%T").split() == ["idle"])


def _reconfigure(cluster: SickCluster) -> None:
    os.utime(cluster.folder / "etc/azure.conf", (time.time() + 5,) * 2)
    cluster.slurm("scontrol", "reconfigure")


def test_slurm_that_reads_its_files_again_lets_no_jobs_in_and_an_administrator_does(guarded: Guarded) -> None:
    guarded.claim("n1", "n2", "n3")
    guarded.look()
    assert guarded.partition() == "down"
    for reads_again in (_restart, _reconfigure):
        reads_again(guarded.cluster)
        guarded.look()
        assert guarded.partition() == "down", reads_again
    assert len(guarded.alarms()) == 1
    guarded.set_to("UP")
    guarded.look(2)
    assert guarded.partition() == "up"


def test_a_partition_that_an_administrator_set_down_is_not_set_up(guarded: Guarded) -> None:
    guarded.set_to("DOWN")
    guarded.claim("n1", "n2", "n3")
    guarded.look()
    guarded.passes("n1", "n2", "n3")
    guarded.look(3)
    assert len(guarded.alarms()) == 2
    assert guarded.partition() == "down"
