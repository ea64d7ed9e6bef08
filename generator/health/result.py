"""What one run of the checks on one node says, as the project slurm_nhc writes it: one declaration per field.

The nodes write decimal numbers as text, because their Bash has no others. Fields that are not declared here may be
added later and are kept in a summary; a change of meaning raises `FORMAT`.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, NamedTuple, get_args

from ..results.accepted import (
    Accepts,
    Wanted,
    as_metadata,
    list_of,
    matching,
    moment,
    one_of,
    text,
    true_or_false,
    whole_number,
)
from ..results.hostlist import NODE_NAME

FORMAT = 1
"""The format that this version reads."""

Kind = Literal["quick", "deep"]
KINDS: tuple[Kind, ...] = ("quick", "deep")
Verdict = Literal["pass", "warn", "fail", "not_measured", "no_baseline"]
RunVerdict = Literal["pass", "warn", "fail", "incomplete"]
Cure = Literal["", "heal", "reset", "reboot", "service"]
"""What takes a failure away, from the lightest: its check passes again, a reset of the GPUs, a reboot, another VM.
Empty where nothing failed, and in results of nodes that do not write it."""
Relation = Literal["ge", "le", "lt", "gt", "eq", "ne", ""]


LONGEST_LIST, LONGEST_TEXT, LONGEST_WORD = 2000, 4096, 128
"""Checks of a run, characters of a sentence and of a word, at most."""

_UTC = r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z"
_TEXT, _WORD = as_metadata(text(LONGEST_TEXT)), as_metadata(text(LONGEST_WORD))


# Fifty checks of a thousand nodes are many objects.
@dataclass(frozen=True, slots=True)
class Check:
    """One check. `value` and `limit` are decimal numbers as text, or empty."""

    check: str = field(metadata=as_metadata(text(LONGEST_WORD, shortest=1)))
    verdict: Verdict = field(metadata=as_metadata(one_of(get_args(Verdict))))
    value: str = field(default="", metadata=_WORD)
    relation: Relation = field(default="", metadata=as_metadata(one_of(get_args(Relation))))
    limit: str = field(default="", metadata=_WORD)
    unit: str = field(default="", metadata=_WORD)
    detail: str = field(default="", metadata=_TEXT)
    cure: Cure = field(default="", metadata=as_metadata(one_of(get_args(Cure))))


# Not frozen, which triples what making one costs; nobody changes one.
@dataclass(slots=True)
class NodeResult:
    """One run on one node. `verdict` is the node's own conclusion, `reason` the text of its drain."""

    format: int = field(metadata=as_metadata(whole_number(1)))
    node: str = field(metadata=as_metadata(matching(NODE_NAME)))
    vm_size: str = field(metadata=_WORD)
    size_known: bool = field(metadata=as_metadata(true_or_false))
    """Whether the catalogue has figures for the VM size; without them the checks say little."""
    kind: Kind = field(metadata=as_metadata(one_of(KINDS)))
    time: str = field(metadata=as_metadata(moment(_UTC)))
    verdict: RunVerdict = field(metadata=as_metadata(one_of(get_args(RunVerdict))))
    checks: list[Check] = field(metadata=as_metadata(list_of(LONGEST_LIST)))
    engine: str = field(default="", metadata=_WORD)
    boot_id: str = field(default="", metadata=_WORD)
    physical_host: str = field(default="", metadata=_WORD)
    """Empty where the node cannot know it."""
    duration_ms: int = field(default=0, metadata=as_metadata(whole_number(0)))
    reason: str = field(default="", metadata=_TEXT)
    cure: Cure = field(default="", metadata=as_metadata(one_of(get_args(Cure))))
    """The worst of its failures."""

    @property
    def seconds(self) -> float:
        """The time of the run, in seconds since 1970 (UTC)."""
        return datetime.fromisoformat(self.time).timestamp()


FIELDS = frozenset(("node", "kind", "verdict", "checks"))
"""An object that has none of these is someone else's."""

Path = tuple[str | int, ...]


class Fault(NamedTuple):
    """One thing that is wrong; `wanted` is None for a field that is missing."""

    path: Path
    found: Any
    wanted: Wanted | None


class InvalidResultError(ValueError):
    """All that is wrong with a result."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults


def _rules(cls: type[Check] | type[NodeResult]) -> tuple[tuple[str, Accepts, bool], ...]:
    """Name, rule and whether it is required, of each field."""
    return tuple((each.name, each.metadata["accepts"], each.default is MISSING) for each in fields(cls))


_CHECK, _RESULT = _rules(Check), _rules(NodeResult)


def validated(data: dict[str, Any], checks: list[Check] | None = None) -> NodeResult:
    """The typed result. Raises InvalidResultError; `format` is the caller's to compare with `FORMAT`.

    `checks` are those of the result where they are known already; `data` has none then.
    """
    faults: list[Fault] = []
    values = _values(_RESULT, data if checks is None else data | {"checks": []}, (), faults)
    if checks is None:
        entries = enumerate(values.get("checks", ()))
        found = [_usual(entry) or _check(entry, ("checks", index), faults) for index, entry in entries]
        checks = [check for check in found if check]
    if faults:
        raise InvalidResultError(faults)
    values["checks"] = checks
    return NodeResult(**values)


_VERDICTS, _RELATIONS = frozenset(get_args(Verdict)), frozenset(get_args(Relation))
_USUAL = ("check", "verdict", "value", "relation", "limit", "unit", "detail")
"""Fields of every check, in the order of the nodes. One that has others is looked at field by field."""


def _check(entry: Any, path: Path, faults: list[Fault]) -> Check | None:
    if type(entry) is not dict:
        faults.append(Fault(path, entry, "an object"))
        return None
    before = len(faults)
    values = _values(_CHECK, entry, path, faults)
    return Check(**values) if len(faults) == before else None


def _usual(entry: Any) -> Check | None:
    """The check, where one look at all its fields together says that each is good; None where each needs its own."""
    try:
        if tuple(entry) != _USUAL:
            return None
        values = tuple(entry.values())
        texts = "".join(values)
        if (
            len(texts) <= LONGEST_WORD  # so none is longer than it may be
            and texts.isascii()
            and values[0]
            and values[1] in _VERDICTS
            and values[3] in _RELATIONS
        ):
            # By place: names that JSON has made are compared letter by letter with those of the parameters.
            return Check(*values)
    except (AttributeError, TypeError):
        pass
    return None


def _values(
    rules: tuple[tuple[str, Accepts, bool], ...], data: dict[str, Any], path: Path, faults: list[Fault]
) -> dict[str, Any]:
    """The declared fields that are there and good; others may be added later, and are left out."""
    values = {}
    for name, accepts, is_required in rules:
        if name in data:
            value = data[name]
            wanted = accepts(value)
            if wanted is None:
                values[name] = value
            else:
                faults.append(Fault((*path, name), value, wanted))
        elif is_required:
            faults.append(Fault((*path, name), None, None))
    return values
