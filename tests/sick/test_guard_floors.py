"""Deep checks on many nodes of running Slurm: whose fault a floor is that some, most or all of them miss."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.sick import running_sick
from tests.bed.sick.table import rows
from tests.sick.test_floors import DEEP_CONF, HEALTH_CONF, only
from tests.sick.test_guard import RESULTS, Guarded

FLOOR = "nccl_all_reduce"


@pytest.fixture(scope="module")
def whole_measuring() -> Iterator[Guarded]:
    with running_sick(8, attributes={"cycleforge.health.results": RESULTS}) as cluster:
        for node in cluster.nodes.values():
            node.write("kept.conf", node.read(DEEP_CONF))
            node.write(HEALTH_CONF, node.read(HEALTH_CONF).replace("deep_s=0\n", "deep_s=300\n"))
        yield Guarded(cluster)


@pytest.fixture
def measuring(whole_measuring: Guarded) -> Guarded:
    """All eight nodes run, and their deep checks are one; the others would take longer than the tests."""
    whole_measuring.cluster.restore()
    whole_measuring.mount()
    for path in whole_measuring.share.parent.glob("health*/**/*"):
        if path.is_file():
            path.unlink()
    for path in (whole_measuring.root / "alarms", whole_measuring.root / "var/lib/cycleforge/guard/record"):
        path.unlink(missing_ok=True)
    for node in whole_measuring.cluster.nodes.values():
        only(node, FLOOR)
    whole_measuring.look()
    return whole_measuring


def test_nodes_below_different_floors_are_drained_and_the_others_take_jobs(measuring: Guarded) -> None:
    """Three of eight, two below one floor and one below another: as many as a share that is gone would need."""
    sick = measuring.cluster
    for name, state in (("n1", "bus_gb_s"), ("n2", "bus_gb_s"), ("n3", "loopback_gb_s")):
        if state != "bus_gb_s":
            only(sick[name], "nccl_loopback")
        sick[name].state(state, {"bus_gb_s": "455.00", "loopback_gb_s": "39.50"}[state])
        sick[name].deep()
    sick.quick("n1", "n2", "n3")
    measuring.look(2)
    assert measuring.drained() == {"n1", "n2", "n3"}
    assert (measuring.partition(), measuring.alarms()) == ("up", [])
    assert sick.finish(sick.submit("true", "--nodelist=n4"))["ExitCode"] == "0:0"


@pytest.mark.fault("floor-too-high")
def test_a_floor_that_every_node_misses_costs_two_nodes_and_one_alarm(measuring: Guarded) -> None:
    sick = measuring.cluster
    for node in sick.nodes.values():
        node.state("bus_gb_s", "455.40")
    for pair in (("n1", "n2"), ("n3", "n4"), ("n5", "n6"), ("n7", "n8")):
        sick.each(lambda node: node.deep(), *pair)
        sick.quick(*pair)
        measuring.look()
    assert measuring.drained() == {"n1", "n2"}
    for name in measuring.drained():
        assert sick.states()[name].reason.startswith(rows()["floor-too-high"].reason)
    (alarm,) = measuring.alarms()
    assert "so its floor or the image is at fault; further nodes that miss it only warn, and jobs start" in alarm
    assert "deep_checks.nccl_all_reduce fails on 8 of 8 nodes" in (measuring.share / "ALARM").read_text()
    assert (sick["n8"].verdict(FLOOR, "deep"), measuring.partition()) == ("warn", "up")
    assert sick.finish(sick.submit("true", "--nodes=2"))["ExitCode"] == "0:0"
