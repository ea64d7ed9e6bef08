"""Findings of many nodes together: by check and VM size, and by physical host, so that one cause shows as one."""

from __future__ import annotations

from msgspec import Struct

from .. import catalog
from ..results.hostlist import compress
from .assess import Assessment, Node
from .findings import WHOLE_RUN, Class, Finding, in_words, number


class Row(Struct, frozen=True):
    """One check on the nodes of one VM size."""

    check: str
    vm_size: str
    nodes: tuple[str, ...]
    of: int
    """Nodes of the VM size that report the check at all."""
    words: str
    """Values, limit, unit and detail."""

    @property
    def host_list(self) -> str:
        return compress(self.nodes)


class Host(Struct, frozen=True):
    physical_host: str
    nodes: tuple[str, ...]
    of: int
    """Nodes on it that have a result."""
    checks: tuple[str, ...]


def by_check(assessment: Assessment, sort: Class, *, suspects: bool = False) -> list[Row]:
    """Return the findings of one class, the most frequent first; with `suspects`, without the nodes that fail."""
    found: dict[tuple[str, str], list[tuple[str, Finding]]] = {}
    for node in assessment.nodes:
        found_here = node.of(sort)
        if not found_here or (suspects and "suspect" not in assessment.states[node.name]):
            continue
        for finding in found_here:
            check = f"{finding.kind} run" if finding.check == WHOLE_RUN else finding.check
            found.setdefault((check, node.vm_size), []).append((node.name, finding))
    if not found:
        return []
    totals = assessment.totals
    rows = [
        Row(
            check,
            size,
            tuple(dict.fromkeys(name for name, _ in entries)),
            totals.get((check, size), totals.get((WHOLE_RUN, size), 0)),
            _words([finding for _, finding in entries]),
        )
        for (check, size), entries in found.items()
    ]
    return sorted(rows, key=lambda row: (-len(row.nodes), row.check, row.vm_size))


def by_host(assessment: Assessment) -> list[Host]:
    """Return the known physical hosts of failing nodes, the one with the most first."""
    total: dict[str, int] = {}
    failing: dict[str, list[Node]] = {}
    for node in assessment.nodes:
        if node.physical_host:
            total[node.physical_host] = total.get(node.physical_host, 0) + 1
            if node.of("failure"):
                failing.setdefault(node.physical_host, []).append(node)
    hosts = [
        Host(
            host,
            tuple(node.name for node in nodes),
            total[host],
            tuple(dict.fromkeys(finding.check for node in nodes for finding in node.of("failure"))),
        )
        for host, nodes in failing.items()
    ]
    return sorted(hosts, key=lambda host: (-len(host.nodes), host.physical_host))


def short_size(vm_size: str) -> str:
    """Return the VM size as Azure writes it, without `Standard_`; `unknown` when it is empty."""
    name = catalog.canonical_vm_size(vm_size) or vm_size
    prefix = "standard_"
    return (name[len(prefix) :] if name.lower().startswith(prefix) else name) or "unknown"


def _words(findings: list[Finding]) -> str:
    """`41.2 to 46.8 GB/s, at least 48 GB/s (GPU 3; and 2 more details)`."""
    shapes = dict.fromkeys((each.relation, each.limit, each.unit) for each in findings)
    parts = []
    for relation, limit, unit in shapes:
        values = [each.value for each in findings if (each.relation, each.limit, each.unit) == (relation, limit, unit)]
        parts.append(in_words(_span(values), relation, limit, unit))
    details = [detail for detail in dict.fromkeys(each.detail for each in findings) if detail]
    text = "; ".join(part for part in parts if part)
    if details:
        more = f"; and {len(details) - 1} more like it" if len(details) > 1 else ""
        text = f"{text} ({details[0]}{more})" if text else f"{details[0]}{more}"
    return text


def _span(values: list[str]) -> str:
    numbers = {value: parsed for value in values if (parsed := number(value)) is not None}
    if not numbers:
        return next((value for value in values if value), "")
    least, most = min(numbers, key=lambda value: numbers[value]), max(numbers, key=lambda value: numbers[value])
    return least if numbers[least] == numbers[most] else f"{least} to {most}"
