"""The record of a proof, `prove.json` (docs/prove.md): one verdict for each gate of `prove.sh`, and the nodes that it
took out. One declaration per key; a new key raises its format."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from msgspec import Meta, Struct, field

from ..results.decode import refuse_no_moment
from .verdicts import Verdict, worst

_Hours = Annotated[float, Meta(ge=0, lt=1e9, description="a number of hours")]


class Gate(Struct, forbid_unknown_fields=True):
    """One gate with the runs of its job, named `<job>-<run>`. One that the user left out is `skipped`."""

    gate: str
    job: str
    verdict: Verdict | Literal["skipped"]
    summary: str
    runs: list[str]


class Replaced(Struct, forbid_unknown_fields=True):
    """A node that the proof has taken out."""

    name: str
    physical_host: str
    gate: str
    how: str
    why: str


class ProofRecord(Struct, forbid_unknown_fields=True):
    """The file."""

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
        """Refuse what is no moment."""
        refuse_no_moment("started", self.started)
        refuse_no_moment("ended", self.ended)


class Proof(ProofRecord, kw_only=True):
    """One run of `prove.sh`."""

    file: str = ""

    @property
    def place(self) -> tuple[str, str, str]:
        """Proofs of one place follow each other."""
        return self.cluster, self.partition, self.vm_size

    @property
    def verdict(self) -> Verdict:
        """The worst of what it says and of its gates; nothing proven is an error."""
        counted = [gate.verdict for gate in self.gates if gate.verdict != "skipped"]
        return worst([self.stated, *(counted or ["error"])])

    @property
    def seconds(self) -> float:
        """When it started, in seconds since 1970."""
        return datetime.fromisoformat(self.started).timestamp()
