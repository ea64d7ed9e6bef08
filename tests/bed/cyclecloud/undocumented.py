"""Answers to requests that are documented nowhere; the rows of undocumented.json name who sends them.

Of the query language only the forms that those programs send are understood; any other is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.bed.arm.exchange import Answer, Asked, NotInTableError

from .documented import Answers, found
from .exchange import FailureError
from .state import STARTS, Cluster, Node, State

_NAME = r'(?P<cluster>"(?:[^"\\]|\\.)*")'
_FIELDS = r"select (?P<fields>[A-Za-z_.,]+)"
_WHERE = rf"where ClusterName ===? {_NAME}"
_NODES = re.compile(rf"{_FIELDS} from Cloud\.Node {_WHERE} && IsArray =!= true && Abstract =!= true.*")
_CONDITIONS = re.compile(rf"{_FIELDS} using cloud\.node\.node_status {_WHERE}")
_SECRET = {"configuration", "*"}


def query(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    """The adapter sends `Accept: */*`, because `application/json` gives 406."""
    if "application/json" in asked.headers.get("accept", ""):
        raise FailureError(406, "NotAcceptableException", "Not Acceptable")
    text = asked.query["q"]
    for pattern, rows in ((_NODES, _nodes), (_CONDITIONS, _conditions)):
        matched = pattern.fullmatch(text)
        if matched is not None:
            fields = matched["fields"].split(",")
            if _SECRET & {each.lower() for each in fields}:
                raise NotInTableError(f"a query for what holds passwords: {text}")
            cluster = state.clusters.get(json.loads(matched["cluster"]))
            answer = [] if cluster is None else [_only(row, fields) for row in rows(cluster)]
            state.passes()
            return answer
    raise NotInTableError(f"no public program sends this query: {text}")


def _only(row: dict[str, Any], fields: list[str]) -> dict[str, Any]:
    return {name: row.get(name) for name in fields}


def _nodes(cluster: Cluster) -> list[dict[str, Any]]:
    return [
        node.record | {"ClusterName": cluster.name, "PhaseFailed": node.failed_by is not None} for node in cluster.nodes
    ]


def _conditions(cluster: Cluster) -> list[dict[str, Any]]:
    """What the portal shows below a cluster: a row for each reason with the number of its nodes."""
    rows: dict[str, dict[str, Any]] = {}
    for node in cluster.nodes:
        if node.failed_by is not None:
            row = rows.setdefault(node.failed_by.message, _condition(node))
            row["NodeCount"] += 1
    return list(rows.values())


def _condition(node: Node) -> dict[str, Any]:
    assert node.failed_by is not None
    return {
        "Name": "Software Configuration", "Status": "Error", "Message": node.failed_by.message, "NodeCount": 0,
        "Detail": node.failed_by.detail or None, "Recommendation": node.failed_by.recommendation or None,
    }  # fmt: skip


def start_cluster(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    cluster = found(state, parts)
    if cluster.target != "Started":
        cluster.starts(is_up=False)
    return {}


def terminate_cluster(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    found(state, parts).terminates()
    return {}


def retry(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    """Failed nodes try again."""
    for node in found(state, parts).nodes:
        if node.failed_by is not None:
            node.retries += 1
            node.goes(node.target, STARTS)
    return {}


def health(state: State, asked: Asked, parts: Mapping[str, str]) -> Any:
    return Answer(200, b"<html><body></body></html>")


UNDOCUMENTED: Answers = {
    "query": query, "start cluster": start_cluster, "terminate cluster": terminate_cluster, "retry": retry,
    "health": health,
}  # fmt: skip
