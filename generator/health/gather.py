"""Files and folders to the newest result of each node and kind, all problems on the way, and the summary of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict

from ..disk import file
from ..results.hostlist import natural_key
from ..results.walk import MAX_FILES, Walk
from .read import MARK, Loaded, read_file
from .result import FORMAT, SUMMARY, Alarm, FileProblem

_FEW = 4
_SEVERITY = {"pass": 0, "warn": 1, "incomplete": 2, "fail": 3}

Key = tuple[str, str]
"""Node and kind."""


class Gathered(Struct, frozen=True):
    """The newest result of each node and kind, in natural order, and the problems of the files."""

    newest: dict[Key, Loaded]
    problems: tuple[FileProblem, ...]
    files: int
    superseded: int
    """Older results of the same node and kind."""
    alarms: tuple[Alarm, ...] = ()
    """Alarms of the scheduler's guard that have not ended."""

    @property
    def has_errors(self) -> bool:
        """Return True when a file could not be used, so that the health of a node may be unknown."""
        return any(problem.level == "error" for problem in self.problems)


def gather(paths: Sequence[str], leave_out: str | None = None) -> Gathered:
    """Read everything below the paths. CannotRead when a path is missing or holds far too many files.

    `leave_out` is a file that a folder may hold beside the results: the summary that is being written.
    """
    latest: dict[Key, list[Loaded]] = {}
    problems: set[FileProblem] = set()
    earlier: set[FileProblem] = set()
    read: set[str] = set()
    alarms: set[Alarm] = set()
    superseded = 0
    walk = Walk(paths, leave_out, most=MAX_FILES)
    for path, shown in walk:
        content = read_file(path, shown)
        read.add(shown)
        earlier.update(content.earlier)
        superseded += content.superseded
        problems.update(content.problems)
        alarms.update(content.alarms)
        for loaded in content.results:
            same = latest.setdefault((loaded.result.node, loaded.result.kind), [loaded])
            if loaded.seconds > same[0].seconds:
                superseded += len(same)
                same[:] = [loaded]
            elif loaded.seconds < same[0].seconds:
                superseded += 1
            elif loaded is not same[0]:
                same.append(loaded)
    problems.update(FileProblem(shown, 0, 0, error.kind, error.message) for shown, error in walk.problems)
    # A file that is here speaks for itself: what a summary says of it may have been fixed since.
    problems.update(problem for problem in earlier if problem.file not in read)
    newest: dict[Key, Loaded] = {}
    for key in sorted(latest, key=lambda key: (natural_key(key[0]), key[1] == "deep")):
        newest[key], conflict = _settled(latest[key])
        problems.update(conflict)
    return Gathered(newest, tuple(sorted(problems)), len(read), superseded, tuple(sorted(alarms)))


def summary_bytes(gathered: Gathered) -> bytes:
    """Return the summary: one result a line with every field of the node. The same input gives the same bytes."""
    rows = [_line(json.loads(loaded.content)) for loaded in gathered.newest.values()]
    problems = [_line(problem.as_json()) for problem in gathered.problems]
    alarms = [_line(asdict(alarm)) for alarm in gathered.alarms]
    lines = [
        "{",
        f' "summary": {json.dumps(SUMMARY)},',
        f' "format": {FORMAT},',
        f' "files": {gathered.files},',
        f' "superseded": {gathered.superseded},',
        *([f' "alarms": [{_rows(alarms)}],'] if alarms else []),
        f' "results": [{_rows(rows)}],',
        f' "problems": [{_rows(problems)}]',
        "}",
    ]
    return ("\n".join(lines) + "\n").encode()


def write_summary(path: Path, content: bytes) -> None:
    """Replace a summary in one step, and no other file; CannotWrite leaves the old content."""
    file.write_own(
        path,
        content,
        is_ours=lambda head: MARK.match(head) is not None,
        foreign="was not written by `health collect`",
        hint="choose another --into",
    )


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def _rows(rows: Sequence[str]) -> str:
    return "\n  " + ",\n  ".join(rows) + "\n " if rows else ""


# ---------------------------------------------------------------- which one counts


def _settled(same: list[Loaded]) -> tuple[Loaded, tuple[FileProblem, ...]]:
    """Return the worst of several results of one time, so that no order of files hides a failure, and the conflict."""
    if len(same) == 1:
        return same[0], ()
    different = {_canonical(loaded): loaded for loaded in same}
    text = max(different, key=lambda text: (_SEVERITY[different[text].result.verdict], text))
    kept = different[text]
    if len(different) == 1:
        return kept, ()
    result, names = kept.result, sorted({loaded.file for loaded in same})
    message = f"{len(different)} different {result.kind} results of {result.node} with the same time, {result.time}"
    where = f"{message}: {', '.join(names[:_FEW])}{'…' if len(names) > _FEW else ''}"
    return kept, (FileProblem(names[0], 0, 0, "conflict", where, result.node, result.kind),)


def _canonical(loaded: Loaded) -> str:
    return json.dumps(json.loads(loaded.content), sort_keys=True)
