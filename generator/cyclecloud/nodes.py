"""A cluster and its nodes, as the CycleCloud command line shows them.

Sources: https://learn.microsoft.com/azure/cyclecloud/cli (show_cluster, show_nodes),
https://learn.microsoft.com/azure/cyclecloud/how-to/start-cluster (states)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..records import record
from ..results.hostlist import natural_key
from .command_line import CommandLine, NotDone

ATTRIBUTES = "Name,Template,State,TargetState,Status,StatusMessage,InstanceId,Instance,NodeId,PhaseFailed"
"""None that holds configuration: there are passwords in it."""
_HEAD = re.compile(r"^\s*(?P<name>\S+) : (?P<state>\w+)(?: -> (?P<target>\w+))?\s*$", re.MULTILINE)
_GONE = frozenset({"", "off", "terminated", "deallocated"})
_FAILED = frozenset({"failed", "unavailable", "error"})


@record
class Node:
    """One of them; `array` is the node array that it is of, or its own name."""

    name: str
    array: str
    state: str
    target: str
    message: str
    instance: str
    address: str

    @property
    def failed(self) -> bool:
        """Whether CycleCloud says so, as Microsoft's own clients read it (Azure/cyclecloud-slurm allocation.py)."""
        return self.state.casefold() in _FAILED

    @property
    def is_there(self) -> bool:
        """Whether a VM of it is there, or is to be."""
        return self.state.casefold() not in _GONE or self.target.casefold() == "started"


@record
class Cluster:
    """What the server says of one cluster."""

    name: str
    state: str
    """Lower case: `off`, `started`, `allocation` …"""
    target: str
    nodes: tuple[Node, ...]

    @property
    def is_started(self) -> bool:
        """Whether it runs or is to run."""
        return (self.target or self.state) not in _GONE

    @property
    def is_changing(self) -> bool:
        """Whether it is on its way, because somebody started or ended it."""
        return bool(self.target) and self.target != self.state


def listing(name: str) -> list[str]:
    """The words that list its nodes."""
    return ["show_nodes", "-c", name, "-a", ATTRIBUTES, "--format=json"]


def look(cyclecloud: CommandLine, name: str) -> Cluster:
    """Ask; raises NotDone where there is no such cluster."""
    shown, listed = cyclecloud.read(["show_cluster", name], listing(name))
    if shown.status != 0 or not re.search(rf"\b{re.escape(name)}\b", shown.out):
        text = " ".join(shown.out.split())[:300]
        raise NotDone(
            f"the server shows no cluster '{name}': {text}", "`cycleforge status` shows how far the first boot is"
        )
    if listed.status != 0:
        raise NotDone(f"the server does not list the nodes of '{name}': {' '.join(listed.out.split())[:300]}")
    nodes = read_nodes(listed.out)
    state, target = _state(shown.out, name, nodes)
    return Cluster(name, state, target, nodes)


def read_nodes(text: str) -> tuple[Node, ...]:
    """The JSON list of `show_nodes`, which may stand behind warnings; nothing at all is no node."""
    at = re.search(r"^\s*[\[{]", text, re.MULTILINE)
    if at is None:
        if text.strip():
            raise NotDone(f"the server lists nodes in a way that is not JSON: {' '.join(text.split())[:200]}")
        return ()
    try:
        rows, _ = json.JSONDecoder().raw_decode(text[at.start() :].lstrip())
    except ValueError:
        raise NotDone("the server lists nodes in a way that is not JSON") from None
    rows = rows if isinstance(rows, list) else [rows]
    nodes = [_node(row) for row in rows if isinstance(row, dict) and row.get("Name")]
    return tuple(sorted(nodes, key=lambda node: natural_key(node.name)))


def _node(row: Mapping[str, Any]) -> Node:
    found = row.get("Instance")
    instance: Mapping[str, Any] = found if isinstance(found, dict) else {}
    name = str(row["Name"])
    return Node(
        name=name,
        array=str(row.get("Template") or name),
        state=str(row.get("Status") or row.get("State") or ""),
        target=str(row.get("TargetState") or ""),
        message=str(row.get("StatusMessage") or ""),
        instance=str(row.get("InstanceId") or instance.get("InstanceId") or ""),
        address=str(instance.get("PrivateIp") or row.get("PrivateIp") or ""),
    )


def _state(text: str, name: str, nodes: tuple[Node, ...]) -> tuple[str, str]:
    """From the heading; a release that prints none has said it of the nodes."""
    for found in _HEAD.finditer(text):
        if found["name"] == name:
            return found["state"].casefold(), (found["target"] or "").casefold()
    return ("started" if any(node.target.casefold() == "started" for node in nodes) else "off"), ""
