"""The operations of a deployment as a tree of its parts, and that tree as lines for a terminal.

A module is a deployment of its own, whose operations are asked for by its id. Source of their form:
https://learn.microsoft.com/rest/api/resources/deployment-operations/list-at-subscription-scope
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from msgspec import Struct

from .. import catalog
from ..words.terminal import columns, printable
from .refusals import Cause, causes
from .resource_ids import Resource, resource

NESTED = "microsoft.resources/deployments"
State = Literal["running", "done", "failed", "canceled"]
_STATES: Mapping[str, State] = {"succeeded": "done", "failed": "failed", "canceled": "canceled"}
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_DEEPEST = 6
List = Callable[[str], Iterable[Mapping[str, Any]]]
"""The operations of the deployment with this id."""


class Part(Struct, frozen=True):
    resource: Resource
    state: State
    seconds: float | None
    """How long it took, or takes until now."""
    parts: tuple[Part, ...]
    causes: tuple[Cause, ...]
    began: float
    """In seconds since 1970; 0 where Azure does not say it."""
    step: str = ""
    """A step inside of a resource, which Azure knows nothing of."""

    @property
    def title(self) -> str:
        """A module's name without what all have; of a resource, its type and name."""
        if self.step:
            return self.step
        if self.resource.type.lower() == NESTED:
            return self.resource.name
        return f"{self.resource.type.rpartition('/')[2]} {self.resource.name}"

    @property
    def leaves(self) -> Iterator[Part]:
        if not self.parts:
            yield self
        for each in self.parts:
            yield from each.leaves


def state_of(text: object) -> State:
    """A provisioning state; what is not final is running."""
    return _STATES.get(str(text).lower(), "running")


def seconds_of(duration: object) -> float | None:
    """An ISO 8601 duration, `PT4M12.5S`; None for what is not one."""
    found = _DURATION.fullmatch(duration) if isinstance(duration, str) else None
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(each or 0) for each in found.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


class Tree:
    """The parts of one deployment; what has ended well is not asked again."""

    def __init__(self, operations: List) -> None:
        self._operations = operations
        self._done: dict[str, Part] = {}

    def of(self, deployment_id: str) -> tuple[Part, ...]:
        """Its parts as they are now, in the order in which they began."""
        return self._parts(deployment_id, 0)

    def _parts(self, deployment_id: str, depth: int) -> tuple[Part, ...]:
        newest: dict[str, Mapping[str, Any]] = {}
        # The same resource can be written twice; the last time counts.
        for operation in sorted(filter(_is_create, self._operations(deployment_id)), key=_changed):
            newest[_target(operation).lower()] = operation["properties"]
        parts = [self._part(properties, depth) for properties in newest.values()]
        return tuple(sorted(parts, key=lambda part: (part.began, part.title)))

    def _part(self, properties: Mapping[str, Any], depth: int) -> Part:
        of = resource(str(properties["targetResource"].get("id", "")))
        key = of.id.lower()
        if key in self._done:
            return self._done[key]
        state = state_of(properties.get("provisioningState"))
        nested = of.type.lower() == NESTED and depth < _DEEPEST
        parts = self._parts(of.id, depth + 1) if nested else ()
        found = causes(properties.get("statusMessage")) if state == "failed" else ()
        seconds = seconds_of(properties.get("duration"))
        began = _time(properties.get("timestamp")) - (seconds or 0)
        part = Part(of, state, seconds, parts, found, began)
        if state == "done":
            self._done[key] = part
        return part


def _is_create(operation: Mapping[str, Any]) -> bool:
    """Whether an operation writes a resource; others read, or work out outputs."""
    properties = operation.get("properties")
    if not isinstance(properties, Mapping) or not isinstance(properties.get("targetResource"), Mapping):
        return False
    return str(properties.get("provisioningOperation", "Create")).lower() == "create"


def _target(operation: Mapping[str, Any]) -> str:
    return str(operation["properties"]["targetResource"].get("id", ""))


def _changed(operation: Mapping[str, Any]) -> float:
    return _time(operation["properties"].get("timestamp"))


def _time(text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0


def failed(parts: Iterable[Part]) -> Iterator[Part]:
    for part in parts:
        inside = list(failed(part.parts))
        if inside:
            yield from inside
        elif part.state == "failed":
            yield part


_SIGNS = {"running": "…", "done": "✓", "failed": "✗", "canceled": "-"}


def duration(seconds: float | None) -> str:
    """`12 s`, `4 min 12 s`, `1 h 3 min`."""
    if seconds is None:
        return ""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def usual(kind: str) -> str:
    """`usually about 10 min`: how long a resource of a type takes; empty where nobody documents it."""
    row = catalog.resource_types().get(kind.lower())
    if row is None or row.minutes is None:
        return ""
    return f"usually {row.minutes} min or more" if row.or_more else f"usually about {row.minutes} min"


def tree_lines(parts: Sequence[Part]) -> list[str]:
    """A line for each part; what is inside only of those that run or failed."""
    return columns([*_rows(parts, "")], indent="  ").splitlines()


def _rows(parts: Iterable[Part], indent: str) -> Iterator[tuple[str, str, str]]:
    for part in parts:
        yield f"{indent}{_SIGNS[part.state]} {printable(part.title)}", part.state, _times(part)
        if part.state != "done":
            yield from _rows(part.parts, f"{indent}  ")


def _times(part: Part) -> str:
    return ", ".join(filter(None, (duration(part.seconds), _expected(part))))


def _expected(part: Part) -> str:
    """What to expect of a resource that is being created; modules and steps have no type that takes time."""
    return usual(part.resource.type) if part.state == "running" and not part.step else ""


def news(parts: Sequence[Part], said: dict[str, str]) -> list[str]:
    """A line for each part whose state is new; `said` is what was said before, and is brought up to date.

    A resource that ended well is said only with its module; a step of the first boot always.
    """
    lines = []
    for part, depth in _walk(parts, 0):
        before, key = said.get(part.resource.id.lower()), part.resource.id.lower()
        if before == part.state or (depth and part.state == "done" and not part.step):
            continue
        said[key] = part.state
        took, expected = duration(part.seconds) if part.state != "running" else "", _expected(part)
        more = f" after {took}" if took else f" ({expected})" if expected else ""
        lines.append(f"{printable(part.title)}: {part.state}{more}")
    return lines


def _walk(parts: Iterable[Part], depth: int) -> Iterator[tuple[Part, int]]:
    for part in parts:
        yield from _walk(part.parts, depth + 1)
        yield part, depth
