"""Policies with the effect denyAction, which forbid to delete.

Source: https://learn.microsoft.com/azure/governance/policy/concepts/effect-deny-action. Members of Microsoft's own
initiatives are not asked for: there are hundreds. Should one forbid something, Azure says so when it is deleted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Any

from ..reader import Reader
from ..refusals import Refused
from ..requests import deletion as ask
from .answers import text, value_at
from .seen import Denial, NotSeen, Thing

_SET = "/policysetdefinitions/"
_BUILT_IN = "/providers/microsoft.authorization/"
_PARAMETER = re.compile(r"\[parameters\('([^']+)'\)\]", re.IGNORECASE)


def denials(scope: str, reader: Reader) -> tuple[tuple[Denial, ...], tuple[NotSeen, ...]]:
    """Assignments that hold at a group and forbid deleting something; those that cannot be read."""
    try:
        assignments = reader.pages(ask.POLICY_ASSIGNMENTS(scope=scope))
    except Refused as reason:
        if reason.is_missing:
            return (), ()
        return (), (NotSeen("whether a policy forbids to delete", str(reason), is_leftover=False),)
    enforced = [each for each in assignments if value_at(each, "properties", "enforcementMode") != "DoNotEnforce"]
    found = reader.together([partial(_of_assignment, reader, each) for each in enforced])
    flat = [each for several in found for each in several]
    return (
        tuple(each for each in flat if isinstance(each, Denial)),
        tuple(each for each in flat if isinstance(each, NotSeen)),
    )


def _of_assignment(reader: Reader, assignment: Mapping[str, Any]) -> list[Denial | NotSeen]:
    values = _values(value_at(assignment, "properties", "parameters"))
    try:
        definition = text(assignment, "properties", "policyDefinitionId")
        return list(_of_definition(reader, assignment, definition, values))
    except Refused as reason:
        name = str(value_at(assignment, "name") or "an assignment")
        return [NotSeen(f"whether the policy assignment {name} forbids to delete", str(reason), is_leftover=False)]


def _of_definition(
    reader: Reader, assignment: Mapping[str, Any], definition: str, values: Mapping[str, object]
) -> Iterator[Denial]:
    answer = reader.get(ask.POLICY_DEFINITION(id=definition))
    values = {**_defaults(answer), **values}
    if _SET in definition.casefold():
        for member in value_at(answer, "properties", "policyDefinitions") or []:
            inner = text(member, "policyDefinitionId")
            if not (definition.casefold().startswith(_BUILT_IN) and inner.casefold().startswith(_BUILT_IN)):
                given = {key: _resolved(each, values) for key, each in _values(member.get("parameters")).items()}
                yield from _of_definition(reader, assignment, inner, given)
        return
    then = value_at(answer, "properties", "policyRule", "then") or {}
    if str(_resolved(then.get("effect"), values)).casefold() != "denyaction":
        return
    cascade = _resolved(value_at(then, "details", "cascadeBehaviors", "resourceGroup"), values)
    mode = str(value_at(answer, "properties", "mode") or "").casefold()
    yield Denial(
        assignment=text(assignment, "id"),
        name=str(value_at(assignment, "properties", "displayName") or value_at(assignment, "name")),
        condition=value_at(answer, "properties", "policyRule", "if"),
        parameters=values,
        spares_groups=mode == "all" or str(cascade or "deny").casefold() == "allow",
        not_scopes=tuple(map(str, value_at(assignment, "properties", "notScopes") or ())),
    )


def _values(parameters: object) -> Mapping[str, object]:
    pairs = parameters.items() if isinstance(parameters, dict) else ()
    return {str(key): each.get("value") for key, each in pairs if isinstance(each, dict)}


def _defaults(definition: Mapping[str, Any]) -> Mapping[str, object]:
    pairs = (value_at(definition, "properties", "parameters") or {}).items()
    return {str(key): each["defaultValue"] for key, each in pairs if isinstance(each, dict) and "defaultValue" in each}


def _resolved(value: object, values: Mapping[str, object]) -> object:
    """A value; `[parameters('x')]` is replaced, any other expression stays and is not understood."""
    found = _PARAMETER.fullmatch(value) if isinstance(value, str) else None
    return values.get(found[1]) if found else value


# ---------------------------------------------------------------- evaluated


def concerns(denial: Denial, thing: Thing) -> bool | None:
    """Whether the policy is about a resource; None where its rule says more than is understood here."""
    return _holds(denial.condition, thing, denial.parameters)


def _holds(rule: object, thing: Thing, values: Mapping[str, object]) -> bool | None:
    if not isinstance(rule, dict):
        return None
    for key, kind in (("allOf", False), ("anyOf", True)):
        if key in rule:
            results = [_holds(each, thing, values) for each in rule[key]]
            return kind if kind in results else None if None in results else not kind
    if "not" in rule:
        inner = _holds(rule["not"], thing, values)
        return None if inner is None else not inner
    return _compared(rule, thing, values)


def _compared(rule: Mapping[str, Any], thing: Thing, values: Mapping[str, object]) -> bool | None:
    """One condition. Source: https://learn.microsoft.com/azure/governance/policy/concepts/definition-structure-policy-rule"""
    known, value = _field(str(rule.get("field")), thing)
    operator = next((name for name in rule if name != "field"), "")
    wanted = _resolved(rule.get(operator), values)
    if not known or (isinstance(wanted, str) and wanted.startswith("[")):
        return None
    found = None if value is None else value.casefold()
    if operator in ("equals", "notEquals") and isinstance(wanted, str):
        return (found == wanted.casefold()) == (operator == "equals")
    if operator in ("in", "notIn") and isinstance(wanted, list):
        return (found in [str(each).casefold() for each in wanted]) == (operator == "in")
    if operator == "like" and isinstance(wanted, str):
        return fnmatchcase(found or "", wanted.casefold())
    if operator == "exists":
        return (value is not None) == (str(wanted).casefold() == "true")
    return None


def _field(name: str, thing: Thing) -> tuple[bool, str | None]:
    """Whether a field is known here, and its value."""
    simple = {"type": thing.type, "name": thing.name, "location": thing.location, "id": thing.id}
    if name in simple:
        return True, simple[name]
    tag = re.fullmatch(r"tags(?:\.([^\[\]']+)|\['([^\[\]']+)'\])", name)
    if tag is None:
        return False, None
    wanted = (tag[1] or tag[2]).casefold()
    return True, next((value for key, value in thing.tags.items() if key.casefold() == wanted), None)
