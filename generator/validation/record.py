"""The records of a run (`run.json`, docs/records.md) and of a proof (`prove.json`, docs/prove.md): one declaration per
key. A new key raises the format of its file.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import cached_property
from typing import Annotated, Literal, get_args

from msgspec import Meta, Struct, field

from ..results.decode import Moment, NodeName, refuse_no_moment

FORMAT = 1
"""The format that this version reads."""

Verdict = Literal["pass", "warn", "no_baseline", "error", "fail"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""From the best to the worst, as `worst` of recipes/lib/common.sh ranks them."""
PROVEN = frozenset(("pass", "warn", "fail"))
"""Everything else means "not proven"."""
_RANKS: dict[str, int] = {verdict: rank for rank, verdict in enumerate(VERDICTS)}
WORDS: dict[str, str] = {
    "pass": "pass",
    "warn": "warn",
    "no_baseline": "not proven: no baseline",
    "error": "not proven: error",
    "fail": "fail",
}
SHORT: dict[str, str] = WORDS | {"no_baseline": "no baseline", "error": "error"}
"""Where there is little room; the colour and the symbol say that nothing is proven."""


def rank(verdict: str) -> int:
    """Return the place in `VERDICTS`; an unknown word counts as error."""
    return _RANKS.get(verdict, _RANKS["error"])


def worst(verdicts: Iterable[str]) -> Verdict:
    """Return the worst verdict; error when there is none, because nothing was proven."""
    return VERDICTS[max((rank(each) for each in verdicts), default=_RANKS["error"])]


# ---------------------------------------------------------------- the record of a run

_MOST = 1e300
"""The largest figure that is accepted; larger ones overflow in arithmetic."""
_Float = Annotated[float, Meta(gt=-_MOST, lt=_MOST)]
Figure = int | float | str | None
_Figure = Annotated[int | _Float | str | None, Meta(description="a number within ±1e300, a text or null")]
_Point = Annotated[tuple[_Float, _Float], Meta(description="two numbers")]
_Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}\Z", description="a name")]


class Check(Struct, gc=False, forbid_unknown_fields=True):
    """One check with its figure. `nodes` are the nodes that it is about; empty means all nodes of the run."""

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
        """Return the value; None when it is not a number."""
        return self.value if isinstance(self.value, int | float) else None

    @property
    def floor(self) -> float | None:
        """Return the expected value; None when it is not a number."""
        return self.expected if isinstance(self.expected, int | float) else None

    @property
    def node(self) -> str:
        """Return the only node of the check; empty when it has none or several."""
        return self.nodes[0] if len(self.nodes) == 1 else ""

    @property
    def subject(self) -> str:
        """Return the check without the name of its node, so that it is called the same on every node."""
        node = self.node
        words = self.check.split(" ")
        if not node or node not in words:
            return self.check
        return " ".join(word for word in words if word != node) or "node"


class Node(Struct, forbid_unknown_fields=True):
    """One node of a run; `physical_host` is empty when unknown."""

    name: NodeName
    physical_host: str
    facts: dict[str, str]


class Series(Struct, gc=False, forbid_unknown_fields=True):
    name: str
    unit: str
    x_unit: str
    nodes: list[NodeName]
    points: list[_Point]

    @property
    def xs(self) -> list[float]:
        return [point[0] for point in self.points]

    @property
    def ys(self) -> list[float]:
        return [point[1] for point in self.points]


class Record(Struct, forbid_unknown_fields=True):
    """The content of `run.json`."""

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
        """Refuse invalid times, and integers that are too large for arithmetic."""
        refuse_no_moment("started", self.started)
        refuse_no_moment("ended", self.ended or self.started)
        for check in self.checks:
            for figure in (check.value, check.expected):
                if type(figure) is int and not -_MOST < figure < _MOST:
                    raise ValueError(f"check '{check.check[:40]}' has a number beyond ±1e300")


class Run(Record, kw_only=True, dict=True):
    """One run of one job. `stated` is the verdict in the file, `verdict` the one that counts."""

    file: str = ""
    copies: tuple[str, ...] = ()
    """Other files with the same record."""

    @cached_property
    def verdict(self) -> Verdict:
        """Return the worse of the stated verdict and that of its checks; a run without an end cannot have passed."""
        verdict = worst((self.stated, self._of_checks))
        return worst((verdict, "error")) if self._claims_too_early else verdict

    @cached_property
    def doubt(self) -> str:
        """Explain why `verdict` is worse than the stated one; empty when it is the same."""
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
        """Return the start in seconds since 1970."""
        return datetime.fromisoformat(self.started).timestamp()

    @property
    def duration_s(self) -> float | None:
        """Return the duration; None when the run has no end."""
        return datetime.fromisoformat(self.ended).timestamp() - self.seconds if self.ended else None

    @property
    def label(self) -> str:
        """Return the name of its folder below `jobs/runs`."""
        return f"{self.job}-{self.run}"

    @property
    def place(self) -> tuple[str, str, str]:
        """Return cluster, partition and job: runs that share them can be compared."""
        return self.cluster, self.partition, self.job


# ---------------------------------------------------------------- the record of a proof

_Hours = Annotated[float, Meta(ge=0, lt=1e9, description="a number of hours")]


class Gate(Struct, forbid_unknown_fields=True):
    """One gate with the runs of its job, named `<job>-<run>`. One that the user left out is `skipped`."""

    gate: str
    job: str
    verdict: Verdict | Literal["skipped"]
    summary: str
    runs: list[str]


class Replaced(Struct, forbid_unknown_fields=True):
    """A node that the proof took out."""

    name: str
    physical_host: str
    gate: str
    how: str
    why: str


class ProofRecord(Struct, forbid_unknown_fields=True):
    """The content of `prove.json`."""

    format: Literal[1]
    prove: str
    level: str
    cluster: str
    partition: str
    vm_size: str
    started: str
    ended: str
    hours: _Hours
    gpu_hours: _Hours
    stated: Verdict = field(name="verdict")
    nodes: list[str]
    gates: list[Gate]
    replace: list[Replaced]
    max_hours: _Hours = 0
    max_gpu_hours: _Hours = 0

    def __post_init__(self) -> None:
        refuse_no_moment("started", self.started)
        refuse_no_moment("ended", self.ended)


class Proof(ProofRecord, kw_only=True):
    """One run of `prove.sh`."""

    file: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """Return cluster, partition and VM size: of proofs that share them, the newest counts."""
        return self.cluster, self.partition, self.vm_size

    @property
    def verdict(self) -> Verdict:
        """Return the worst of the stated verdict and of its gates; a proof without gates is an error."""
        counted = [gate.verdict for gate in self.gates if gate.verdict != "skipped"]
        return worst([self.stated, *(counted or ["error"])])
