"""The record of a proof, `prove.json`: one verdict for each gate of `prove.sh`, and the nodes that it took out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ..results.problems import Unusable
from .read import refuse_other_formats
from .verdicts import VERDICTS, Verdict, worst

FORMAT = 1
PROOF_KEYS = frozenset(("prove", "gates", "replace"))
SKIPPED = "skipped"
"""The verdict of a gate that the user left out; it does not count."""


@dataclass(slots=True)
class Gate:
    """One gate with the runs of its job, named `<job>-<run>`."""

    gate: str
    job: str
    verdict: str
    summary: str
    runs: list[str]


@dataclass(slots=True)
class Replaced:
    """A node that the proof has taken out."""

    name: str
    physical_host: str
    gate: str
    how: str
    why: str


@dataclass(slots=True)
class Proof:
    """One run of `prove.sh`."""

    prove: str
    level: str
    cluster: str
    partition: str
    vm_size: str
    started: str
    ended: str
    hours: float
    gpu_hours: float
    stated: str
    nodes: list[str]
    gates: list[Gate]
    replace: list[Replaced]
    file: str

    @property
    def place(self) -> tuple[str, str, str]:
        """Proofs of one place follow each other."""
        return self.cluster, self.partition, self.vm_size

    @property
    def verdict(self) -> Verdict:
        """The worst of what it says and of its gates; nothing proven is an error."""
        counted = [gate.verdict for gate in self.gates if gate.verdict != SKIPPED]
        return worst([self.stated, *(counted or ["error"])])

    @property
    def seconds(self) -> float:
        """When it started, in seconds since 1970."""
        return datetime.fromisoformat(self.started).timestamp()


def is_proof(value: object) -> bool:
    """Whether it is one, by its keys."""
    return isinstance(value, dict) and value.keys() >= PROOF_KEYS


def proof_of(value: Mapping[str, Any], shown: str) -> Proof:
    """The proof that a value is. Unusable where it has another form."""
    refuse_other_formats(dict(value), FORMAT)
    try:
        proof = Proof(
            **{name: _text(value, name) for name in ("prove", "level", "cluster", "partition", "vm_size")},
            started=_moment(value, "started"),
            ended=_moment(value, "ended"),
            hours=_number(value, "hours"),
            gpu_hours=_number(value, "gpu_hours"),
            stated=_verdict(value),
            nodes=_texts(value, "nodes"),
            gates=[
                Gate(_text(each, "gate"), _text(each, "job"), _verdict(each, SKIPPED), _text(each, "summary"),
                     _texts(each, "runs"))
                for each in _objects(value, "gates")
            ],
            replace=[
                Replaced(*(_text(each, name) for name in ("name", "physical_host", "gate", "how", "why")))
                for each in _objects(value, "replace")
            ],
            file=shown,
        )  # fmt: skip
    except _WrongError as error:
        raise Unusable("invalid", str(error)) from None
    return proof


class _WrongError(ValueError):
    pass


def _get(entry: Mapping[str, Any], name: str) -> Any:
    if name not in entry:
        raise _WrongError(f"'{name}' is missing")
    return entry[name]


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = _get(entry, name)
    if not isinstance(value, str):
        raise _WrongError(f"'{name}' is not a text")
    return value


def _moment(entry: Mapping[str, Any], name: str) -> str:
    value = _text(entry, name)
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise _WrongError(f"'{name}' is not a valid date and time") from None
    if found.tzinfo is None:
        raise _WrongError(f"'{name}' has no time zone")
    return value


def _number(entry: Mapping[str, Any], name: str) -> float:
    value = _get(entry, name)
    if type(value) not in (int, float) or not 0 <= value < 1e9:
        raise _WrongError(f"'{name}' is not a number of hours")
    return float(value)


def _verdict(entry: Mapping[str, Any], *more: str) -> str:
    value = _text(entry, "verdict")
    if value not in (*VERDICTS, *more):
        raise _WrongError(f"'verdict' is '{value[:40]}', not one of {', '.join((*VERDICTS, *more))}")
    return value


def _objects(entry: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    value = _get(entry, name)
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
        raise _WrongError(f"'{name}' is not a list of objects")
    return value


def _texts(entry: Mapping[str, Any], name: str) -> list[str]:
    value = _get(entry, name)
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise _WrongError(f"'{name}' is not a list of texts")
    return value
