"""Folders to runs and proofs, each once, and the problems of files that cannot be used."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder
from msgspec.structs import asdict

from ..results import problems
from ..results.decode import decoded, refuse_newer
from ..results.problems import ProblemKind, Unusable
from ..results.walk import Walk, regular_bytes
from .record import FORMAT, Proof, ProofRecord, Record, Run, rank

RECORD_NAMES = ("run.json", "prove.json")
"""Records of folders have these names; a file that is named on the command line may have any."""
MAX_RECORD_BYTES = 2**26
"""The pairs of a thousand nodes have some 40 MiB."""
_RECORD_KEYS = frozenset(("job", "run", "checks", "verdict"))
"""An object that has none of these is someone else's."""
_PROOF_KEYS = frozenset(("prove", "gates", "replace"))
_RECORD, _PROOF = Decoder(Record), Decoder(ProofRecord)
_AGAIN = "copy it again; if it is the same on the cluster, run the job again"
KINDS: dict[str, ProblemKind] = {
    "unreadable": ProblemKind("error", "get read permission, or copy the folder again"),
    "not_a_file": ProblemKind("error", "name a file or a folder"),
    "loop": ProblemKind("warning", "the link is not followed; remove it"),
    "too_large": ProblemKind("error", "a record has about 100 KiB: remove the file if it is not one"),
    "empty": ProblemKind("error", f"the disk was full, or the copy stopped; {_AGAIN}"),
    "truncated": ProblemKind("error", f"the copy stopped halfway; {_AGAIN}"),
    "binary": ProblemKind("error", f"it is not a record; {_AGAIN}"),
    "encoding": ProblemKind("error", "records are UTF-8; copy the file again without converting it"),
    "damaged": ProblemKind("error", _AGAIN),
    "not_a_number": ProblemKind("error", f"JSON has no such number; {_AGAIN}"),
    "invalid": ProblemKind("error", "the file was edited, or another CycleForge built the jobs: build them again"),
    "future_format": ProblemKind("error", "a newer CycleForge rendered the job: update CycleForge here"),
    "conflict": ProblemKind("error", "a file was edited, or two clusters share one name; the worse one counts"),
    "foreign": ProblemKind("error", "it has the name of a record but is not one: move it away"),
}


class FileProblem(problems.FileProblem, frozen=True, order=True):
    """One problem of a file of records."""

    kinds = KINDS


class Gathered(Struct, frozen=True):
    """The runs in the order in which they started, and what could not be read."""

    runs: tuple[Run, ...]
    proofs: tuple[Proof, ...]
    problems: tuple[FileProblem, ...]
    copies: int
    """Records that were there twice, in the results of a job and in the folder of all runs."""


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


def read(content: bytes, shown: str) -> Run | Proof:
    """Return what a file holds; `shown` is its path for messages. Raise Unusable."""
    found = decoded(content, _RECORD, _decoder_of)
    return (Run if isinstance(found, Record) else Proof)(**asdict(found), file=shown)


def _decoder_of(value: Any) -> Decoder[Any]:
    is_proof = isinstance(value, dict) and value.keys() >= _PROOF_KEYS
    if not is_proof and (not isinstance(value, dict) or not _RECORD_KEYS & value.keys()):
        raise Unusable("foreign", "it is JSON, but not the record of a run")
    refuse_newer(value, FORMAT)
    return _PROOF if is_proof else _RECORD
