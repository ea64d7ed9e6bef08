"""The report as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..results.hostlist import compress
from ..words.counts import counted
from ..words.terminal import columns, printable
from .assess import Assessment, commands, headline, word
from .compare import Comparison
from .figures import Measured
from .nodes import TONES, NodeView
from .record import WORDS, Check, rank
from .shown import duration, in_words, moment, percent, with_unit

_RESET = "\x1b[0m"
_STYLES = {
    "title": "\x1b[1m", "pass": "\x1b[32m", "warn": "\x1b[33m", "fail": "\x1b[31m", "error": "\x1b[35m",
    "no_baseline": "\x1b[35m",
}  # fmt: skip
_FEW = 20
"""Rows of a kind; --json and the page have all."""


class Report:
    def __init__(self, assessment: Assessment, comparison: Comparison | None = None, *, color: bool = False) -> None:
        self._all = assessment
        self._comparison = comparison
        self._color = color

    def text(self) -> str:
        sections = [
            self._head(),
            self._proofs(),
            self._jobs(),
            self._nodes(),
            self._next(),
            self._checks(),
            self._worse(),
        ]
        if self._comparison:
            sections.append(self._sides(self._comparison))
        sections.append(self._files())
        texts = ["\n".join(lines) for section in sections if (lines := list(section))]
        return "\n\n".join(texts) + "\n"

    def _head(self) -> Iterator[str]:
        verdict = self._all.verdict
        yield f"{self._paint(word(verdict), verdict)}: {printable(headline(self._all))}"
        newest = self._all.newest
        if newest is not None:
            runs = counted(len(self._all.runs), "run")
            yield printable(f"{runs} read; ages count from the newest, {newest.job} run {newest.run}, {newest.started}")

    def _proofs(self) -> Iterator[str]:
        for proof in self._all.proofs:
            where = printable(" ".join(text for text in (proof.level, "on", proof.cluster, proof.partition) if text))
            verdict = self._paint(WORDS[proof.verdict], proof.verdict)
            yield f"{self._paint('PROOF', 'title')}: {where}, {moment(proof.started)} UTC: {verdict}"
            rows = []
            for gate in proof.gates:
                known = WORDS.get(gate.verdict, "left out")
                rows.append([printable(gate.gate), self._paint(known, gate.verdict), printable(gate.summary)])
            yield from columns(rows, indent="  ").splitlines()

    def _jobs(self) -> Iterator[str]:
        newest = self._all.newest
        if newest is None:
            return
        yield self._paint("JOBS", "title")
        rows: list[list[object]] = [["job", "verdict", "nodes", "run", "started (UTC)", "age", "took", "summary"]]
        ordered = sorted(self._all.current, key=lambda each: (-rank(each[0].verdict), each[0].started, each[0].job))
        for run, _ in ordered:
            age = newest.seconds - run.seconds
            rows.append([
                printable(run.job), self._paint(WORDS[run.verdict], run.verdict), len(run.nodes), printable(run.run),
                moment(run.started), duration(age) if age else "newest", duration(run.duration_s) or "no end",
                printable("; ".join(text for text in (run.doubt, run.summary) if text)),
            ])  # fmt: skip
        yield from columns(rows, indent="  ").splitlines()

    def _nodes(self) -> Iterator[str]:
        bad = [view for view in self._all.nodes if view.state != "good"]
        if bad:
            yield self._paint("NODES", "title")
            for view in bad:
                yield from self._node(view)
        good = [view.name for view in self._all.nodes if view.state == "good"]
        if good and bad:
            yield f"  nothing is known against {counted(len(good), 'node')}: {compress(good)}"

    def _node(self, view: NodeView) -> Iterator[str]:
        host = f" on {view.physical_host}" if view.physical_host else ""
        state = self._paint(view.state_words, TONES[view.state])
        yield f"  {state}  {printable(f'{view.name}{host}')}"
        for each in view.findings[:_FEW]:
            yield printable(f"    {each.check}: {each.text} ({each.run})")

    def _next(self) -> Iterator[str]:
        steps = list(commands(self._all))
        if steps:
            yield self._paint("NEXT", "title")
            for what, command in steps:
                yield printable(f"  {what}")
                yield printable(f"    {command}")

    def _checks(self) -> Iterator[str]:
        """Yield the checks that did not pass; those of one node are with the node."""
        rows: list[tuple[str, Measured, list[Check]]] = []
        for run, measured in self._all.current:
            for each in measured:
                found = [check for check in each.checks if check.verdict != "pass" and len(check.nodes) != 1]
                if found:
                    rows.append((run.job, each, found))
        if not rows:
            return
        yield self._paint("CHECKS THAT DID NOT PASS", "title")
        rows.sort(key=lambda row: -max(rank(check.verdict) for check in row[2]))
        for job, each, found in rows[:_FEW]:
            for check in found[:_FEW]:
                verdict = self._paint(WORDS[check.verdict], check.verdict)
                nodes = f" ({compress(check.nodes)})" if check.nodes else ""
                words = "; ".join(text for text in (in_words(check), check.detail, check.source) if text)
                yield f"  {verdict}  " + printable(f"{job}: {each.subject}{nodes}{f': {words}' if words else ''}")
        yield from _more(rows)

    def _worse(self) -> Iterator[str]:
        lines = [line for line in self._all.lines if line.is_worse]
        if not lines:
            return
        yield self._paint("WORSE THAN USUAL", "title")
        for line in lines[:_FEW]:
            newest = with_unit(line.points[-1].value, line.unit)
            yield printable(
                f"  {line.run.job}: {line.subject} {newest}, {percent(line.change_percent)} against the median of "
                f"{counted(len(line.points) - 1, 'earlier run')} ({with_unit(line.usual, line.unit)})"
            )
        yield from _more(lines)

    def _sides(self, comparison: Comparison) -> Iterator[str]:
        yield self._paint("COMPARISON", "title") + printable(f": {comparison.before.label} → {comparison.after.label}")
        rows: list[list[object]] = [["job", "check", "before", "after", "change", "", "worse nodes"]]
        order = ("worse", "", "better", "same")
        for each in sorted(comparison.changes, key=lambda change: order.index(change.tone)):
            before, after = (
                "not there" if side is None else with_unit(side.middle, each.unit) or side.verdict
                for side in (each.before, each.after)
            )
            tone = self._paint(each.tone, {"worse": "fail", "better": "pass"}.get(each.tone, ""))
            rows.append([
                printable(each.job), printable(each.subject), printable(before), printable(after),
                percent(each.percent) or None, tone, compress(each.worse_nodes) if each.worse_nodes else "",
            ])  # fmt: skip
        yield from columns(rows, indent="  ").splitlines()
        for other in comparison.differences[:_FEW]:
            yield printable(f"  {other.job}: {other.what} {other.name}: '{other.before}' before, '{other.after}' after")
        yield from _more(comparison.differences)

    def _files(self) -> Iterator[str]:
        if self._all.problems:
            yield self._paint("FILES", "title")
        for problem in self._all.problems[:_FEW]:
            yield printable(f"  {problem.place}: {problem.level}: {problem.message}")
            yield printable(f"    hint: {problem.hint}")
        yield from _more(self._all.problems)

    def _paint(self, text: str, style: str) -> str:
        code = _STYLES.get(style)
        return f"{code}{text}{_RESET}" if self._color and code and text else text


def _more(rows: Sequence[object]) -> Iterator[str]:
    if len(rows) > _FEW:
        yield f"  and {len(rows) - _FEW} more; --json lists all"
