"""One file to results: bounded reading, strict JSON, validation; whatever is wrong becomes a FileProblem."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ..results import strict_json
from ..results.bounded import regular_bytes
from ..results.hostlist import NODE_NAME
from ..results.unusable import Unusable
from ..words.suggestions import suggestion
from . import alarms, result
from .alarms import Alarm
from .check_lines import CheckLines
from .file_problems import PROBLEM_KINDS, FileProblem
from .result import FORMAT, Check, Fault, InvalidResultError, NodeResult

MAX_RESULT_BYTES = 2**20
"""A result of sixteen GPUs and all checks has some 10 KiB."""
MAX_SUMMARY_BYTES = 2**28
"""A summary of ten thousand results has some 100 MiB."""
SUMMARY = "cycleforge node health"
"""Value of the key `summary`, which comes first in a collected summary."""

MARK = re.compile(rb'\s*\{\s*"summary"\s*:')
"""How a summary begins."""
_NODE = re.compile(rf'"node"\s*:\s*"({NODE_NAME})"')
_KIND = re.compile(r'"kind"\s*:\s*"(quick|deep)"')
_HEAD = 4096
_FEW = 3


@dataclass(slots=True)
class Loaded:
    """A result, when it was made (seconds since 1970), its JSON as it was written, and the file."""

    result: NodeResult
    seconds: float
    text: str
    file: str


@dataclass(frozen=True, slots=True)
class Content:
    """What one file holds.

    Of a summary, `earlier` are the problems of the files that it was made from, and `superseded` counts the older
    results that it no longer has.
    """

    results: tuple[Loaded, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    earlier: tuple[FileProblem, ...] = ()
    superseded: int = 0
    alarms: tuple[Alarm, ...] = ()


def read_file(path: str, shown: str, lines: CheckLines) -> Content:
    """The results of a file, or its problem. `shown` is the path for messages; `lines` remembers across files."""
    try:
        content = _bytes(path)
    except Unusable as error:
        return Content(problems=(FileProblem(shown, error.line, error.column, error.kind, error.message),))
    except OSError as error:
        message = f"cannot read it: {(error.strerror or 'error').lower()}"
        return Content(problems=(FileProblem(shown, 0, 0, "unreadable", message),))
    return read_bytes(content, shown, lines)


def read_bytes(content: bytes, shown: str, lines: CheckLines) -> Content:
    """The same for bytes that are there already."""
    try:
        text = strict_json.text_of(content)
        raised = alarms.alarms_of(text) if content.startswith(alarms.MARK) else None
        if raised is not None:
            return Content(alarms=raised)
        value, checks = _value(text, lines)
        if isinstance(value, dict) and value.get("summary") == SUMMARY:
            return _summary(value, shown)
        loaded = _result(value, text, shown, checks)
    except Unusable as error:
        node, kind = _tells(content)
        return Content(problems=(FileProblem(shown, error.line, error.column, error.kind, error.message, node, kind),))
    return Content(results=(loaded,))


def _value(text: str, lines: CheckLines) -> tuple[Any, list[Check] | None]:
    """What the text is as JSON; its checks apart, and not in the value, where they are laid out as on the nodes."""
    split = lines.split(text)
    if split is None:
        return strict_json.parsed(text), None
    try:
        head = strict_json.parsed(split[0])
    except Unusable:
        return strict_json.parsed(text), None  # says where in the whole file
    return (strict_json.parsed(text), None) if "checks" in head else (head, split[1])


def _bytes(path: str) -> bytes:
    return regular_bytes(path, MAX_RESULT_BYTES, lambda head: MAX_SUMMARY_BYTES if MARK.match(head) else None)


def _tells(content: bytes) -> tuple[str, str]:
    """Node and kind of a damaged file, as far as its beginning still tells them."""
    head = content[:_HEAD].decode("utf-8", "replace")
    if "summary" in head[:40]:
        return "", ""
    node, kind = _NODE.search(head), _KIND.search(head)
    return (node[1] if node else "", kind[1] if kind else "")


# ---------------------------------------------------------------- one result


def _result(value: Any, text: str, shown: str, checks: list[Check] | None = None) -> Loaded:
    if not isinstance(value, dict) or (checks is None and not result.FIELDS & value.keys()):
        raise Unusable("foreign", "it is JSON, but not a node health result")
    _check_format(value, FORMAT)
    try:
        checked = result.validated(value, checks)
    except InvalidResultError as error:
        raise Unusable("invalid", "; ".join(_sentences(error.faults, value))) from None
    return Loaded(checked, checked.seconds, text, shown)


def _check_format(value: dict[str, Any], known: int) -> None:
    found = value.get("format")
    if isinstance(found, int) and not isinstance(found, bool) and found > known:
        raise Unusable("future_format", f"it has format {found}; this CycleForge reads format {known}")


def _sentences(faults: list[Fault], value: dict[str, Any]) -> Iterator[str]:
    for fault in faults[:_FEW]:
        yield _sentence(fault, value)
    if len(faults) > _FEW:
        yield f"and {len(faults) - _FEW} more"


def _sentence(fault: Fault, value: dict[str, Any]) -> str:
    path, found, wanted = fault
    where = ""
    if len(path) >= 2 and isinstance(path[1], int):
        entry = value["checks"][path[1]]
        name = entry.get("check") if isinstance(entry, dict) else None
        where = f"check {path[1] + 1}{f' ({name[:40]})' if isinstance(name, str) else ''}: "
        path = path[2:]
    field = f"'{path[-1]}'" if path else "it"
    if wanted is None:
        return f"{where}{field} is missing"
    shown = json.dumps(found)
    shown = f"{field} is {shown if len(shown) <= 60 else f'{shown[:59]}…'}"
    if isinstance(wanted, str):
        return f"{where}{shown}, not {wanted}"
    words = [word for word in wanted if word]
    near = suggestion(found, words) if isinstance(found, str) and found else None
    return f"{where}{shown}, not one of {', '.join(words)}{f' ({near})' if near else ''}"


# ---------------------------------------------------------------- a summary


def _summary(value: dict[str, Any], shown: str) -> Content:
    _check_format(value, FORMAT)
    results, problems, superseded = value.get("results"), value.get("problems"), value.get("superseded")
    raised = alarms.collected(value.get("alarms", []))
    if raised is None:
        raise Unusable("invalid", "one of the alarms in the summary is not what `health collect` writes")
    if value.get("format") != FORMAT or not (
        isinstance(results, list) and isinstance(problems, list) and isinstance(superseded, int)
    ):
        raise Unusable("invalid", "the summary lacks its format, results, problems or superseded")
    good: list[Loaded] = []
    earlier = tuple(_problem(entry) for entry in problems)
    bad: list[FileProblem] = []
    for number, entry in enumerate(results, 1):
        text = json.dumps(entry)
        place = f"{shown}, result {number}"
        try:
            good.append(_result(entry, text, shown))
        except Unusable as error:
            bad.append(FileProblem(place, 0, 0, error.kind, error.message, *_tells(text.encode())))
    return Content(tuple(good), tuple(bad), earlier, superseded, raised)


def _problem(entry: Any) -> FileProblem:
    """A problem as it was collected; what is wrong with a file stays wrong without the file."""
    if isinstance(entry, dict):
        words = [entry.get(key) or "" for key in ("file", "kind", "message", "node", "check_kind")]
        places = [entry.get(key) or 0 for key in ("line", "column")]
        if (
            all(isinstance(word, str) for word in words)
            and all(isinstance(place, int) for place in places)
            and words[1] in PROBLEM_KINDS
            and (not words[3] or re.fullmatch(NODE_NAME, words[3]))
        ):
            return FileProblem(words[0], places[0], places[1], words[1], words[2], words[3], words[4])
    raise Unusable("invalid", "one of the problems in the summary is not what `health collect` writes")
