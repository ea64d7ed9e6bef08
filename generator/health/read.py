"""One file to results: bounded reading, strict JSON, declared fields; whatever is wrong becomes a FileProblem."""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct
from msgspec.json import Decoder

from ..results.decode import decoded, refuse_newer
from ..results.hostlist import NODE_NAME
from ..results.problems import Unusable
from ..results.walk import regular_bytes
from .result import ALARM_MARK, FORMAT, SUMMARY, Alarm, FileProblem, NodeResult, Summary, alarms_of

MAX_RESULT_BYTES = 2**20
"""A result of sixteen GPUs and all checks has some 10 KiB."""
MAX_SUMMARY_BYTES = 2**28
"""A summary of ten thousand results has about 100 MiB."""

MARK = re.compile(rb'\s*\{\s*"summary"\s*:')
"""How a summary begins."""
_FIELDS = frozenset(("node", "kind", "verdict", "checks"))
"""An object that has none of these is someone else's."""
_NODE = re.compile(rf'"node"\s*:\s*"({NODE_NAME})"')
_KIND = re.compile(r'"kind"\s*:\s*"(quick|deep)"')
_HEAD = 4096
_RESULT, _SUMMARY = Decoder(NodeResult), Decoder(Summary)


class Loaded(Struct):
    """A result, when it was made (seconds since 1970), its JSON as it was written, and the file."""

    result: NodeResult
    seconds: float
    content: bytes
    file: str


class Content(Struct, frozen=True):
    """What one file holds.

    Of a summary, `earlier` are the problems of the files that it was made from, and `superseded` counts the older
    results that it no longer has.
    """

    results: tuple[Loaded, ...] = ()
    problems: tuple[FileProblem, ...] = ()
    earlier: tuple[FileProblem, ...] = ()
    superseded: int = 0
    alarms: tuple[Alarm, ...] = ()


def read_file(path: str, shown: str) -> Content:
    """Return the results of a file, or its problem. `shown` is the path for messages."""
    try:
        content = regular_bytes(path, MAX_RESULT_BYTES, lambda head: MAX_SUMMARY_BYTES if MARK.match(head) else None)
    except Unusable as error:
        return Content(problems=(_problem(error, b"", shown),))
    return read_bytes(content, shown)


def read_bytes(content: bytes, shown: str) -> Content:
    """Return the same for bytes that are there already."""
    if content.startswith(ALARM_MARK):
        raised = alarms_of(content.decode("ascii", "replace"))
        if raised is not None:
            return Content(alarms=raised)
    try:
        found = decoded(content, _SUMMARY if MARK.match(content) else _RESULT, _decoder_of)
    except Unusable as error:
        return Content(problems=(_problem(error, content, shown),))
    if isinstance(found, Summary):
        return _collected(found, shown)
    return Content(results=(Loaded(found, found.seconds, content, shown),))


def _decoder_of(value: Any) -> Decoder[Any]:
    is_summary = isinstance(value, dict) and value.get("summary") == SUMMARY
    if not is_summary and (not isinstance(value, dict) or not _FIELDS & value.keys()):
        raise Unusable("foreign", "it is JSON, but not a node health result")
    refuse_newer(value, FORMAT)
    return _SUMMARY if is_summary else _RESULT


def _problem(error: Unusable, content: bytes, shown: str) -> FileProblem:
    """Name node and kind of a damaged file, as far as its beginning still tells them."""
    head = content[:_HEAD].decode("utf-8", "replace")
    of_one = "summary" not in head[:40]
    node, kind = (found[1] if of_one and (found := form.search(head)) else "" for form in (_NODE, _KIND))
    return FileProblem(shown, error.line, error.column, error.kind, error.message, node, kind)


def _collected(summary: Summary, shown: str) -> Content:
    good: list[Loaded] = []
    bad: list[FileProblem] = []
    for number, raw in enumerate(summary.results, 1):
        content = bytes(raw)
        try:
            found = decoded(content, _RESULT, _decoder_of)
            good.append(Loaded(found, found.seconds, content, shown))
        except Unusable as error:
            bad.append(_problem(error, content, f"{shown}, result {number}"))
    earlier = tuple(each.problem for each in summary.problems)
    return Content(tuple(good), tuple(bad), earlier, summary.superseded, tuple(summary.alarms))
