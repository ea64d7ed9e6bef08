"""Folders to runs, each once, and all problems on the way."""

from __future__ import annotations

import os
from collections.abc import Sequence

from ..records import record
from ..results.problems import Unusable
from ..results.walk import Walk, regular_bytes
from .file_problems import FileProblem
from .proof import Proof
from .read import MAX_RECORD_BYTES, read
from .record import Run
from .verdicts import rank

RECORD_NAMES = ("run.json", "prove.json")
"""Records of folders have these names; a file that is named on the command line may have any."""


@record
class Gathered:
    """The runs in the order in which they started, and what could not be read."""

    runs: tuple[Run, ...]
    proofs: tuple[Proof, ...]
    problems: tuple[FileProblem, ...]
    copies: int
    """Records that were there twice, in the results of a job and in the folder of all runs."""

    @property
    def has_errors(self) -> bool:
        """Whether a verdict may be unknown because of a file."""
        return any(problem.level == "error" for problem in self.problems)


def gather(paths: Sequence[str]) -> Gathered:
    """Read all records below the paths. CannotRead when a path is missing or holds far too many files."""
    same: dict[tuple[str, ...], list[Run]] = {}
    proofs: dict[tuple[str, ...], Proof] = {}
    problems: list[FileProblem] = []
    walk = Walk(paths, what="the records of runs")
    named = {os.path.normpath(path) for path in paths}
    for path, shown in walk:
        if not path.endswith(RECORD_NAMES) and os.path.normpath(path) not in named:
            continue
        try:
            found = read(regular_bytes(path, MAX_RECORD_BYTES), shown)
        except Unusable as error:
            problems.append(FileProblem(shown, error.line, error.column, error.kind, error.message))
        else:
            if isinstance(found, Proof):
                proofs.setdefault((found.cluster, found.prove, found.started), found)
            else:
                # Job ids begin again with each cluster, whatever its name.
                same.setdefault((found.cluster, found.job, found.run, found.started), []).append(found)
    problems += [FileProblem(shown, 0, 0, error.kind, error.message) for shown, error in walk.problems]
    runs: list[Run] = []
    for copies in same.values():
        run, conflict = _settled(copies)
        runs.append(run)
        problems += conflict
    runs.sort(key=lambda run: (run.started, run.job, run.run, run.cluster))
    copies_left_out = sum(map(len, same.values())) - len(runs)
    ordered = tuple(sorted(proofs.values(), key=lambda proof: (proof.started, proof.prove)))
    return Gathered(tuple(runs), ordered, tuple(sorted(problems)), copies_left_out)


def _settled(copies: list[Run]) -> tuple[Run, list[FileProblem]]:
    """One of several copies: the one that has ended; of different ones that have, the worst."""
    if len(copies) == 1:
        return copies[0], []
    ended = sorted((run for run in copies if run.ended), key=lambda run: run.file) or copies
    kept = max(ended, key=lambda run: rank(run.verdict))
    kept.copies = tuple(sorted(run.file for run in copies if run is not kept))
    if all(_content(run) == _content(kept) for run in ended):
        return kept, []
    names = [run.file for run in ended]
    message = f"{len(names)} different records of {kept.job} run {kept.run}: {', '.join(names[:4])}"
    return kept, [FileProblem(names[0], 0, 0, "conflict", message)]


def _content(run: Run) -> tuple[object, ...]:
    return run.stated, run.ended, run.summary, run.checks, run.nodes, run.series
