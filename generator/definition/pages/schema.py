"""JSON Schema for editors, and what a change of a field costs: both read off the declarations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..model.definition import Definition
from ..walk import Path, change_of, field_at

SCHEMA_ID = "https://json-schema.org/draft/2020-12/schema"
INTERPOLATION = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}
"""A number or a boolean may as well be read from the environment, which an editor cannot look into."""

# Derived values whose change reaches further than "in place"; what is not listed follows the definition's own field.
_DERIVED_COSTS: tuple[tuple[tuple[str, ...], str], ...] = (
    # Which nodes run a project follows from the partitions; their own fields say what that costs.
    (("projects", "roles"), "in place"),
    (("projects",), "node restart"),
    # Attributes reach a node when it starts.
    (("slurm", "node_arrays", "attributes"), "node restart"),
    (("slurm", "version"), "recreate"),
    (("slurm", "project_version"), "recreate"),
    (("server", "image"), "recreate"),
    # A subnet that is added or removed disturbs no other.
    (("network", "subnets", "name"), "recreate"),
    (("network", "subnets", "prefix"), "recreate"),
)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a definition file."""
    schema = Definition.model_json_schema(mode="validation")
    _polish(schema)
    return {
        "$schema": SCHEMA_ID,
        "title": "CycleForge definition",
        **{key: value for key, value in schema.items() if key != "title"},
    }


def schema_text() -> str:
    """The schema as the file that editors read."""
    return json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"


def cost_of(path: Path, effective: Mapping[str, Any] | None = None) -> str:
    """Cost of a change at a path of the effective plan: `("definition", …)` or `("derived", …)`.

    The new plan decides what a key means that several kinds of file system have, for example `size_tib` of a mount.
    """
    if path[:1] == ("definition",):
        field = field_at(Definition, path[1:], (effective or {}).get("definition"))
        return change_of(field) if field else "in place"
    names = tuple(step for step in path[1:] if isinstance(step, str))
    for prefix, cost in _DERIVED_COSTS:
        if names[: len(prefix)] == prefix:
            return cost
    return "in place"


def _polish(node: Any) -> None:
    """Turn our own extras into words that editors show, and admit `${VARIABLE}` where a number or boolean stands."""
    if isinstance(node, list):
        for item in node:
            _polish(item)
        return
    if not isinstance(node, dict):
        return
    properties = node.get("properties", {})
    for name, value in list(properties.items()):
        if isinstance(value, dict):
            properties[name] = _property(value)
    for key, value in node.items():
        if key not in ("examples", "default"):
            _polish(value)


def _property(value: dict[str, Any]) -> dict[str, Any]:
    unit, change, example = value.pop("unit", None), value.pop("change", None), value.pop("example", None)
    value.pop("active", None)
    value.pop("title", None)
    if unit:
        value["description"] = f"{value.get('description', '')} Unit: {unit}."
    if change:
        value["description"] = f"{value.get('description', '')} A change: {change}."
    if example not in (None, {}, []):
        value["examples"] = [example]
    if value.get("type") in ("integer", "number", "boolean"):
        shell: dict[str, Any] = {key: value.pop(key) for key in ("description", "default", "examples") if key in value}
        return {**shell, "anyOf": [value, INTERPOLATION]}
    if "anyOf" in value and any(option.get("type") in ("integer", "number", "boolean") for option in value["anyOf"]):
        value["anyOf"] = [*value["anyOf"], INTERPOLATION]
    return value
