"""A whole run on a node that the guard holds: what stands against it then, and what is never held."""

from __future__ import annotations

import pytest

from tests.bed.scripts.healthy import healthy
from tests.bed.scripts.planned import Planned
from tests.projects.conftest import MakeNode

CONF = "etc/cycleforge/health.conf"
DRIVER = ("reboot", "gpu_answers", "Driver/library version mismatch")
LOST = ("service", "gpu_answers", "GPU 3 [GPU is lost]")


@pytest.fixture
def node(make_node: MakeNode) -> Planned:
    """Its partition has an alarm for gpu_answers."""
    node = Planned(healthy(make_node("slurm_nhc")))
    node.node.write(CONF, node.node.read(CONF).replace("results=\n", "results=/sched\n"))
    node.passes(1)
    name = node.node.result("quick")["node"]
    node.node.write("sched.guard/state", f"partition hpc 8 gpu_answers\nnode {name} hpc\n")
    return node


def test_a_held_driver_is_not_charged_to_the_node(node: Planned) -> None:
    node.says("quick", DRIVER)
    assert "the cause is shared" in node.runs("quick")
    assert (node.state, node.standing()["cure"]) == ("IDLE", "heal")
    node.runs("gate", code=3)
    assert node.reason.startswith("CycleForge health: gpu_answers (Driver/library version mismatch"), (
        "no reboot is asked for"
    )
    node.passes(2)
    assert (node.state, node.standing()) == ("IDLE", {}), "in the same boot"


@pytest.mark.parametrize("records", [(LOST,), (LOST, DRIVER), (DRIVER, LOST)])
def test_a_lost_gpu_drains_also_beside_what_is_held(node: Planned, records: tuple[tuple[str, str, str], ...]) -> None:
    node.says("quick", *records)
    assert "the cause is shared" not in node.runs("quick")
    assert node.reason.startswith("CycleForge health: report the host to Azure and take another VM: gpu_answers")
