"""`cycleforge.health.enabled=false`: hooks, units and drains are gone, also from a cluster that runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.slurm import configuration
from tests.bed.slurm.cluster import Cluster
from tests.bed.slurm.stamps import OURS


@pytest.fixture
def without_health(cluster: Cluster) -> Iterator[Cluster]:
    """Every machine converged with the health layer off; afterwards on again."""
    _switch(cluster, "false")
    yield cluster
    for node in cluster.nodes.values():
        node.heal()
    _switch(cluster, "true")


def _switch(cluster: Cluster, value: str) -> None:
    for member in (cluster.scheduler, *cluster.nodes.values()):
        member.attribute("cycleforge.health.enabled", value)
    cluster.converge()


def test_nothing_of_it_acts_any_more(without_health: Cluster) -> None:
    cluster, node = without_health, without_health["node2"]
    hooks = [cluster.folder / "sched" / configuration.CLUSTER / f"{hook}.d" / OURS for hook in configuration.HOOKS]
    assert not [path for path in hooks if path.exists()]
    assert node.ok("systemctl list-units --all --plain --no-legend 'cycleforge-health*'") == ""
    assert node.ok("find /etc/systemd -name '*cycleforge*'") == ""
    node.gpus(7)
    node.state("nvidia-smi.hang")
    calls = len(node.calls())
    assert cluster.finish(cluster.submit("true", "--nodelist=node2"))["ExitCode"] == "0:0"
    # Switched off for some nodes only: the shared folder has the hooks, these nodes have nothing that they could run.
    cluster.scheduler.attribute("cycleforge.health.enabled", "true")
    cluster.scheduler.converge()
    assert all(path.exists() for path in hooks)
    assert cluster.finish(cluster.submit("true", "--nodes=3"))["ExitCode"] == "0:0"
    assert node.calls()[calls:] == []
    cluster.all_idle(5)
