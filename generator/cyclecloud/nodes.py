"""A cluster and its nodes, as the CycleCloud command line shows them.

Sources: https://learn.microsoft.com/azure/cyclecloud/cli (show_cluster, show_nodes),
https://learn.microsoft.com/azure/cyclecloud/how-to/start-cluster (states)
"""

from __future__ import annotations

import json
import re

from ..results.hostlist import natural_key
from .cluster import Cluster, Node, nodes_of
from .command_line import CommandLine, NotDone

ATTRIBUTES = "Name,Template,State,TargetState,Status,StatusMessage,MachineType,InstanceId,Instance"
"""None that holds configuration: there are passwords in it."""
_HEAD = re.compile(r"^\s*(?P<name>\S+) : (?P<state>\w+)(?: -> (?P<target>\w+))?\s*$", re.MULTILINE)


def listing(name: str) -> list[str]:
    """The words that list its nodes."""
    return ["show_nodes", "-c", name, "-a", ATTRIBUTES, "--format=json"]


def look(cyclecloud: CommandLine, name: str) -> Cluster:
    """Ask; raises NotDone where there is no such cluster."""
    shown, listed = cyclecloud.read(["show_cluster", name], listing(name))
    if shown.status != 0 or not re.search(rf"\b{re.escape(name)}\b", shown.out):
        text = " ".join(shown.out.split())[:300]
        raise NotDone(
            f"the server shows no cluster '{name}': {text}", "`cycleforge status NAME` shows how far the first boot is"
        )
    if listed.status != 0:
        raise NotDone(f"the server does not list the nodes of '{name}': {' '.join(listed.out.split())[:300]}")
    nodes = read_nodes(listed.out)
    state, target = _state(shown.out, name, nodes)
    return Cluster(name, state, target, (), nodes)


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
    nodes = nodes_of(rows if isinstance(rows, list) else [rows])
    return tuple(sorted(nodes, key=lambda node: natural_key(node.name)))


def _state(text: str, name: str, nodes: tuple[Node, ...]) -> tuple[str, str]:
    """From the heading; a release that prints none has said it of the nodes."""
    for found in _HEAD.finditer(text):
        if found["name"] == name:
            return found["state"].capitalize(), (found["target"] or found["state"]).capitalize()
    state = "Started" if any(node.target.casefold() == "started" for node in nodes) else "Off"
    return state, state
