"""The report for people: a line per node, then what to do about it, the worst last where a terminal stops scrolling."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import get_args

from .. import catalog
from ..results.hostlist import compress
from ..words.counts import counted
from ..words.terminal import NOTHING, columns, printable
from .ages import duration, utc
from .assess import STATES, Assessment, Node, State
from .findings import WHOLE_RUN
from .fleet import MIN_NODES, plain
from .grouping import Row, by_check, by_host, short_size
from .result import Cure, FileProblem

_STYLES = {"bad": "\x1b[1;31m", "doubt": "\x1b[1;33m", "good": "\x1b[32m", "title": "\x1b[1m", "": ""}
_RESET = "\x1b[0m"
_STATE_WORDS: dict[State, str] = {"held": "held by the alarm", "unmeasured": "not measured"}
_STATE_STYLES: dict[State, str] = {
    "failed": "bad",
    "held": "bad",
    "missing": "bad",
    "stale": "bad",
    "unmeasured": "doubt",
    "suspect": "doubt",
    "healthy": "good",
}
_VERDICT_STYLES = {"FAIL": "bad", "incomplete": "doubt", "unreadable": "bad", "warn": "doubt", "pass": "good"}
_CURES = get_args(Cure)
"""From the lightest to the worst."""
_SHOWN = 2
"""Findings in the line of a node; the sections below have all."""
_FEW = 20
"""Problems of one kind that are printed; `--json` has all."""
_BY_HAND = "sudo bash /opt/cycleforge/slurm_nhc/health.sh"
_ON_NODE = "systemctl status cycleforge-health.timer; journalctl --unit=cycleforge-health.service"


class Report:
    def __init__(self, assessment: Assessment, *, color: bool = False) -> None:
        self._all = assessment
        self._color = color

    def text(self) -> str:
        sections = (
            self._alarms(),
            self._head(),
            self._table(),
            self._failures(),
            self._suspects(),
            self._unmeasured(),
            self._without_baseline(),
            self._unexpected(),
            self._files(),
            self._next(),
        )
        return "\n".join("".join(f"{line}\n" for line in lines) for lines in map(list, sections) if lines)

    # ------------------------------------------------------------ head and table

    def _alarms(self) -> Iterator[str]:
        if self._all.gathered.alarms:
            yield self._paint("ALARM", "bad") + ": so many nodes fail the same check that they must share a cause"
            yield from (printable(f"  {alarm.text}") for alarm in self._all.gathered.alarms)

    def _head(self) -> Iterator[str]:
        nodes = len(self._all.nodes)
        counts = {state: self._all.count(state) for state in STATES}
        words = [
            self._paint(f"{count} {_STATE_WORDS.get(state, state)}", _STATE_STYLES[state])
            for state, count in counts.items()
            if count
        ]
        yield f"{self._paint(counted(nodes, 'node'), 'title')}: {', '.join(words)}"
        wishes, newest = self._all.wishes, self._all.newest
        if newest is not None:
            own = f"the newest result, {newest.result.time} ({newest.result.node})"
            yield f"ages count from {own if wishes.now is None else utc(wishes.now)}"
        read = f"{counted(self._all.gathered.files, 'file')} read"
        older = self._all.gathered.superseded
        yield f"{read}, {counted(older, 'older result')} left out" if older else read

    def _table(self) -> Iterator[str]:
        kinds = self._all.wishes.kinds
        head = ["node", "VM size", *(word for kind in kinds for word in (kind, "age")), "findings"]
        rows = [[self._paint(word, "title") for word in head]]
        for node in self._all.nodes:
            size = printable(short_size(node.vm_size)) if node.results else NOTHING
            verdicts = (cell for kind in kinds for cell in self._verdict(node, kind))
            rows.append([node.name, size, *verdicts, _in_line(node)])
        yield from columns(rows).splitlines()

    def _verdict(self, node: Node, kind: str) -> list[str]:
        loaded = node.results.get(kind)
        if loaded is None:
            word = "unreadable" if kind in node.unreadable else NOTHING
            return [self._paint(word, _VERDICT_STYLES.get(word, "")), NOTHING]
        failed = any(each.kind == kind for each in node.of("failure"))
        word = "FAIL" if failed else loaded.result.verdict
        if not failed and any(each.kind == kind for each in node.of("unmeasured")):
            word = "incomplete"
        age = (self._all.reference or 0) - loaded.seconds
        text = f"in {duration(-age)}" if age <= -1 else duration(age)
        return [
            self._paint(word, _VERDICT_STYLES.get(word, "")),
            self._paint(text, "bad" if kind in node.stale else ""),
        ]

    # ------------------------------------------------------------ sections

    def _failures(self) -> Iterator[str]:
        rows = by_check(self._all, "failure")
        missing, stale = self._all.named("missing"), self._all.named("stale")
        if not rows and not missing and not stale:
            return
        yield self._paint("FAILURES", "bad")
        yield from self._rows(rows)
        if missing:
            yield f"  missing: {len(missing)} of {len(self._all.wishes.expect)} expected nodes have no result"
            yield f"    {compress(missing)}"
        if stale:
            yield f"  stale: {_count(stale)} with a result that is too old"
            yield f"    {compress(stale)}"
        hosts = by_host(self._all)
        if hosts:
            yield "  by physical host"
            for host in hosts:
                nodes = f"{len(host.nodes)} of {counted(host.of, 'node')}"
                checks = ", ".join(host.checks)
                yield printable(f"    {host.physical_host}  {nodes}  {compress(host.nodes)}: {checks}")

    def _suspects(self) -> Iterator[str]:
        slow = [(each, node.physical_host) for node in self._all.nodes for each in node.deviations]
        warned = by_check(self._all, "warning", suspects=True)
        if slow or warned:
            yield self._paint("SUSPECTS", "doubt")
        for each, host in sorted(slow, key=lambda pair: -pair[0].percent_below):
            word = self._paint("strong ", "bad") if each.strong else self._paint("suspect", "doubt")
            yield f"  {word}  " + printable(f"{each.node}{f' on {host}' if host else ''}: {each.text}")
        if warned:
            yield "  warnings of the nodes' own checks"
            yield from self._rows(warned, "  ")
        yield from self._compared(titled=bool(slow or warned))

    def _compared(self, *, titled: bool) -> Iterator[str]:
        """Yield what was compared and what was not, so that silence does not look like agreement."""
        groups = self._all.groups
        if not groups:
            return
        if not titled:
            yield self._paint("FLEET", "title")
        allowed = catalog.health().fleet_statistics
        yield (
            "  compared with the median of their VM size: "
            f"suspect below by more than {allowed.warn_percent_below_expected} %, "
            f"strong by more than {allowed.fail_percent_below_expected} %"
        )
        for group in groups:
            what = printable(f"{group.check} of {group.nodes} {short_size(group.vm_size)}")
            if group.median is None:
                yield f"    {what}: not compared, fewer than {MIN_NODES} nodes with a value"
            else:
                yield f"    {what}: median {plain(group.median)} {printable(group.unit)}"

    def _unmeasured(self) -> Iterator[str]:
        rows = by_check(self._all, "unmeasured")
        unreadable = [node.name for node in self._all.nodes if node.unreadable]
        if rows or unreadable:
            yield self._paint("NOT MEASURED", "doubt")
            yield from self._rows(rows)
        if unreadable:
            yield f"  unreadable: {_count(unreadable)} with a result that cannot be used (see FILES)"
            yield f"    {compress(unreadable)}"

    def _unexpected(self) -> Iterator[str]:
        names = [node.name for node in self._all.nodes if node.is_unexpected]
        if names:
            yield self._paint("NOT EXPECTED", "title") + f": {_count(names)}; remove the results of those that are gone"
            yield f"    {compress(names)}"

    def _without_baseline(self) -> Iterator[str]:
        rows = by_check(self._all, "no_baseline")
        if rows:
            yield self._paint("NO BASELINE", "title") + ": no limit has been published for these checks"
            yield from self._rows(rows)

    def _files(self) -> Iterator[str]:
        if self._all.gathered.problems:
            yield self._paint("FILES", "bad" if self._all.gathered.has_errors else "doubt")
            yield from problem_lines(self._all.gathered.problems)

    def _rows(self, rows: Sequence[Row], indent: str = "") -> Iterator[str]:
        for row in rows:
            of = f"{len(row.nodes)} of {row.of} {short_size(row.vm_size)}"
            yield printable(f"{indent}  {row.check}: {of}{f': {row.words}' if row.words else ''}")
            yield f"{indent}    {row.host_list}"

    # ------------------------------------------------------------ what to do

    def _next(self) -> Iterator[str]:
        steps = list(self._steps())
        if steps:
            yield self._paint("NEXT", "title")
            yield from steps

    def _steps(self) -> Iterator[str]:
        if self._all.gathered.alarms:
            yield "  look for the shared cause of the alarm first"
            yield "    on the scheduler: journalctl --unit=cycleforge-guard.service"
        failed, held = self._all.named("failed"), set(self._all.named("held"))
        if held:
            yield f"    nodes that fail nothing else need no drain: {compress(held)}"
        if failed:
            yield from self._failed_steps(failed)
        silent = [name for name in self._all.named("missing", "stale") if name not in {*failed, *held}]
        if silent:
            yield f"  find out why {_count(silent)} {_is(silent)} silent"
            yield f"    sinfo --Node --nodes={compress(silent)}"
            yield f"    on the node: {_ON_NODE}"
        left = set(self._all.named("unmeasured")) - set(failed) - set(silent) - held
        if left:
            yield f"  see above why {_count(left)} {_is(left)} not measured: {compress(left)}"
        strong = [node.name for node in self._all.nodes if any(each.strong for each in node.deviations)]
        if strong:
            yield f"  check {_count(strong)} again, much slower than the others: {compress(strong)}"
            yield "    if a node stays slow: drain it and report its physical host to Azure"
        if left or strong:
            yield f"  to check a drained or idle node by hand, on the node: {_BY_HAND} deep now; {_BY_HAND} quick"

    def _failed_steps(self, failed: Sequence[str]) -> Iterator[str]:
        """Yield how to drain the nodes that failed, then how to repair them."""
        yield f"  pull {_count(failed)} that failed; slurm_nhc has drained those that sinfo -R shows with its reason"
        # Not "CycleForge health:", which slurm_nhc would take for its own; and a drain by hand it never lifts.
        rows = by_check(self._all, "failure")
        checks = list(dict.fromkeys(row.check for row in rows if not set(failed).isdisjoint(row.nodes)))
        reason = f"drained by hand: {', '.join(checks[:3])}{', …' if len(checks) > 3 else ''}".replace('"', "'")
        yield "    drain the others by hand, and resume them by hand later:"
        yield printable(f'    sudo scontrol update NodeName={compress(failed)} State=DRAIN Reason="{reason}"')
        worst = {node.name: _cure(node) for node in self._all.nodes if node.name in failed and node.of("failure")}
        boot = [name for name, cure in worst.items() if cure in ("reset", "reboot")]
        if boot:
            yield f"  reboot {_count(boot)}; slurm_nhc then resumes those that pass: {compress(boot)}"
            yield "    on the node, when it runs no job: sudo reboot"
        replace = [name for name, cure in worst.items() if cure == "service"]
        if replace:
            yield f"  report the physical {_hosts(replace)} of {_count(replace)} to Azure, then take other VMs"
            yield f"    sudo scontrol update NodeName={compress(replace)} State=POWER_DOWN"
            yield f"    or, when a fault is repaired without that, on the node: {_BY_HAND} repaired"

    def _paint(self, text: str, style: str) -> str:
        code = _STYLES[style]
        return f"{code}{text}{_RESET}" if self._color and code else text


def _cure(node: Node) -> Cure:
    """Return what repairs the worst failure of a node."""
    return max((loaded.result.cure for loaded in node.results.values()), key=_CURES.index)


def _in_line(node: Node) -> str:
    """Return the first findings of a node, the certain ones first."""
    words = list(_all_findings(node))
    more = f"; +{len(words) - _SHOWN} more" if len(words) > _SHOWN else ""
    return printable("; ".join(words[:_SHOWN]) + more)


def _all_findings(node: Node) -> Iterator[str]:
    if node.is_missing:
        yield "missing: expected, but no result"
    for finding in node.of("failure"):
        yield finding.text if finding.check != WHOLE_RUN else f"{finding.kind} run: {finding.detail}"
    yield from node.stale.values()
    for kind in node.unreadable:
        yield f"{'a' if kind == '?' else kind} result cannot be read"
    unmeasured = node.of("unmeasured")
    whole: dict[str, list[str]] = {}
    for finding in unmeasured:
        if finding.check == WHOLE_RUN:
            whole.setdefault(finding.detail, []).append(finding.kind)
    for detail, kinds in whole.items():
        yield f"{' and '.join(kinds)}: {detail}"
    names = dict.fromkeys(finding.check for finding in unmeasured if finding.check != WHOLE_RUN)
    if names:
        yield f"not measured: {', '.join(names)}"
    for each in node.deviations:
        word = "strong suspect" if each.strong else "suspect"
        yield f"{word}: {each.group.check} {each.percent_below:.1f} % below the median"
    for finding in node.of("warning"):
        yield f"warns: {finding.text}"
    if node.is_unexpected:
        yield "not in --expect"


def _count(names: Collection[str]) -> str:
    return counted(len(names), "node")


def _hosts(names: Collection[str]) -> str:
    return "host" if len(names) == 1 else "hosts"


def _is(names: Collection[str]) -> str:
    return "is" if len(names) == 1 else "are"


def problem_lines(problems: Sequence[FileProblem]) -> Iterator[str]:
    """Yield the problems file by file, at most 20 of a kind."""
    shown: dict[str, int] = {}
    for problem in problems:
        shown[problem.kind] = shown.get(problem.kind, 0) + 1
        if shown[problem.kind] <= _FEW:
            yield printable(f"  {problem.place}: {problem.level}: {problem.message}")
            yield printable(f"    hint: {problem.hint}")
    for kind, count in shown.items():
        if count > _FEW:
            yield f"  and {count - _FEW} more of the kind {kind.replace('_', ' ')}; --json lists all"
