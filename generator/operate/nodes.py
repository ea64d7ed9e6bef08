"""The nodes of a cluster according to CycleCloud and Slurm, and the ends of the logs of its machines."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..cyclecloud import slurm
from ..cyclecloud.cluster import Cluster, Node, listing
from ..cyclecloud.logs import MOST_BYTES, PATHS, follow_command, line, read, role_of
from ..cyclecloud.slurm import Queue, SlurmNode
from ..errors import AzureRefused
from ..plan.ssh_config import host_of
from ..results.hostlist import natural_key
from ..words.terminal import printable
from .cluster import Place

_BY_AZURE_BYTES = 6_000
"""Of each file, where 4,096 packed bytes pass: logs pack well."""


class Nodes(Struct, frozen=True):
    cluster: Cluster
    rows: list[dict[str, object]]
    """One for each node that has a VM, or should have one."""
    unknown: str
    """Why Slurm's states are unknown."""
    has_queue: bool


def nodes(place: Place) -> Nodes:
    seen = place.look()
    queue, unknown = place.queue(seen)
    return Nodes(seen, _rows(seen, queue), unknown, queue is not None)


def listing_lines(place: Place) -> list[str]:
    asked = place.lines(["cyclecloud", *listing(place.name)])
    return [*asked, *place.lines(slurm.NODES.split(), host="scheduler")]


def _rows(seen: Cluster, queue: Queue | None) -> list[dict[str, object]]:
    """Return a row for each node of CycleCloud, then for those that only Slurm believes to run."""
    by_slurm = {node.name: node for node in queue.nodes} if queue else {}
    there = sorted((node for node in seen.listed if node.is_there), key=lambda node: natural_key(node.name))
    rows = [_row(node, by_slurm.get(node.name)) for node in there]
    others = by_slurm.keys() - {node.name for node in there}
    return rows + [_row(None, node) for node in by_slurm.values() if node.name in others and not node.is_down]


def _row(node: Node | None, other: SlurmNode | None) -> dict[str, object]:
    # A scheduler or a login node is in no partition.
    partition = ",".join(other.partitions) if other else node.array if node else ""
    reasons = [node.message if node else "", other.reason if other else ""]
    return {
        "name": node.name if node else other.name if other else "",
        "partition": partition or None,
        "state": node.status if node else None,
        "target": node.target or None if node else None,
        "failed": bool(node and node.has_failed),
        "slurm": other.shown if other else None,
        "instance": node.instance or None if node else None,
        "address": node.address or None if node else None,
        "reason": "; ".join(dict.fromkeys(filter(None, reasons))) or None,
    }


# ---------------------------------------------------------------- logs


class Tail(Struct, frozen=True):
    path: str
    lines: tuple[str, ...]


def log_line(place: Place, host: str, lines: int) -> list[str]:
    host = _called(place, host)
    return place.node(host).line(line(role_of(host), lines))


def logs(place: Place, host: str, lines: int) -> list[Tail]:
    """Return the ends of a machine's logs, without secrets and control characters."""
    host = _called(place, host)
    role, hide = role_of(host), place.hide()
    most = MOST_BYTES
    if role == "server":
        place.server.prove()
        most = MOST_BYTES if place.server.is_direct else _BY_AZURE_BYTES
    found = read(place.server if role == "server" else place.node(host), PATHS[role], lines, most)
    if not found:
        raise _none(host)
    return [
        Tail(_shown(hide.clean(log.path)[0]), tuple(map(_shown, hide.clean(log.text)[0].splitlines()))) for log in found
    ]


def follow(place: Place, host: str, lines: int) -> Iterator[str]:
    """Yield lines of the logs as they are written, without end. Raises AzureRefused when the host stops."""
    host = _called(place, host)
    hide, last = place.hide(), ""
    for row in place.node(host).follow(follow_command(PATHS[role_of(host)], lines)):
        last = _shown(hide.clean(row)[0])
        yield last
    if not last:
        raise _none(host)
    raise AzureRefused(f"{host} has stopped showing its logs: {last}", "run the same command again")


def _called(place: Place, host: str) -> str:
    known = host_of(place.plan, host)
    return "scheduler" if known == place.slurm.scheduler.host_name else known


def _none(host: str) -> AzureRefused:
    paths = ", ".join(PATHS[role_of(host)])
    return AzureRefused(f"{host} has none of these logs: {paths}", "they begin with its first boot")


def _shown(text: str) -> str:
    return printable(text.expandtabs())
