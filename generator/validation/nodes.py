"""What the runs say of each node: which to replace and why, which to look at, which were not measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, get_args

from msgspec import Struct

from ..results.hostlist import compress, natural_key
from .figures import Measured
from .peers import outliers
from .record import Check, Proof, Run
from .shown import figure, in_words

State = Literal["replace", "suspect", "watch", "unmeasured", "good"]
STATES: tuple[State, ...] = get_args(State)
"""From the worst; a node is counted once, in the first that fits."""
TONES: dict[State, str] = {"replace": "fail", "suspect": "warn", "watch": "warn", "unmeasured": "error", "good": "pass"}
"""The verdict that has the colour of a state."""


class Finding(Struct, frozen=True):
    """One reason why a node is in its state."""

    state: State
    check: str
    text: str
    run: str
    """The run or proof that says so."""


class NodeView(Struct, frozen=True):
    cluster: str
    name: str
    physical_host: str
    vm_size: str
    findings: tuple[Finding, ...]
    seen: str
    """Start of the newest run that it was in."""

    @property
    def state(self) -> State:
        """Return the worst state of its findings."""
        return min((each.state for each in self.findings), key=STATES.index, default="good")

    @property
    def state_words(self) -> str:
        return "not measured" if self.state == "unmeasured" else self.state


Place = tuple[str, str]
"""Cluster and node."""


def nodes_of(
    runs: Sequence[Run], current: Sequence[tuple[Run, list[Measured]]], proofs: Sequence[Proof] = ()
) -> tuple[NodeView, ...]:
    """Return every node of the runs, the worst first.

    `current` are the newest runs of each job with their checks, `proofs` the newest of each place.
    """
    newest: dict[Place, Run | Proof] = {(proof.cluster, each.name): proof for proof in proofs for each in proof.replace}
    hosts = {(proof.cluster, each.name): each.physical_host for proof in proofs for each in proof.replace}
    for run in runs:
        for node in run.nodes:
            place = run.cluster, node.name
            newest[place] = run
            if node.physical_host:
                hosts[place] = node.physical_host
        for check in run.checks:
            for name in check.nodes if len(check.nodes) == 1 else ():
                newest.setdefault((run.cluster, name), run)
    found: dict[Place, list[Finding]] = {}
    for place, finding in (*_failures(runs, hosts), *_slower(current), *_taken_out(proofs, hosts)):
        found.setdefault(place, []).append(finding)
    views = [
        NodeView(
            cluster, name, hosts.get((cluster, name), ""), run.vm_size,
            tuple(sorted(found.get((cluster, name), ()), key=lambda each: STATES.index(each.state))), run.started,
        )
        for (cluster, name), run in newest.items()
    ]  # fmt: skip
    return tuple(sorted(views, key=lambda view: (STATES.index(view.state), view.cluster, natural_key(view.name))))


_OWN: dict[str, State] = {"fail": "replace", "warn": "watch", "error": "unmeasured"}
_SHARED: dict[str, State] = {"fail": "suspect", "warn": "watch"}


def _failures(runs: Sequence[Run], hosts: Mapping[Place, str]) -> Iterator[tuple[Place, Finding]]:
    """Yield what checks say of nodes, unless a later run of the same job measured the same again."""
    places: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        places.setdefault(run.place, []).append(run)
    for same in places.values():
        later = _Later()
        for run in reversed(same):
            of_run: dict[str, str] | None = None
            alike: str | None = None
            for check in run.checks:
                if check.verdict == "pass" or check.verdict == "no_baseline" or not check.nodes:
                    continue
                own = len(check.nodes) == 1
                state = (_OWN if own else _SHARED).get(check.verdict)
                # What all nodes of a run share tells nothing of one of them.
                if state is None or (not own and len(check.nodes) >= len(run.nodes)) or later.have(check):
                    continue
                if state == "replace":
                    alike = alike if alike is not None else _fail_alike(run)
                    if alike:
                        state = "suspect"
                of_run = of_run if of_run is not None else {node.name: node.physical_host for node in run.nodes}
                for node in check.nodes:
                    host = of_run.get(node, "")
                    if host and hosts.get((run.cluster, node), host) != host:
                        continue  # another VM has taken the name since
                    text = _words(check, node) + (f"; {alike}" if alike and state == "suspect" and own else "")
                    yield (run.cluster, node), Finding(state, check.check, text, run.label)
            later.add(run)


def _fail_alike(run: Run) -> str:
    """Explain why the failures are no fault of a single node: more than half of the nodes have them, as in `prove.sh`.

    Empty when they are fewer.
    """
    failed = {check.nodes[0] for check in run.checks if check.verdict == "fail" and len(check.nodes) == 1}
    if len(run.nodes) < 2 or len(failed) * 2 <= len(run.nodes):
        return ""
    words = "look first for what they have in common (image, driver, settings)"
    return f"{len(failed)} of {len(run.nodes)} nodes fail: {words}"


def _taken_out(proofs: Sequence[Proof], hosts: Mapping[Place, str]) -> Iterator[tuple[Place, Finding]]:
    """Yield the nodes that a proof took out, unless a different VM has the name now."""
    for proof in proofs:
        for each in proof.replace:
            place = proof.cluster, each.name
            if each.physical_host and hosts[place] != each.physical_host:
                continue
            text = "; ".join(part for part in (each.why, each.how) if part)
            yield place, Finding("replace", f"gate {each.gate}", text, f"prove-{proof.prove}")


class _Later:
    """The checks of later runs, indexed only once an earlier run has failed."""

    def __init__(self) -> None:
        self._runs: list[Run] = []
        self._index: set[tuple[str, tuple[str, ...]]] = set()

    def add(self, run: Run) -> None:
        self._runs.append(run)

    def have(self, check: Check) -> bool:
        for run in self._runs:
            self._index.update((each.check, tuple(each.nodes)) for each in run.checks if each.nodes)
        self._runs.clear()
        return (check.check, tuple(check.nodes)) in self._index


def _words(check: Check, node: str) -> str:
    others = [name for name in check.nodes if name != node]
    words = in_words(check)
    shared = f"together with {compress(others)}" if others else ""
    return "; ".join(part for part in (words, shared, check.detail) if part)


def _slower(current: Sequence[tuple[Run, list[Measured]]]) -> Iterator[tuple[Place, Finding]]:
    """Yield the nodes that pass and are slower than their peers in the newest run of a job."""
    for run, checks in current:
        for each in checks:
            if len(each.checks) < 2:
                continue
            failed = {check.node for check in each.checks if check.verdict in ("fail", "warn")}
            for outlier in outliers(each.of_nodes, each.unit):
                if outlier.node in failed:
                    continue
                text = (
                    f"{figure(outlier.value)} {each.unit}, {outlier.percent:.1f} % below the median of "
                    f"{len(each.of_nodes)} nodes"
                )
                yield (
                    (run.cluster, outlier.node),
                    Finding("suspect" if outlier.is_strong else "watch", each.subject, text, run.label),
                )
