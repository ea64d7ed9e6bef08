"""The verdict on a cluster, from all its runs, and the same in a sentence with what to do next. No clock, no files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from ..results.hostlist import compress
from ..words.counts import counted, listed
from .figures import Line, Measured, history, measured
from .gather import FileProblem, Gathered
from .nodes import NodeView, nodes_of
from .record import WORDS, Proof, Run, Verdict, worst

_PROVEN = ("pass", "warn", "fail")
_SAYS = {"fail": "failed", "error": "ended without a verdict", "no_baseline": "has no baseline", "warn": "warns"}
_SAY = _SAYS | {"no_baseline": "have no baseline", "warn": "warn"}


class Assessment(Struct, frozen=True, dict=True):
    """The content of a report."""

    runs: tuple[Run, ...]
    current: tuple[tuple[Run, list[Measured]], ...]
    """The newest run of each job in each place, with its checks."""
    proofs: tuple[Proof, ...]
    """The newest of each cluster, partition and VM size."""
    nodes: tuple[NodeView, ...]
    lines: tuple[Line, ...]
    problems: tuple[FileProblem, ...]

    @cached_property
    def verdict(self) -> Verdict:
        """Return the worst of the newest run of each job, the newest proofs, unusable files, and nodes to replace."""
        found: list[str] = [run.verdict for run, _ in self.current]
        found += [proof.verdict for proof in self.proofs]
        if self.has_errors:
            found.append("error")
        if self.in_state("replace"):
            found.append("fail")  # even where the job has passed since, without that node
        return worst(found)

    @property
    def has_errors(self) -> bool:
        """Return True when a record could not be used, so that what it proves is unknown."""
        return any(problem.level == "error" for problem in self.problems)

    @property
    def is_proven(self) -> bool:
        """Return False when the verdict only means "not proven"."""
        return self.verdict in _PROVEN

    @cached_property
    def counts(self) -> dict[str, int]:
        """Count the jobs by the verdict of their newest run."""
        return Counter(run.verdict for run, _ in self.current)

    @property
    def newest(self) -> Run | None:
        """Return the newest run, from which ages count."""
        return self.runs[-1] if self.runs else None

    def in_state(self, *states: str) -> list[NodeView]:
        return [view for view in self.nodes if view.state in states]


def assess(gathered: Gathered) -> Assessment:
    """Judge a cluster by the newest run of each of its jobs."""
    runs = [(run, measured(run)) for run in gathered.runs]
    current = tuple({run.place: (run, checks) for run, checks in runs}.values())
    proofs = tuple({proof.place: proof for proof in gathered.proofs}.values())
    nodes = nodes_of(gathered.runs, current, proofs)
    return Assessment(gathered.runs, current, proofs, nodes, history(runs), gathered.problems)


def word(verdict: str) -> str:
    """Return the verdict in capitals; everything that is not proven is NOT PROVEN."""
    return WORDS[verdict].split(":", maxsplit=1)[0].upper()


def headline(assessment: Assessment) -> str:
    """For example `1 of 6 jobs failed and 1 has no baseline; 2 nodes to replace`."""
    jobs = sum(assessment.counts.values())
    found = [(count, verdict) for verdict in _SAYS if (count := assessment.counts.get(verdict, 0))]
    of = f" of {counted(jobs, 'job')}"
    parts = [
        f"{count}{'' if place else of} {(_SAYS if count == 1 else _SAY)[verdict]}"
        for place, (count, verdict) in enumerate(found)
    ]
    sentence = listed(parts) if parts else "the job passed" if jobs == 1 else f"all {jobs} jobs passed"
    broken = sum(problem.level == "error" for problem in assessment.problems)
    if broken:
        sentence += f"; {counted(broken, 'file')} cannot be used, so what they prove is unknown"
    for state, words in (("replace", "to replace"), ("suspect", "suspect")):
        nodes = assessment.in_state(state)
        if nodes:
            sentence += f"; {counted(len(nodes), 'node')} {words}"
    return sentence


def commands(assessment: Assessment) -> Iterator[tuple[str, str]]:
    """Yield what to do next and the command for it, cluster by cluster."""
    found: dict[str, list[NodeView]] = {}
    for view in assessment.in_state("replace"):
        found.setdefault(view.cluster, []).append(view)
    for cluster, views in found.items():
        names = compress(view.name for view in views)
        checks = list(dict.fromkeys(each.check for view in views for each in view.findings if each.state == "replace"))
        reason = f"drained by hand: {', '.join(checks[:3])}{', …' if len(checks) > 3 else ''}"
        for character in ("'", '"', "`", "$", "\\"):
            reason = " ".join(reason.replace(character, " ").split())
        of = f" of {cluster}" if cluster else ""
        yield (
            f"keep jobs off the nodes{of}",
            f"sudo scontrol update NodeName={names} State=DRAIN Reason='{reason}'",
        )
        yield (
            "once they run no job and their physical hosts are reported to Azure, take other VMs",
            f"sudo scontrol update NodeName={names} State=POWER_DOWN",
        )
