"""The state of every node, from the newest results and what the user expects. Pure: no clock, no files."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

from msgspec import Struct

from ..results.hostlist import natural_key
from .ages import duration
from .findings import WHOLE_RUN, Class, Finding, findings_of
from .fleet import Deviation, Group, compare
from .gather import Gathered
from .read import Loaded
from .result import KINDS, FileProblem

State = Literal["failed", "held", "missing", "stale", "unmeasured", "suspect", "healthy"]
STATES: tuple[State, ...] = get_args(State)
"""From the worst; a node is counted once, in the first that fits."""
FUTURE_S = 300.0
"""How far a node's clock may be ahead before its results are not trusted; chrony keeps nodes within milliseconds."""


class Wishes(Struct, frozen=True):
    """The options of a report. Times are in seconds since 1970, ages in seconds."""

    expect: tuple[str, ...] = ()
    kinds: tuple[str, ...] = KINDS
    now: float | None = None
    """None: ages count from the newest result."""
    max_age_s: float | None = None
    """Of quick results."""
    max_deep_age_s: float | None = None
    allow_unmeasured: bool = False

    def limit(self, kind: str) -> float | None:
        return self.max_age_s if kind == "quick" else self.max_deep_age_s


@dataclass
class Node:
    name: str
    results: dict[str, Loaded] = field(default_factory=dict)
    unreadable: tuple[str, ...] = ()
    """Kinds whose only file cannot be used; `?` when the file does not tell the kind."""
    findings: tuple[Finding, ...] = ()
    stale: dict[str, str] = field(default_factory=dict)
    """Kind → why its result is too old to be trusted."""
    deviations: tuple[Deviation, ...] = ()
    is_missing: bool = False
    is_unexpected: bool = False
    is_held: bool = False
    """It only fails checks that have an alarm: the guard handles it, and it comes back with the others."""

    @cached_property
    def vm_size(self) -> str:
        """Return the VM size of the newest result in lower case; empty when unknown."""
        return self._newest("vm_size").lower()

    @cached_property
    def physical_host(self) -> str:
        return self._newest("physical_host")

    def of(self, sort: Class) -> list[Finding]:
        return [each for each in self.findings if each.sort == sort] if self.findings else []

    @property
    def states(self) -> tuple[State, ...]:
        """Return every state that fits, the worst first."""
        fits: dict[State, bool] = {
            "failed": bool(self.of("failure")) and not self.is_held,
            "held": self.is_held,
            "missing": self.is_missing,
            "stale": bool(self.stale),
            "unmeasured": bool(self.of("unmeasured") or self.unreadable),
            "suspect": not self.of("failure") and bool(self.deviations or self.of("warning")),
        }
        return tuple(state for state in STATES if fits.get(state)) or ("healthy",)

    @property
    def state(self) -> State:
        return self.states[0]

    def _newest(self, name: str) -> str:
        ordered = sorted(self.results.values(), key=lambda loaded: -loaded.seconds)
        return next((text for loaded in ordered if (text := getattr(loaded.result, name))), "")


class Assessment(Struct, frozen=True, dict=True):
    """The content of a report."""

    nodes: tuple[Node, ...]
    groups: tuple[Group, ...]
    gathered: Gathered
    reference: float | None
    """Seconds since 1970 from which ages count; None without any result."""
    newest: Loaded | None
    wishes: Wishes

    @cached_property
    def totals(self) -> dict[tuple[str, str], int]:
        """Count the nodes that report a check, by check and VM size; all nodes of a size under WHOLE_RUN."""
        of_size: dict[str, Counter[str]] = defaultdict(Counter)
        for node in self.nodes:
            lists = (loaded.result.checks for loaded in node.results.values())
            of_size[node.vm_size].update({WHOLE_RUN, *(check.check for checks in lists for check in checks)})
        return {(name, size): count for size, names in of_size.items() for name, count in names.items()}

    @cached_property
    def states(self) -> dict[str, tuple[State, ...]]:
        """Return the states of each node by its name; it is counted in the first."""
        return {node.name: node.states for node in self.nodes}

    def named(self, *states: State) -> list[str]:
        """Return the names of the nodes that are in one of the states, counted there or not."""
        return [name for name, fits in self.states.items() if any(state in fits for state in states)]

    def count(self, state: State) -> int:
        return sum(fits[0] == state for fits in self.states.values())

    @property
    def is_healthy(self) -> bool:
        """Return False for an alarm, and when a node failed, is missing, stale or, unless allowed, unmeasured."""
        bad: list[State] = ["failed", "held", "missing", "stale"]
        if not self.wishes.allow_unmeasured:
            bad.append("unmeasured")
        return not self.gathered.alarms and not self.named(*bad)


