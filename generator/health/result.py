"""The files of the health checks, one declaration per field: the result of a run on a node as the project slurm_nhc
writes it, the alarms of its guard, the summary of many results, and what can be wrong with such a file.

The nodes write decimal numbers as text, because their Bash has no others. A new field or a change of meaning raises
`FORMAT`.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta, Raw, Struct

from ..results import problems
from ..results.decode import Moment, NodeName, refuse_no_moment
from ..results.problems import ProblemKind

FORMAT = 1
"""The format that this version reads."""
SUMMARY = "cycleforge node health"
"""Value of the key `summary`, which comes first in a collected summary."""

Kind = Literal["quick", "deep"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Verdict = Literal["pass", "warn", "fail", "not_measured", "no_baseline"]
RunVerdict = Literal["pass", "warn", "fail", "incomplete"]
Cure = Literal["", "heal", "reset", "reboot", "service"]
"""What takes a failure away, from the lightest: its check passes again, a reset of the GPUs, a reboot, another VM.
Empty where nothing failed, and in results of nodes that do not write it."""
Relation = Literal["ge", "le", "lt", "gt", "eq", "ne", ""]

_Text = Annotated[str, Meta(max_length=4096)]
_Word = Annotated[str, Meta(max_length=128)]
_Moment = Annotated[
    str,
    Meta(
        pattern=r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z\Z",
        description="a UTC time such as 2026-11-21T10:00:00Z",
    ),
]


class Check(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One check. `value` and `limit` are decimal numbers as text, or empty."""

    check: Annotated[str, Meta(min_length=1, max_length=128)]
    verdict: Verdict
    value: _Word = ""
    relation: Relation = ""
    limit: _Word = ""
    unit: _Word = ""
    detail: _Text = ""
    cure: Cure = ""


class NodeResult(Struct, forbid_unknown_fields=True):
    """One run on one node. `verdict` is the node's own conclusion, `reason` the text of its drain."""

    format: Literal[1]
    node: NodeName
    vm_size: _Word
    size_known: bool
    """Whether the catalogue has figures for the VM size; without them the checks say little."""
    kind: Kind
    time: _Moment
    verdict: RunVerdict
    checks: Annotated[list[Check], Meta(max_length=2000)]
    engine: _Word = ""
    boot_id: _Word = ""
    physical_host: _Word = ""
    """Empty where the node cannot know it."""
    duration_ms: Annotated[int, Meta(ge=0)] = 0
    reason: _Text = ""
    cure: Cure = ""
    """The worst of its failures."""

    def __post_init__(self) -> None:
        refuse_no_moment("time", self.time)

    @property
    def seconds(self) -> float:
        """Return the time of the run in seconds since 1970."""
        return datetime.fromisoformat(self.time).timestamp()


# ---------------------------------------------------------------- alarms of the guard: one cause that many nodes share

ALARM_MARK = b"partition "
"""How the file `ALARM` begins, which the scheduler writes beside the results."""
_ALARM_LINE = re.compile(
    r"partition (?P<partition>\S+): (?P<check>\S+) fails on (?P<failing>\d+) of (?P<total>\d+) nodes, "
    r"since (?P<since>\S+) by (?P<source>\S+); (?P<words>.+)",
    re.ASCII,
)
"""A line of alarm_text() in guard-record.sh."""
_NodeCount = Annotated[int, Meta(ge=0, le=999_999)]


class Alarm(Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """One check that too many nodes of a partition fail at once."""

    partition: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}\Z", description="the name of a partition")]
    check: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_.-]{0,99}\Z", description="the name of a check")]
    failing: _NodeCount
    total: _NodeCount
    since: Moment
    source: Literal["claims", "reasons"]
    """Where the scheduler has it from: what nodes claim, or the reasons of their drains."""
    words: Annotated[str, Meta(pattern=r"^[ -~]{1,300}\Z", description="one line of at most 300 ASCII characters")]
    """What happens to drains and jobs meanwhile."""

    @property
    def text(self) -> str:
        return (
            f"partition {self.partition}: {self.check} fails on {self.failing} of {self.total} nodes "
            f"since {self.since}; {self.words}"
        )


