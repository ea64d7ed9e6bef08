"""The verdict on a cluster, from all its runs. Pure: no clock, no files."""

from __future__ import annotations

from collections import Counter
from functools import cached_property

from ..records import record
from .figures import Measured, of_all
from .file_problems import FileProblem
from .gather import Gathered
from .history import Line, history
from .nodes import NodeView, nodes_of
from .proof import Proof
from .record import Run
from .verdicts import PROVEN, Verdict, worst


@record
class Assessment:
    """Everything a report says."""

    runs: tuple[Run, ...]
    current: tuple[tuple[Run, list[Measured]], ...]
    """The newest run of each job in each place, with its checks."""
    proofs: tuple[Proof, ...]
    """The newest of each place."""
    nodes: tuple[NodeView, ...]
    lines: tuple[Line, ...]
    problems: tuple[FileProblem, ...]
    copies: int

    @cached_property
    def verdict(self) -> Verdict:
        """The worst of the newest run of each job, the newest proofs, what cannot be read, and nodes to replace."""
        found: list[str] = [run.verdict for run, _ in self.current]
        found += [proof.verdict for proof in self.proofs]
        if self.has_errors:
            found.append("error")
        if self.in_state("replace"):
            found.append("fail")  # even where the job has passed since, without that node
        return worst(found)

    @property
    def has_errors(self) -> bool:
        """Whether a record could not be used."""
        return any(problem.level == "error" for problem in self.problems)

    @property
    def is_proven(self) -> bool:
        """Whether the verdict is one."""
        return self.verdict in PROVEN

    @cached_property
    def counts(self) -> dict[str, int]:
        """Jobs by the verdict of their newest run."""
        return Counter(run.verdict for run, _ in self.current)

    @property
    def newest(self) -> Run | None:
        """The newest run: from it ages count."""
        return self.runs[-1] if self.runs else None

    def in_state(self, *states: str) -> list[NodeView]:
        """The nodes in these states."""
        return [view for view in self.nodes if view.state in states]


def assess(gathered: Gathered) -> Assessment:
    """Judge a cluster by the newest run of each of its jobs."""
    measured = of_all(gathered.runs)
    newest = {run.place: (run, checks) for run, checks in measured}
    proofs = tuple({proof.place: proof for proof in gathered.proofs}.values())
    return Assessment(
        gathered.runs,
        tuple(newest.values()),
        proofs,
        nodes_of(gathered.runs, tuple(newest.values()), proofs),
        history(measured),
        gathered.problems,
        gathered.copies,
    )
