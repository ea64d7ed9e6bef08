"""JSON Schema for editors, and what a change of a field costs: both read off the declarations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..kinds import Choice, Kind, ListOf, MappingOf, OneSection, Scalar, kind_of, sections
from ..model.definition import Definition
from ..model.fields import Section, Setting, plain_values
from ..walk import Path, setting_at

SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"
INTERPOLATION = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
"""A number or a boolean may as well be read from the environment, which an editor cannot look into."""

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}
_LIMITS = {
    ("ge", False): "minimum",
    ("le", False): "maximum",
    ("gt", False): "exclusiveMinimum",
    ("min_length", False): "minLength",
    ("min_length", True): "minItems",
}
"""Limit of a key, and whether it is one of a list → its word."""

# Derived values whose change reaches further than "in place"; what is not listed follows the definition's own field.
_DERIVED_COSTS: tuple[tuple[tuple[str, ...], str], ...] = (
    # Which nodes run a project follows from the partitions; their own fields say what that costs.
    (("projects", "roles"), "in place"),
    (("projects",), "node restart"),
    # Attributes reach a node when it starts.
    (("slurm", "node_arrays", "attributes"), "node restart"),
    (("slurm", "node_arrays", "generation"), "node restart"),
    (("slurm", "version"), "recreate"),
    (("slurm", "project_version"), "recreate"),
    # An existing server keeps its image: the deployment sends what the VM was created from.
    (("server", "image"), "in place"),
    # A subnet that is added or removed disturbs no other.
    (("network", "subnets", "name"), "recreate"),
    (("network", "subnets", "prefix"), "recreate"),
)


_CLUSTER: Path = ("definition", "slurm")


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a definition file."""
    found: dict[str, type[Section]] = {}
    _collect(Definition, found)
    return {
        "$schema": SCHEMA_ID,
        "title": "CycleForge definition",
        "$defs": {name: {**_section(found[name]), "title": name} for name in sorted(found)},
        **_section(Definition),
    }


def schema_text() -> str:
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def cost_of(path: Path, effective: Mapping[str, Any] | None = None, before: Mapping[str, Any] | None = None) -> str:
    """Cost of a change at a path of the effective plan: `("definition", …)` or `("derived", …)`.

    The new plan decides what a key means that several kinds of file system have, for example `size_tib` of a mount. A
    cluster that the definition drops has to be deleted on the server; where `before` had none, no node runs that would
    have to start again.
    """
    if path == _CLUSTER and effective is not None and not _has_cluster(effective):
        return "recreate"
    cost = _cost_of(path, effective)
    had_none = before is not None and not _has_cluster(before)
    return "in place" if had_none and cost == "node restart" else cost


def _has_cluster(effective: Mapping[str, Any]) -> bool:
    return effective.get("definition", {}).get("slurm") is not None


def _cost_of(path: Path, effective: Mapping[str, Any] | None) -> str:
    if path[:1] == ("definition",):
        declared = setting_at(Definition, path[1:], (effective or {}).get("definition"))
        return declared.change if declared else "in place"
    names = tuple(step for step in path[1:] if isinstance(step, str))
    for prefix, cost in _DERIVED_COSTS:
        if names[: len(prefix)] == prefix:
            return cost
    return "in place"


def _collect(section: type[Section], found: dict[str, type[Section]]) -> None:
    for declared in section.declared_keys.values():
        for inner in sections(kind_of(declared)):
            if inner.__name__ not in found:
                found[inner.__name__] = inner
                _collect(inner, found)


def _section(section: type[Section]) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "additionalProperties": False,
        "description": (section.__doc__ or "").strip(),
        "properties": {name: _property(declared) for name, declared in section.declared_keys.items()},
    }
    if section.required_keys:
        schema["required"] = list(section.required_keys)
    return {**schema, "type": "object"}


def _property(declared: Setting) -> dict[str, Any]:
    """The schema of a key, with unit, cost of a change and example in words that editors show."""
    kind = kind_of(declared)
    limits = {_LIMITS[name, isinstance(kind, ListOf)]: bound for name, bound in declared.limits.items()}
    value = _kind(kind) | limits
    options = value["anyOf"] if value.keys() == {"anyOf"} else [value]
    if declared.may_be_none:
        options = [*options, {"type": "null"}]
    if value.get("type") in ("integer", "number", "boolean"):
        options = [*options, INTERPOLATION]
    schema = {"anyOf": options} if len(options) > 1 else value
    if not declared.is_required and declared.make is None:
        schema = schema | {"default": plain_values(declared.default)}
    unit = f" Unit: {declared.unit}." if declared.unit else ""
    schema = schema | {"description": f"{declared.text}{unit} A change: {declared.change}."}
    examples = [] if declared.example in (None, {}, []) else [declared.example]
    return schema | ({"examples": examples} if examples else {})


def _kind(kind: Kind) -> dict[str, Any]:
    if isinstance(kind, Scalar):
        return _one_of([{"type": _TYPES[each]} for each in kind.types])
    if isinstance(kind, Choice):
        options = [*kind.options, *kind.numbers]
        types = list(dict.fromkeys(_TYPES[type(option)] for option in options))
        return ({"const": options[0]} if len(options) == 1 else {"enum": options}) | {
            "type": types[0] if len(types) == 1 else types
        }
    if isinstance(kind, ListOf):
        return {"items": _kind(kind.item), "type": "array"}
    if isinstance(kind, MappingOf):
        return {"additionalProperties": _kind(kind.value), "type": "object"}
    return _sections(kind)


def _sections(kind: OneSection) -> dict[str, Any]:
    references = {section: {"$ref": f"#/$defs/{section.__name__}"} for section in kind.classes}
    if kind.by_type:
        mapping = {tag: references[section]["$ref"] for tag, section in kind.by_type.items()}
        return {"discriminator": {"mapping": mapping, "propertyName": "type"}, "oneOf": list(references.values())}
    (reference,) = references.values()
    return {"anyOf": [{"type": "string"}, reference]} if kind.may_be_text else reference


def _one_of(options: list[dict[str, Any]]) -> dict[str, Any]:
    return {"anyOf": options} if len(options) > 1 else options[0]
