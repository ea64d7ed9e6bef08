"""Requests that are documented nowhere; each source is a public program that sends it.

They may change with any release, so nothing rests on their answers alone, and what they change is read back.
"""

from __future__ import annotations

import json

from ..request import Call, Request

_PLUGIN = "https://github.com/gingi/cyclecloud-agent-plugin/blob/main/src/cyclecloud-client.ts"
_DEMO = "https://github.com/bwatrous/cyclecloud-simple-autoscale-demo/blob/main/demo.py"

QUERY = Request("GET", "/exec/query/", _PLUGIN, query=("q", "format"), accept="*/*")
"""`Accept: application/json` is answered with 406."""
START_CLUSTER = Request(
    "POST",
    "/cloud/actions/startcluster/{cluster}",
    _DEMO,
    query=("wait_time", "recursive", "test_mode"),
)
TERMINATE_CLUSTER = Request(
    "POST",
    "/cloud/actions/terminatecluster/{cluster}",
    _DEMO,
    query=("wait_time", "recursive"),
)
RETRY = Request("POST", "/cloud/actions/retry/{cluster}", _DEMO)

_CONDITIONS = "select Name,Status,Message,NodeCount,Detail,Recommendation using cloud.node.node_status"
_NODES = (
    "select Name,NodeId,Template,State,TargetState,Status,StatusMessage,PhaseFailed,MachineType,InstanceId "
    "from Cloud.Node"
)


def start(cluster: str) -> Call:
    """Start a cluster, as the program that shows it does: `wait_time` only delays the answer."""
    return START_CLUSTER({"wait_time": "30", "recursive": "false", "test_mode": "false"}, cluster=cluster)


def terminate(cluster: str) -> Call:
    """End a cluster."""
    return TERMINATE_CLUSTER({"wait_time": "30", "recursive": "false"}, cluster=cluster)


def conditions(cluster: str) -> Call:
    """What the server says is wrong with the nodes of a cluster, grouped by it."""
    return _query(f"{_CONDITIONS} where ClusterName == {json.dumps(cluster)}")


def nodes(cluster: str) -> Call:
    """The nodes of a cluster without its arrays."""
    where = f"ClusterName === {json.dumps(cluster)} && IsArray =!= true && Abstract =!= true"
    return _query(f"{_NODES} where {where}")


def _query(text: str) -> Call:
    return QUERY({"q": text, "format": "json"})
