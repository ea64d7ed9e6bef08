"""What one run of the checks on one node says, as the project slurm_nhc writes it, and the summary of many: one
declaration per field.

The nodes write decimal numbers as text, because their Bash has no others. A new field or a change of meaning raises
`FORMAT`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal, get_args

from msgspec import Meta, Raw, Struct

from ..results.decode import NodeName, refuse_no_moment
from .alarms import Alarm
from .file_problems import PROBLEM_KINDS, FileProblem

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
        """Refuse what only looks like a time."""
        refuse_no_moment("time", self.time)

    @property
    def seconds(self) -> float:
        """The time of the run, in seconds since 1970 (UTC)."""
        return datetime.fromisoformat(self.time).timestamp()


class CollectedProblem(Struct, forbid_unknown_fields=True):
    """What was wrong with a file of a summary; it stays wrong without the file."""

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
        """Refuse a kind that no version has written."""
        if self.kind not in PROBLEM_KINDS:
            raise ValueError(f"'{self.kind[:40]}' is no kind of problem in a file of results")

    @property
    def problem(self) -> FileProblem:
        """As it was found."""
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
