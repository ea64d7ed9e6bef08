"""The requests to CycleCloud, each declared once with its source, and with the line that does the same by hand.

No release has a version in the path. Requests that start, end or scale nodes are not among them: the nodes of a cluster
are Slurm's, and its azslurm sends them. What is documented nowhere has a public program that sends it as its source: it
may change with any release, so nothing rests on its answer alone, and what it changes is read back.
Sources: https://learn.microsoft.com/azure/cyclecloud/api and https://learn.microsoft.com/azure/cyclecloud/how-to/use-rest-api
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote, urlencode

from msgspec import Struct

Method = Literal["GET", "POST"]
_HOLE = re.compile(r"\{(\w+)\}")


class Call(Struct, frozen=True):
    request: Request
    path: str
    query: tuple[tuple[str, str], ...] = ()
    cli: str = ""
    """The line of the `cyclecloud` program that does the same; empty where it has none."""

    @property
    def address(self) -> str:
        return f"{self.path}?{urlencode(self.query, quote_via=quote)}" if self.query else self.path


class Request(Struct, frozen=True):
    """One kind of request. `path` has `{names}`, each for one segment, which a call fills; `cli` has the same names."""

    method: Method
    path: str
    source: str
    """Public address of what documents it, or of the program that sends it."""
    query: tuple[str, ...] = ()
    """Options that it takes."""
    cli: str = ""
    """The line of the `cyclecloud` program that does the same; empty where it has none."""
    accept: str = "application/json"

    @property
    def only_asks(self) -> bool:
        return self.method == "GET"

    def __call__(self, query: Mapping[str, str] | None = None, **values: str) -> Call:
        unknown = {*(query or {})} - {*self.query} | values.keys() - {*_HOLE.findall(self.path + self.cli)}
        if unknown:
            raise TypeError(f"{self.path} has no {', '.join(sorted(unknown))}")
        path = _HOLE.sub(lambda found: _segment(values[found[1]]), self.path)
        cli = _HOLE.sub(lambda found: shlex.quote(values[found[1]]), self.cli)
        return Call(self, path, tuple((query or {}).items()), cli)


def _segment(value: str) -> str:
    if value in ("", ".", ".."):
        raise ValueError(f"not a part of a path: {value!r}")
    return quote(value, safe="")


# ---------------------------------------------------------------- documented by Microsoft

_API = "https://learn.microsoft.com/azure/cyclecloud/api"

STATUS = Request(
    "GET", "/clusters/{cluster}/status", _API, query=("nodes",), cli="cyclecloud show_cluster {cluster} --long"
)
USAGE = Request("GET", "/clusters/{cluster}/usage", _API, query=("timeframe", "from", "to", "granularity"))


# ---------------------------------------------------------------- shown by programs only

_PLUGIN = "https://github.com/gingi/cyclecloud-agent-plugin/blob/main/src/cyclecloud-client.ts"
_DEMO = "https://github.com/bwatrous/cyclecloud-simple-autoscale-demo/blob/main/demo.py"

QUERY = Request("GET", "/exec/query/", _PLUGIN, query=("q", "format"), accept="*/*")
"""`Accept: application/json` is answered with 406."""
START_CLUSTER = Request(
    "POST", "/cloud/actions/startcluster/{cluster}", _DEMO, query=("wait_time", "recursive", "test_mode")
)
TERMINATE_CLUSTER = Request(
    "POST", "/cloud/actions/terminatecluster/{cluster}", _DEMO, query=("wait_time", "recursive")
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
