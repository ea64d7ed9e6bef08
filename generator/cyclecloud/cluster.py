"""A cluster as its server has it: nodes, node arrays, and what they may still get; from REST or the command line.

Names of attributes are compared without their case: the documentation writes `state`, programs that run against real
servers read `State`. What a server does not say stays None and is never taken for good or bad.
Sources: https://learn.microsoft.com/azure/cyclecloud/api (ClusterStatus) and
https://github.com/Azure/cyclecloud-scalelib/blob/master/src/hpc/autoscale/node/nodemanager.py;
https://learn.microsoft.com/azure/cyclecloud/cli (show_cluster, show_nodes) and
https://learn.microsoft.com/azure/cyclecloud/how-to/start-cluster (states)
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..results.hostlist import natural_key
from ..words.terminal import printable
from . import requests
from .command_line import CommandLine, NotDone
from .site import Site
from .wire import NotAsked

_FAILED = frozenset({"failed", "unavailable", "error"})
"""As Microsoft's own clients read it: Azure/cyclecloud-slurm allocation.py, and
https://github.com/Azure/cyclecloud-symphony/blob/master/hostProviders/cyclecloud/src/cyclecloud_provider.py"""
_GONE = frozenset({"", "off", "terminated", "deallocated"})
_MAX_TEXT = 2000
ATTRIBUTES = "Name,Template,State,TargetState,Status,StatusMessage,MachineType,InstanceId,Instance"
"""None that holds configuration: there are passwords in it."""
_HEAD = re.compile(r"^\s*(?P<name>\S+) : (?P<state>\w+)(?: -> (?P<target>\w+))?\s*$", re.MULTILINE)


class Node(Struct, frozen=True):
    """One node; texts are printable."""

    name: str
    array: str
    """The node array, and so the partition, that it is of; empty for the scheduler."""
    status: str
    """What the portal shows: Off, Acquiring, Preparing, Ready, Failed, …"""
    target: str
    message: str
    machine_type: str
    address: str
    instance: str
    """The VM; empty where there is none, or it is unknown."""

    @property
    def has_failed(self) -> bool:
        """Whether the server has given it up, at least for now."""
        return self.status.casefold() in _FAILED

    @property
    def is_there(self) -> bool:
        """Whether it has a VM, or will get one."""
        return self.status.casefold() not in _GONE or self.target.casefold() == "started"


class Bucket(Struct, frozen=True):
    """One VM size of a node array."""

    machine_type: str
    active: int | None
    available: int | None
    """How many more it can get now."""
    quota: int | None
    """How many the quota allows."""
    is_valid: bool
    why_not: str
    failed_s: float | None
    """Seconds since Azure last had no capacity; None where that never happened or is not said."""


class Array(Struct, frozen=True):
    name: str
    most: int | None
    buckets: tuple[Bucket, ...]


class Cluster(Struct, frozen=True):
    name: str
    state: str
    """Empty before the first start."""
    target: str
    arrays: tuple[Array, ...]
    nodes: tuple[Node, ...] | None
    """None where the server does not list them."""

    @property
    def listed(self) -> tuple[Node, ...]:
        return self.nodes or ()

    @property
    def failed(self) -> tuple[Node, ...]:
        return tuple(node for node in self.listed if node.has_failed)

    @property
    def is_started(self) -> bool:
        return (self.target or self.state).casefold() not in _GONE

    @property
    def is_changing(self) -> bool:
        """Whether it is starting or stopping."""
        return self.target.casefold() not in ("", self.state.casefold() or "off")

    @property
    def way(self) -> str:
        """`started`, or `allocation -> started` while it is on its way."""
        state = self.state.casefold() or "off"
        return f"{state} -> {self.target.casefold()}" if self.is_changing else state


def cluster(site: Site, name: str) -> Cluster:
    """Ask for it, nodes included. Raises Refused and NotAsked."""
    return read(name, site.get(requests.STATUS({"nodes": "true"}, cluster=name)))


def read(name: str, body: object) -> Cluster:
    """Read ClusterStatus."""
    found = _lower(body)
    arrays = next((value for key, value in found.items() if key.startswith("nodearray")), None)
    if not isinstance(arrays, list):
        raise NotAsked(f"the server's answer for the cluster {name} is not the documented one: it has no node arrays")
    nodes = found.get("nodes")
    return Cluster(
        name,
        _text(found, "state"),
        _text(found, "targetstate"),
        tuple(_array(_lower(each)) for each in arrays),
        nodes_of(nodes) if isinstance(nodes, list) else None,
    )


def nodes_of(rows: object) -> tuple[Node, ...]:
    """The nodes of a list of records, which REST and the command line have in the same form."""
    found = [_lower(each) for each in rows if isinstance(each, Mapping)] if isinstance(rows, list) else []
    return tuple(_node(each) for each in found if each.get("name"))


def _node(found: Mapping[str, Any]) -> Node:
    instance = _lower(found.get("instance"))
    name, array = _text(found, "name"), _text(found, "template", "nodearray")
    return Node(
        name=name,
        array="" if array == name else array,
        status=_text(found, "status", "state"),
        target=_text(found, "targetstate"),
        message=_text(found, "statusmessage"),
        machine_type=_text(found, "machinetype"),
        address=_text(found, "privateip", "ipaddress") or _text(instance, "privateip"),
        instance=_text(found, "instanceid") or _text(instance, "instanceid"),
    )


def _array(found: Mapping[str, Any]) -> Array:
    listed = found.get("buckets")
    buckets = tuple(_bucket(_lower(each)) for each in listed) if isinstance(listed, list) else ()
    return Array(_text(found, "name"), _whole(found.get("maxcount")), buckets)


def _bucket(found: Mapping[str, Any]) -> Bucket:
    failed = found.get("lastcapacityfailure")
    return Bucket(
        machine_type=_text(_lower(found.get("definition")), "machinetype"),
        active=_whole(found.get("activecount")),
        available=_whole(found.get("availablecount")),
        quota=_whole(found.get("quotacount")),
        is_valid=found.get("valid") is not False,
        why_not=_text(found, "invalidreason"),
        failed_s=float(failed) if isinstance(failed, int | float) and failed >= 0 else None,
    )


def _lower(value: object) -> Mapping[str, Any]:
    return {str(name).casefold(): each for name, each in value.items()} if isinstance(value, Mapping) else {}


def _text(found: Mapping[str, Any], *names: str) -> str:
    """The first of these that says something, fit for a terminal, on one line."""
    said = next((found[name] for name in names if isinstance(found.get(name), str | int | float) and found[name]), "")
    return printable(" ".join(str(said).split()))[:_MAX_TEXT]


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def listing(name: str) -> list[str]:
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