def alarms_of(text: str) -> tuple[Alarm, ...] | None:
    """Return the alarms of a file; None when a line is not an alarm."""
    found = [_ALARM_LINE.fullmatch(line) for line in text.splitlines()]
    try:
        rows = [match.groupdict() for match in found if match]
        return msgspec.convert(rows, tuple[Alarm, ...], strict=False) if rows and len(rows) == len(found) else None
    except msgspec.ValidationError:
        return None


# ---------------------------------------------------------------- files that cannot be used

_COPY_AGAIN = "copy it again; if it is the same on the cluster, remove it there and let the node check again"
PROBLEM_KINDS: dict[str, ProblemKind] = {
    "unreadable": ProblemKind("error", "get read permission, or copy the folder again"),
    "not_a_file": ProblemKind("error", "name a file or a folder"),
    "loop": ProblemKind("warning", "the link is not followed; remove it"),
    "too_large": ProblemKind("error", "a result has about 10 KiB: remove the file if it is not one"),
    "empty": ProblemKind("error", f"the disk was full, or the node went down while it wrote; {_COPY_AGAIN}"),
    "truncated": ProblemKind("error", f"the node or the copy stopped halfway; {_COPY_AGAIN}"),
    "binary": ProblemKind("error", "remove the file if it is not a result, else copy it again"),
    "encoding": ProblemKind("error", "results are UTF-8; copy the file again without converting it"),
    "damaged": ProblemKind("error", _COPY_AGAIN),
    # Of summaries that earlier versions collected.
    "duplicate_key": ProblemKind("error", f"it is not clear which of the two is valid; {_COPY_AGAIN}"),
    "not_a_number": ProblemKind("error", f"JSON has no such number; {_COPY_AGAIN}"),
    "invalid": ProblemKind("error", "the node may run another version of slurm_nhc: compare it with this CycleForge"),
    "future_format": ProblemKind("error", "a newer slurm_nhc wrote it: update CycleForge here"),
    "conflict": ProblemKind("error", "two nodes may share one name, or a file was edited; the worse one counts"),
    "foreign": ProblemKind("warning", "it is ignored; move it away if it does not belong here"),
}


class FileProblem(problems.FileProblem, frozen=True, order=True):
    """One problem of a file of results. `node` and `check_kind` are empty when the file does not tell them."""

    kinds = PROBLEM_KINDS

    node: str = ""
    check_kind: str = ""

    def as_json(self) -> dict[str, object]:
        return super().as_json() | {"node": self.node or None, "check_kind": self.check_kind or None}


# ---------------------------------------------------------------- summaries


class CollectedProblem(Struct, forbid_unknown_fields=True):
    """A problem of a file that the summary was made of, and may no longer exist."""

    file: str
    kind: str
    message: str
    line: int | None = None
    column: int | None = None
    level: str = ""
    hint: str = ""
    node: NodeName | None = None
    check_kind: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in PROBLEM_KINDS:
            raise ValueError(f"'{self.kind[:40]}' is not a kind of problem in a file of results")

    @property
    def problem(self) -> FileProblem:
        place = self.line or 0, self.column or 0
        return FileProblem(self.file, *place, self.kind, self.message, self.node or "", self.check_kind or "")


class Summary(Struct, forbid_unknown_fields=True):
    """The newest results of many nodes, as `health collect` writes them. Each is read on its own, so that a bad one
    leaves the others."""

    summary: Literal["cycleforge node health"]
    format: Literal[1]
    results: list[Raw]
    problems: list[CollectedProblem]
    superseded: int
    """Older results that it no longer has."""
    files: int = 0
    alarms: list[Alarm] = []
