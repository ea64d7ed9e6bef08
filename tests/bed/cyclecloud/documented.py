"""Answers to the documented requests. Source: https://learn.microsoft.com/azure/cyclecloud/api"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tests.bed.arm.exchange import Answer, Asked

from .exchange import FailureError, invalid, missing
from .state import DEALLOCATES, ENDS, STARTS, Array, Cluster, Node, Operation, State

Answers = dict[str, Callable[[State, Asked, Mapping[str, str]], Any]]
DOCUMENTED: Answers = {}
_STEPS = {
    "start": ("Started", STARTS),
    "deallocate": ("Deallocated", DEALLOCATES),
    "terminate": ("Terminated", ENDS),
    "remove": ("Terminated", ENDS),
    "shutdown": ("Terminated", ENDS),
    "restart": ("Started", STARTS),
    "reimage": ("Started", STARTS),
}


def found(state: State, parts: Mapping[str, str]) -> Cluster:
    """The cluster of a path."""
    if parts["cluster"] not in state.clusters:
        raise missing(f"Cluster {parts['cluster']}")
    return state.clusters[parts["cluster"]]


def body_of(asked: Asked) -> dict[str, Any]:
    """JSON, also where it is called text: the documentation's own examples send `text/plain`."""
    try:
        body = json.loads(asked.body) if isinstance(asked.body, bytes) else asked.body
    except ValueError:
        body = None
    if not isinstance(body, dict):
        raise invalid("The body is no object")
    return body


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
    }
    if array.invalid_reason:
        bucket["invalidReason"] = array.invalid_reason
    if state.is_at_least("8.9.0"):
        bucket["spotPlacementScore"] = None
    return {"name": array.name, "maxCount": array.most, "nodearray": {"Name": array.name}, "buckets": [bucket]}


def nodes(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    cluster = found(state, parts)
    operation = _asked_for(state, asked)
    if operation is None:
        body: dict[str, Any] = {"nodes": state.shown(cluster)}
    else:
        ids = {node.id for node in operation.nodes}
        shown = [row for row, node in zip(state.shown(cluster), cluster.nodes, strict=True) if node.id in ids]
        body = {"nodes": shown, "operation": _operation(operation)}
    state.passes()
    return body


def _asked_for(state: State, asked: Asked) -> Operation | None:
    wanted = asked.query.get("operation")
    if wanted is not None:
        return _by_id(state, wanted)
    request = asked.query.get("request_id")
    if request is None:
        return None
    if request not in state.requests:
        raise missing(f"Request {request}")
    return state.requests[request]


def _by_id(state: State, wanted: str) -> Operation:
    for each in state.requests.values():
        if each.id == wanted:
            return each
    raise missing(f"Operation {wanted}")


def _operation(operation: Operation) -> dict[str, Any]:
    """No progress and no state in it."""
    return {"action": operation.action, "startTime": "2026-09-15T18:03:22Z"}


def operation(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    return _operation(_by_id(state, parts["operation"]))


def operations(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    """A list of none or one."""
    if "request_id" not in asked.query:
        raise invalid("request_id is required")
    known = state.requests.get(asked.query["request_id"])
    return [] if known is None else [_operation(known) | {"id": known.id}]


def _accepted(state: State, cluster: Cluster, action: str, body: Mapping[str, Any], nodes: list[Node]) -> Operation:
    done = Operation(action, str(body.get("requestId") or ""), nodes)
    cluster.operations.append(done)
    # Without a request id the operation can still be found by its own.
    state.requests[done.request_id or done.id] = done
    return done


def _must_be_new(state: State, body: Mapping[str, Any]) -> None:
    """A repeated request id does nothing (Azure/cyclecloud-scalelib, legacy.py)."""
    if body.get("requestId") in state.requests:
        raise FailureError(409, "ConflictException", f"Request {body['requestId']} was already submitted")


def _location(asked: Asked, operation: Operation) -> dict[str, str]:
    return {"Location": f"{asked.base}/operations/{operation.id}"}


def create(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    cluster, body = found(state, parts), body_of(asked)
    _must_be_new(state, body)
    sets, added = [], []
    for each in body["sets"]:
        array = cluster.arrays.get(each.get("nodearray", ""))
        if array is None:
            raise invalid(f"Nodearray {each.get('nodearray')} not found")
        left = array.most - len(cluster.of(array.name))
        left = left if array.available is None else min(left, array.available)
        count = min(each["count"], left)
        made = cluster.add(array.name, count, **each.get("nodeAttributes", {}))
        added += made
        short = f"Only {left} of {each['count']} nodes can be added: no quota or capacity is left"
        sets.append({"added": count} | ({"message": short} if count < each["count"] else {}))
    done = _accepted(state, cluster, "create", body, added)
    return Answer(202, {"operationId": done.id, "sets": sets}, _location(asked, done))


def _action(name: str) -> Callable[[State, Asked, Mapping[str, str]], Any]:
    def answer(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
        cluster, body = found(state, parts), body_of(asked)
        _must_be_new(state, body)
        chosen = [
            node
            for node in cluster.nodes
            if node.name in body.get("names", ())
            or node.id in body.get("ids", ())
            or node.address in body.get("ip_addresses", ())
        ]
        known = {node.name for node in chosen}
        unknown = [each for each in body.get("names", ()) if each not in known]
        target, steps = _STEPS[name]
        rows, taken = [], []
        for node in chosen:
            error = _refusal(name, node)
            rows.append({"name": node.name, "id": node.id, "status": "Error" if error else "OK"})
            if error:
                rows[-1]["error"] = error
            else:
                node.goes(target, steps)
                taken.append(node)
        rows += [{"name": each, "status": "Error", "error": f"Node {each} not found"} for each in unknown]
        done = _accepted(state, cluster, name, body, taken)
        return Answer(202, {"operationId": done.id, "nodes": rows}, _location(asked, done))

    return answer


def _refusal(action: str, node: Node) -> str:
    """Why a node is left as it is. The sentence for `remove` is that of the documentation."""
    if action == "remove" and node.is_fixed and node.status != "Off":
        return "This node must be terminated before it can be removed"
    if action in ("restart", "reimage") and node.is_fixed:
        return "This action is only supported for nodes of node arrays"
    return ""


def scale(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    """Once, and only upwards."""
    cluster = found(state, parts)
    array = cluster.arrays.get(parts["array"])
    if array is None:
        raise missing(f"Nodearray {parts['array']}")
    try:
        wanted = int(asked.query["totalNodeCount"])
    except (KeyError, ValueError):
        raise invalid("totalNodeCount or totalCoreCount is required") from None
    if wanted > array.most:
        raise FailureError(409, "ConflictException", f"{wanted} exceeds the maximum of {array.most}")
    added = cluster.add(array.name, max(0, wanted - len(cluster.of(array.name))))
    done = _accepted(state, cluster, "scale", {}, added)
    return Answer(202, {"operationId": done.id, "sets": [{"added": len(added)}]}, _location(asked, done))


def usage(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    cluster = found(state, parts)
    hours = 10.0 * len(cluster.nodes)
    total = {"category": "total", "hours": hours, "cost": hours}
    breakdown = [{"category": "nodearray", "node": name, "hours": hours, "cost": hours} for name in cluster.arrays]
    row = {"start": "2026-09-01T00:00:00Z", "end": "2026-09-15T00:00:00Z", "total": total, "breakdown": breakdown}
    return {"usage": [row]}


DOCUMENTED |= {
    "status": status, "nodes": nodes, "operation": operation, "operations": operations, "create": create,
    "scale": scale, "usage": usage, **{name: _action(name) for name in _STEPS},
}  # fmt: skip
