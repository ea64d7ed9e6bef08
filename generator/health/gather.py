"""Files and folders to the newest result of each node and kind, and all problems on the way."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator, Sequence

from ..errors import CannotRead
from ..records import record
from .alarms import Alarm
from .check_lines import CheckLines
from .file_problems import FileProblem, Unusable
from .hostlist import natural_key
from .read import SUMMARY, Loaded, read_file
from .result import FORMAT

MAX_FILES = 200_000
"""More files than this are someone's home folder, not the results of a cluster."""
_FEW = 4
_SEVERITY = {"pass": 0, "warn": 1, "incomplete": 2, "fail": 3}

Key = tuple[str, str]
"""Node and kind."""
_Identity = tuple[int, int]
"""Device and inode: what a file is, by whatever path."""


@record
class Gathered:
    """The newest result of each (node, kind), in natural order; the problems; what was looked at and left out."""

    newest: dict[Key, Loaded]
    problems: tuple[FileProblem, ...]
    files: int
    superseded: int
    """Older results of the same node and kind."""
    alarms: tuple[Alarm, ...] = ()
    """What the guard of the scheduler has raised, and not ended."""

    @property
    def has_errors(self) -> bool:
        """Whether the health of a node may be unknown because of a file."""
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
    walk, lines = _Walk(paths, leave_out), CheckLines()
    for path, shown in walk:
        content = read_file(path, shown, lines)
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
    problems.update(walk.problems)
    # A file that is here speaks for itself: what a summary says of it may have been fixed since.
    problems.update(problem for problem in earlier if problem.file not in read)
    newest: dict[Key, Loaded] = {}
    for key in sorted(latest, key=lambda key: (natural_key(key[0]), key[1] == "deep")):
        newest[key], conflict = _settled(latest[key])
        problems.update(conflict)
    return Gathered(newest, tuple(sorted(problems)), len(read), superseded, tuple(sorted(alarms)))


def summary_bytes(gathered: Gathered) -> bytes:
    """The summary: one result a line, every field of the nodes kept, nothing about this run. Same input, same bytes."""
    rows = [_line(json.loads(loaded.text)) for loaded in gathered.newest.values()]
    problems = [_line(problem.as_json()) for problem in gathered.problems]
    alarms = [_line(alarm.as_json()) for alarm in gathered.alarms]
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


def _line(value: object) -> str:
    # ASCII: a half surrogate in an unknown field has no UTF-8.
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def _rows(rows: Sequence[str]) -> str:
    return "\n  " + ",\n  ".join(rows) + "\n " if rows else ""


# ---------------------------------------------------------------- which one counts


def _settled(same: list[Loaded]) -> tuple[Loaded, tuple[FileProblem, ...]]:
    """One of the results with one time: the worst, so that no order of files can hide a failure."""
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
    return json.dumps(json.loads(loaded.text), sort_keys=True)


# ---------------------------------------------------------------- walking


class _Walk:
    """Every file below the paths once, in the order of their names; links are followed, circles are not."""

    def __init__(self, paths: Sequence[str], leave_out: str | None) -> None:
        self._paths = paths
        self._leave_out = _identity(leave_out) if leave_out else None
        self._seen: set[_Identity] = set()
        self._count = 0
        self.problems: list[FileProblem] = []

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for path in self._paths:
            if not os.path.lexists(path):
                raise CannotRead(f"there is no file or folder {path}", "copy it from the cluster first: scp -r")
        # A stack, because folders may be deeper than functions may call each other.
        stack: list[tuple[str, tuple[_Identity, ...]]] = [(path, ()) for path in reversed(self._paths)]
        while stack:
            path, above = stack.pop()
            shown = path if path.isascii() else os.fsencode(path).decode("utf-8", "backslashreplace")
            try:
                status = os.stat(path)  # noqa: PTH116 - a Path for each of many files costs more than its content
                identity = (status.st_dev, status.st_ino)
                names = self._names(path, status, above)
            except Unusable as error:
                self.problems.append(FileProblem(shown, 0, 0, error.kind, error.message))
                continue
            except OSError as error:
                kind = "loop" if error.errno == errno.ELOOP else "unreadable"
                message = f"cannot read it: {(error.strerror or 'error').lower()}"
                self.problems.append(FileProblem(shown, 0, 0, kind, message))
                continue
            if identity in self._seen or (above and identity == self._leave_out):
                continue
            self._seen.add(identity)
            if names is None:
                self._count += 1
                if self._count > MAX_FILES:
                    places = ", ".join(self._paths)
                    raise CannotRead(f"there are more than {MAX_FILES} files below {places}", "name only the results")
                yield path, shown
            else:
                stack += [(os.path.join(path, name), (*above, identity)) for name in reversed(names)]  # noqa: PTH118

    def _names(self, path: str, status: os.stat_result, above: tuple[_Identity, ...]) -> list[str] | None:
        """What is in a folder, by name; None for everything that is not a folder."""
        if (status.st_dev, status.st_ino) in above:
            raise Unusable("loop", "the link points back to a folder that contains it")
        return sorted(os.listdir(path)) if stat.S_ISDIR(status.st_mode) else None  # noqa: PTH208


def _identity(path: str) -> _Identity | None:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino
