"""Azure's what-if: the request, and its answer as one row per resource with the values that change.

Source of the answer's form: WhatIfOperationResult in Azure/azure-rest-api-specs,
specification/resources/resource-manager/Microsoft.Resources/deployments.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from .. import catalog
from ..plan.deployment import Plan
from . import az_lines, bicep
from .reader import Reader
from .refusals import NotAsked
from .requests import resource_manager
from .resource_ids import Resource, resource

Action = Literal["create", "change", "delete", "unknown", "ignore", "none"]
ACTIONS: tuple[Action, ...] = ("delete", "change", "create", "unknown", "ignore", "none")
"""In the order of what has to be looked at first; `unknown`: Azure cannot say what it would do."""
Kind = Literal["create", "change", "delete"]
_ACTIONS: Mapping[str, Action] = {
    "create": "create",
    "modify": "change",
    "delete": "delete",
    "deploy": "unknown",
    "unsupported": "unknown",
    "ignore": "ignore",
    "nochange": "none",
}
_KINDS: Mapping[str, Kind] = {"create": "create", "modify": "change", "array": "change", "delete": "delete"}
_SECRET = re.compile(r"password|passwd|secret|token|private_?key|connection_?string|customdata|protectedsettings", re.I)
"""Parts of a path whose values are never shown."""
HIDDEN = "(not shown)"
_EXPRESSION = re.compile(r"\[.*\breference\(.*\]", re.DOTALL)
"""A value that depends on another resource, which what-if does not work out.

Source: https://learn.microsoft.com/azure/azure-resource-manager/bicep/deploy-what-if
"""


class Value(Struct, frozen=True):
    """One value of a resource that changes; `before` or `after` is None where there is none."""

    path: str
    kind: Kind
    before: Any
    after: Any


class Row(Struct, frozen=True):
    action: Action
    resource: Resource
    values: tuple[Value, ...]
    folded: tuple[str, ...]
    """What is known not to happen although Azure says so, each with the reason."""
    uncompared: tuple[str, ...]
    """Values that Azure shows as changes only because it cannot compare them, each with the reason."""
    reason: str | None
    """Why Azure cannot say what it would do."""
    holds_data: bool
    tags: Mapping[str, Any]
    """Those that it has now; none of what comes and goes with another resource, as the disk of a machine."""
    is_certain: bool = True
    """False: Azure says only that it may happen."""


class WhatIf(Struct, frozen=True):
    rows: tuple[Row, ...]
    """What needs a look first; then by type and name."""
    left_out: tuple[str, ...]
    """What the answer does not cover: modules that Azure did not take apart, and why."""

    def of(self, *actions: Action) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.action in actions)

    @property
    def changes(self) -> bool:
        """Whether the deployment does anything that Azure can predict."""
        return bool(self.of("create", "change", "delete"))

    @property
    def is_complete(self) -> bool:
        """Whether Azure could say of everything what happens to it."""
        return not self.left_out and not self.of("unknown") and not any(row.uncompared for row in self.rows)


def read(properties: Mapping[str, Any]) -> WhatIf:
    rows = [*_rows(properties.get("changes"), certain=True), *_rows(properties.get("potentialChanges"), certain=False)]
    # Values that only noise made different are no change.
    rows.sort(key=lambda row: (ACTIONS.index(row.action), row.resource.type.lower(), row.resource.name.lower()))
    return WhatIf(tuple(rows), tuple(_left_out(properties.get("diagnostics"))))


def _rows(changes: object, *, certain: bool) -> Iterator[Row]:
    for each in _mappings(changes):
        yield _row(each, certain=certain)


def _row(change: Mapping[str, Any], *, certain: bool) -> Row:
    named = str(change.get("changeType", ""))
    of = resource(str(change.get("resourceId", "")))
    action = _ACTIONS.get(named.lower(), "unknown")
    reason = change.get("unsupportedReason")
    if action == "unknown" and not reason:
        reason = "Azure does not say what would change" if named.lower() == "deploy" else f"Azure answers '{named}'"
    values, folded, uncompared = _values(of, change.get("delta"))
    if action == "change" and (folded or uncompared) and not values:
        action = "none"
    return Row(
        action,
        of,
        values,
        folded,
        uncompared,
        str(reason) if reason else None,
        catalog.holds_data(of.type),
        _tags(change),
        certain,
    )


def _tags(change: Mapping[str, Any]) -> Mapping[str, Any]:
    before = change.get("before")
    tags = before.get("tags") if isinstance(before, Mapping) and not before.get("managedBy") else None
    return tags if isinstance(tags, Mapping) else {}


def _values(of: Resource, delta: object) -> tuple[tuple[Value, ...], tuple[str, ...], tuple[str, ...]]:
    """What changes, what is known not to, and what Azure cannot compare."""
    kept: list[Value] = []
    folded: dict[str, None] = {}
    uncompared: dict[str, None] = {}
    for value in _flat(delta, ""):
        noise, unknown = _noise(of, value), _unknown(value)
        if noise is not None:
            folded[f"{value.path}: {noise}"] = None
        elif unknown is not None:
            uncompared[f"{value.path}: {unknown}"] = None
        else:
            kept.append(value)
    return tuple(kept), tuple(folded), tuple(uncompared)


def _unknown(value: Value) -> str | None:
    """Why Azure cannot compare a value; what goes is shown in any case."""
    if value.kind == "delete":
        return None
    if value.after == HIDDEN:
        return "a secret, which Azure never shows"
    if isinstance(value.after, str) and _EXPRESSION.fullmatch(value.after):
        return "only the deployment knows the value"
    return None


def _flat(delta: object, above: str) -> Iterator[Value]:
    """The leaves of a change; changes that Azure ignores are left out."""
    for each in _mappings(delta):
        path = _joined(above, str(each.get("path") or ""))
        kind = str(each.get("propertyChangeType", "")).lower()
        if kind == "noeffect":
            continue
        children = each.get("children")
        if children:
            yield from _flat(children, path)
        else:
            # What is not known is shown, as a change.
            yield _value(path, _KINDS.get(kind, "change"), each.get("before"), each.get("after"))


def _joined(above: str, path: str) -> str:
    if path.isdecimal():
        return f"{above}[{path}]"
    return f"{above}.{path}" if above and path else above or path


def _value(path: str, kind: Kind, before: Any, after: Any) -> Value:
    if _SECRET.search(path):
        return Value(path, kind, *(None if value is None else HIDDEN for value in (before, after)))
    return Value(path, kind, _shown(before), _shown(after))


def _shown(value: Any) -> Any:
    """A value without what may be secret in it."""
    if isinstance(value, Mapping):
        return {
            key: HIDDEN if _SECRET.search(str(key)) and item is not None else _shown(item)
            for key, item in value.items()
        }
    return [_shown(item) for item in value] if isinstance(value, list) else value


def _noise(of: Resource, value: Value) -> str | None:
    """Why a change of a value is known not to happen; None: it is shown."""
    for row in catalog.what_if().noise.rows:
        if (
            row.type == of.type.lower()
            and any(_is_within(value.path.lower(), path) for path in row.paths)
            and value.kind in row.kinds
        ):
            return str(row.why)
    return None


def _is_within(path: str, above: str) -> bool:
    return path == above or path.startswith((f"{above}.", f"{above}["))


def _left_out(diagnostics: object) -> Iterator[str]:
    for each in _mappings(diagnostics):
        code, message = str(each.get("code", "")), str(each.get("message", "")).strip()
        target = resource(str(each.get("target", "")))
        name = target.name or "a module"
        if code == "NestedDeploymentShortCircuited":
            yield f"{name}: its names need what only the deployment creates, so nothing of it is predicted"
        elif str(each.get("level", "")).lower() != "info":
            yield f"{name}: {message or code or 'Azure gives no reason'}"


def _mappings(value: object) -> Iterable[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, Sequence) else []


_LIMIT_S = 900
"""Azure takes a large deployment apart for 5 minutes at most, and providers are asked afterwards.

Source: https://learn.microsoft.com/azure/azure-resource-manager/bicep/deploy-what-if
"""


def predicted(plan: Plan, reader: Reader, folder: Path, environment: Mapping[str, str]) -> WhatIf:
    """The answer for the built folder. Secrets are not needed: Azure compares none."""
    given = dict(environment) | bicep.unchangeable(plan, reader)
    made = bicep.compiled(folder, plan, given)
    return asked(plan, reader, made.template, bicep.with_secrets(made, plan, bicep.stand_ins(plan)))


def asked(plan: Plan, reader: Reader, template: Mapping[str, Any], parameters: Mapping[str, Any]) -> WhatIf:
    body = body_of(plan, template, parameters)
    body["properties"]["whatIfSettings"] = {"resultFormat": "FullResourcePayloads"}
    call = resource_manager.what_if(plan.deployment_name, body, az_lines.deployment(plan, "what-if"))
    answer = reader.post(call, _LIMIT_S)
    properties = answer.get("properties")
    if not isinstance(properties, Mapping) or not isinstance(properties.get("changes"), list):
        raise NotAsked("Azure's answer to what-if has no list of changes")
    return read(properties)


def body_of(plan: Plan, template: Mapping[str, Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What is sent, for what-if as for the deployment."""
    properties = {"mode": "Incremental", "template": template, "parameters": parameters}
    return {"location": plan.location, "properties": properties}
