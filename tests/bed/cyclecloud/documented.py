"""Answers to the documented requests. Source: https://learn.microsoft.com/azure/cyclecloud/api"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tests.bed.arm.exchange import Asked

from .exchange import invalid, missing
from .state import Array, Cluster, State

Answers = dict[str, Callable[[State, Asked, Mapping[str, str]], Any]]


def found(state: State, parts: Mapping[str, str]) -> Cluster:
    """The cluster of a path."""
    if parts["cluster"] not in state.clusters:
        raise missing(f"Cluster {parts['cluster']}")
    return state.clusters[parts["cluster"]]


def status(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    """ClusterStatus; it fails as a whole while one machine type is unknown (Azure/az-hop#221)."""
    cluster = found(state, parts)
    for array in cluster.arrays.values():
        if array.machine_type in state.unknown_types:
            raise invalid(f"MachineType {array.machine_type} is not recognized")
    body: dict[str, Any] = {
        "maxCount": sum(array.most for array in cluster.arrays.values()),
        "maxCoreCount": 64 * sum(array.most for array in cluster.arrays.values()),
        "nodearrays": [_array(state, cluster, array) for array in cluster.arrays.values()],
    }
    if cluster.state:  # absent until the first start
        body |= {"state": cluster.state, "targetState": cluster.target}
    if asked.query.get("nodes") == "true" and state.lists_nodes:
        body["nodes"] = state.shown(cluster)
        state.passes()
    return body


def _array(state: State, cluster: Cluster, array: Array) -> dict[str, Any]:
    active = len(cluster.of(array.name))
    left = array.most - active
    bucket: dict[str, Any] = {
        "bucketId": f"bucket-{array.name}",
        "definition": {"machineType": array.machine_type},
        "valid": not array.invalid_reason,
        "maxCount": array.most,
        "activeCount": active,
        "availableCount": left if array.available is None else min(left, array.available),
        "quotaCount": array.most if array.quota_count is None else array.quota_count,
        "lastCapacityFailure": array.last_capacity_failure,
        "virtualMachine": {"vcpuCount": 64, "pcpuCount": 32, "gpuCount": 0, "memory": 256.0, "infiniband": False},
        "placementGroups": [],
        "spotPlacementScore": None,
    }
    if array.invalid_reason:
        bucket["invalidReason"] = array.invalid_reason
    return {"name": array.name, "maxCount": array.most, "nodearray": {"Name": array.name}, "buckets": [bucket]}


def usage(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    cluster = found(state, parts)
    hours = 10.0 * len(cluster.nodes)
    total = {"category": "total", "hours": hours, "cost": hours}
    breakdown = [{"category": "nodearray", "node": name, "hours": hours, "cost": hours} for name in cluster.arrays]
    row = {"start": "2026-09-01T00:00:00Z", "end": "2026-09-15T00:00:00Z", "total": total, "breakdown": breakdown}
    return {"usage": [row]}


DOCUMENTED: Answers = {"status": status, "usage": usage}