def assess(gathered: Gathered, wishes: Wishes) -> Assessment:
    """Judge every node that has a result, a broken file, or is expected."""
    nodes: dict[str, Node] = {}
    for (name, kind), loaded in gathered.newest.items():
        if kind in wishes.kinds:
            nodes.setdefault(name, Node(name)).results[kind] = loaded
    _add_unreadable(nodes, gathered.problems, wishes)
    newest = max(
        (each for node in nodes.values() for each in node.results.values()),
        default=None,
        key=lambda loaded: (loaded.seconds, loaded.result.node),
    )
    reference = wishes.now if wishes.now is not None else newest.seconds if newest else None
    _add_expected(nodes, wishes.expect)
    groups, deviations = compare(each.result for node in nodes.values() for each in node.results.values())
    of_node: dict[str, list[Deviation]] = {}
    for each in deviations:
        of_node.setdefault(each.node, []).append(each)
    shared = {alarm.check for alarm in gathered.alarms}
    for node in nodes.values():
        node.findings = (*findings_of(node.results), *_absent(node, wishes.kinds))
        failed = {each.check for each in node.of("failure")}
        node.is_held = bool(failed) and failed <= shared
        node.stale = _stale(node, reference, wishes)
        if not failed:
            # A node that fails is pulled anyway, slow or not.
            node.deviations = tuple(of_node.get(node.name, ()))
    ordered = tuple(nodes[name] for name in sorted(nodes, key=natural_key))
    return Assessment(ordered, groups, gathered, reference, newest, wishes)


def _add_unreadable(nodes: dict[str, Node], problems: Iterable[FileProblem], wishes: Wishes) -> None:
    for problem in problems:
        if problem.level == "error" and problem.node and problem.check_kind in ("", *wishes.kinds):
            node = nodes.setdefault(problem.node, Node(problem.node))
            if problem.check_kind not in node.results:
                node.unreadable = tuple(sorted({*node.unreadable, problem.check_kind or "?"}))


def _add_expected(nodes: dict[str, Node], expect: Sequence[str]) -> None:
    if not expect:
        return
    wanted = set(expect)
    for name in nodes:
        nodes[name].is_unexpected = name not in wanted
    for name in expect:
        if name not in nodes:
            nodes[name] = Node(name, is_missing=True)


def _absent(node: Node, kinds: Iterable[str]) -> Iterable[Finding]:
    if not node.is_missing:
        for kind in kinds:
            if kind not in node.results and kind not in node.unreadable:
                yield Finding("unmeasured", kind, WHOLE_RUN, detail=f"no {kind} result")


def _stale(node: Node, reference: float | None, wishes: Wishes) -> dict[str, str]:
    stale: dict[str, str] = {}
    for kind, loaded in node.results.items():
        limit = wishes.limit(kind)
        if limit is None or reference is None:
            continue
        age = reference - loaded.seconds
        if age > limit:
            stale[kind] = f"{kind} result is {duration(age)} old, at most {duration(limit)}"
        elif age < -FUTURE_S:
            stale[kind] = (
                f"{kind} result is {duration(-age)} in the future: the clock of the node or of this machine is wrong"
            )
    return stale
