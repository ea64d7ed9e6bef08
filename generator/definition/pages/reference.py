"""The fully commented definition `cluster_defs/reference.yaml`, written from the declarations, so it cannot drift."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from ..model.definition import Definition
from ..model.fields import Section
from ..walk import branches, change_of, choose, extra_of, item_annotation, sections

WIDTH = 112
HEADER = """\
# yaml-language-server: $schema=definition.schema.json
# Every key of a CycleForge definition, with its meaning, default and the cost of a change on a running cluster:
#   in place        redeploy or import the template again; nothing stops
#   node restart    running nodes keep the old value until they are replaced
#   recreate        the resource or the cluster must be deleted first, or its data is lost
# Keys that exclude others are comments here. Only name, location and slurm.partitions are required.
# This file is generated from the model: `make accept`.
"""


def reference() -> str:
    """The text of the reference definition."""
    return HEADER + "\n".join(_section(Definition, {}, "")) + "\n"


def default_text(field: FieldInfo) -> str:
    """The default as a user writes it; `required` where there is none."""
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, Section):
        return (
            _flow(value.model_dump(exclude_defaults=True, mode="json"))
            if value.model_dump(exclude_defaults=True)
            else "its defaults"
        )
    if value is None or value is PydanticUndefined:
        return "none"
    return _flow(value)


def kind_text(annotation: Any) -> str:
    """The type of a field in words."""
    inner = item_annotation(annotation)
    if inner is not None:
        return f"list of {kind_text(inner)}"
    found = []
    for part in branches(annotation):
        if get_origin(part) is Literal:
            found.append(" | ".join(str(option) for option in get_args(part)))
        elif (isinstance(part, type) and issubclass(part, Section)) or get_origin(part) is dict:
            found.append("mapping")
        else:
            found.append({str: "text", int: "whole number", float: "number", bool: "true | false"}.get(part, "text"))
    return " or ".join(dict.fromkeys(kind for kind in found if kind != "text" or len(found) == 1)) or "text"


def _section(section: type[Section], values: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, field in section.model_fields.items():
        extra = extra_of(field)
        value = values.get(name, extra.get("example"))
        if not indent:
            yield ""
        yield from _comment(field, indent)
        lines = list(_entry(name, field, value, indent))
        yield from (lines if extra.get("active", True) or name in values else _commented(lines, indent))


def _entry(name: str, field: FieldInfo, value: Any, indent: str) -> Iterator[str]:
    item = item_annotation(field.annotation)
    if item is not None and sections(item) and isinstance(value, list) and value and isinstance(value[0], Mapping):
        yield f"{indent}{name}:"
        yield from _items(sections(item), value, indent + "  ")
    elif sections(field.annotation) and item is None and isinstance(value, Mapping | None):
        chosen = choose(sections(field.annotation), value) or sections(field.annotation)[0]
        yield f"{indent}{name}:"
        yield from _section(chosen, value or {}, indent + "  ")
        for other in sections(field.annotation):
            if other is not chosen:
                yield f"{indent}# or, instead: {_first_sentence(other)}"
                yield from _commented([f"{indent}{name}:", *_section(other, {}, indent + "  ")], indent)
    else:
        yield f"{indent}{name}: {_flow(value)}"


def _items(candidates: tuple[type[Section], ...], values: list[Any], indent: str) -> Iterator[str]:
    used = []
    for number, value in enumerate(values):
        section = choose(candidates, value) or candidates[0]
        used.append(section)
        if number == 0:
            yield from _dashed(list(_section(section, value, indent + "  ")), indent)
        else:
            yield f"{indent}- {_flow(value)}"
    for other in candidates:
        if other not in used:
            yield f"{indent}# {_first_sentence(other)}"
            yield from _commented(_dashed(list(_section(other, {}, indent + "  ")), indent), indent)


def _dashed(lines: list[str], indent: str) -> list[str]:
    first = next(number for number, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#"))
    head = lines[:first]
    return [line.replace(indent + "  ", indent, 1) for line in head] + [
        f"{indent}- {lines[first].lstrip()}",
        *lines[first + 1 :],
    ]


def _comment(field: FieldInfo, indent: str) -> Iterator[str]:
    for line in textwrap.wrap(
        f"{field.description}{_facts(field)}", WIDTH - len(indent), break_long_words=False, break_on_hyphens=False
    ):
        yield f"{indent}# {line}"


def _facts(field: FieldInfo) -> str:
    """Type, unit, default and cost of a change in brackets; what the description or the example says is left out."""
    unit, kind, default = extra_of(field).get("unit"), kind_text(field.annotation), default_text(field)
    facts = [] if kind in ("mapping", "list of mapping") else [f"{kind}, {unit}" if unit else kind]
    if default == "required":
        facts.append("required")
    elif default not in ("none", "its defaults", "[]", "{}") and kind != "mapping":
        facts.append(f"default: {default}")
    if facts:
        facts.append(f"change: {change_of(field)}")
    return f" ({'; '.join(facts)})" if facts else ""


def _commented(lines: list[str], indent: str) -> list[str]:
    return [f"{indent}# {line[len(indent) :]}" if line.strip() else line for line in lines]


def _first_sentence(section: type[Section]) -> str:
    return (section.__doc__ or "").strip().splitlines()[0]


def _flow(value: Any) -> str:
    """A value in YAML's flow style; texts are quoted only where they must be."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_flow(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(value)
    plain = (
        bool(value)
        and value.replace("-", "").replace("_", "").replace(".", "").replace("/", "").replace(" ", "").isalnum()
    )
    if value.startswith("${") or (
        plain
        and not value.replace(".", "").isdigit()
        and value[0] not in "-. "
        and value not in ("true", "false", "null")
    ):
        return value
    return json.dumps(value)
