"""`cyclecloud` on the server shows the cluster of the stand-in of the site, and changes it."""

from __future__ import annotations

from typing import Any

from tests.bed.cyclecloud.state import Cluster
from tests.bed.cyclecloud.state import State as Stand
from tests.bed.server.fakes.clusters import Clusters
from tests.bed.server.fakes.state import State


class Commands(Clusters):
    """The commands about clusters, which the other stand-in has."""

    def __init__(self, site: State, stand: Stand) -> None:
        super().__init__(site)
        self._shared, self._stand = site, stand

    def run(self, words: list[str]) -> dict[str, Any]:
        """One of them; what goes on in the cluster goes on by one step with each list of its nodes."""
        with self._stand.lock:
            self._shared.clusters = {name: _row(each) for name, each in self._stand.clusters.items()}
            answer = super().run(words)
            cluster = self._stand.clusters.get(words[-1])
            if words[0] == "start_cluster" and cluster is not None:
                cluster.starts(is_up=False)
            elif words[0] == "terminate_cluster" and cluster is not None:
                cluster.terminates()
            elif words[0] == "show_nodes":
                self._stand.passes()
            return answer


def _row(cluster: Cluster) -> dict[str, Any]:
    """As `show_cluster` has it: the heading says what it is and, while that changes, what it will be."""
    nodes = [node.record for node in cluster.nodes]
    fixed = {node.status for node in cluster.nodes if node.is_fixed}
    if cluster.target == "Started" and fixed != {"Ready"}:
        return {"state": "allocation", "target": "started", "nodes": nodes}
    if cluster.target == "Terminated" and fixed != {"Off"}:
        return {"state": "termination", "target": "terminated", "nodes": nodes}
    return {"state": (cluster.target or "Off").lower(), "nodes": nodes}
