"""The record of a run, `run.json` (docs/records.md): one declaration per key. A new key raises `FORMAT`."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from ..results.decode import Moment, NodeName, refuse_no_moment
from .verdicts import Verdict, worst

FORMAT = 1
"""The form that this version reads."""

_MOST = 1e300
"""Figures beyond are nonsense that arithmetic would stumble over."""
_Float = Annotated[float, Meta(gt=-_MOST, lt=_MOST)]
Figure = int | float | str | None
_Figure = Annotated[int | _Float | str | None, Meta(description="a number within ±1e300, a text or null")]
_Point = Annotated[tuple[_Float, _Float], Meta(description="two numbers")]
_Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}\Z", description="a name")]


class Check(Struct, gc=False, forbid_unknown_fields=True):
    """One figure that was judged. `nodes` are those whose figure it is; empty means all nodes of the run."""

    check: Annotated[str, Meta(min_length=1)]
    verdict: Verdict
    value: _Figure
    expected: _Figure
    unit: str
    detail: str
    source: str
    nodes: list[NodeName]

    @property
    def number(self) -> float | None:
        """The value, where it is a figure."""
        return self.value if isinstance(self.value, int | float) else None

    @property
    def floor(self) -> float | None:
        """What was expected, where that is a figure."""
        return self.expected if isinstance(self.expected, int | float) else None

    @property
    def node(self) -> str:
        """The one node whose figure it is; empty where there is not exactly one."""
        return self.nodes[0] if len(self.nodes) == 1 else ""

    @property
    def subject(self) -> str:
        """The check without the name of its node, so that the same check of two nodes is called the same."""
        node = self.node
        words = self.check.split(" ")
        if not node or node not in words:
            return self.check
        return " ".join(word for word in words if word != node) or "node"


class Node(Struct, forbid_unknown_fields=True):
    """One node of a run; `physical_host` is empty where it is not known."""

    name: NodeName
    physical_host: str
    facts: dict[str, str]


class Series(Struct, gc=False, forbid_unknown_fields=True):
    """One curve."""

    name: str
    unit: str
    x_unit: str
    nodes: list[NodeName]
    points: list[_Point]

    @property
    def xs(self) -> list[float]:
        """Where it has points."""
        return [point[0] for point in self.points]

    @property
    def ys(self) -> list[float]:
        """Its values there."""
        return [point[1] for point in self.points]


class Record(Struct, forbid_unknown_fields=True):
    """The file."""

    format: Literal[1]
    job: _Name
    recipe: str
    run: _Name
    started: Moment
    ended: Moment | None
    """None while it runs, or when it was killed."""
    cluster: str
    partition: str
    vm_size: str
    stated: Verdict = field(name="verdict")
    summary: str
    nodes: list[Node]
    versions: dict[str, str]
    settings: dict[str, str]
    environment: dict[str, str]
    checks: list[Check]
    series: list[Series]

    def __post_init__(self) -> None:
        """Refuse what only looks like a time, and whole numbers that no arithmetic takes."""
        refuse_no_moment("started", self.started)
        refuse_no_moment("ended", self.ended or self.started)
        for check in self.checks:
            for figure in (check.value, check.expected):
                if type(figure) is int and not -_MOST < figure < _MOST:
                    raise ValueError(f"check '{check.check[:40]}' has a number beyond ±1e300")


class Run(Record, kw_only=True, dict=True):
    """One run of one job: its record, and what follows from it. `stated` is the verdict of the file."""

    file: str = ""
    copies: tuple[str, ...] = ()
    """Other files with the same record."""

    @cached_property
    def verdict(self) -> Verdict:
        """What its checks leave of its own verdict: a record that says better of itself is not believed."""
        verdict = worst((self.stated, self._of_checks))
        return worst((verdict, "error")) if self._claims_too_early else verdict

    @cached_property
    def doubt(self) -> str:
        """Why the verdict of the file is not believed."""
        if self._claims_too_early:
            return "it says pass, but has not ended"
        if self.stated == self.verdict:
            return ""
        why = f"one of its checks says {self._of_checks}" if self.checks else "it has no check"
        return f"it says {self.stated}, but {why}"

    @cached_property
    def _of_checks(self) -> Verdict:
        return worst({each.verdict for each in self.checks})

    @property
    def _claims_too_early(self) -> bool:
        return self.stated == "pass" and not self.ended

    @property
    def seconds(self) -> float:
        """When it started, in seconds since 1970."""
        return datetime.fromisoformat(self.started).timestamp()

    @property
    def duration_s(self) -> float | None:
        """How long it took; None where it has no end."""
        return datetime.fromisoformat(self.ended).timestamp() - self.seconds if self.ended else None

    @property
    def label(self) -> str:
        """As its folder among all runs is called."""
        return f"{self.job}-{self.run}"

    @property
    def place(self) -> tuple[str, str, str]:
        """Runs of one job in one place are comparable: cluster, partition, job."""
        return self.cluster, self.partition, self.job
