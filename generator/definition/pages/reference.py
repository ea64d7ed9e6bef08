"""`cluster_defs/reference.yaml` and `docs/definition.md`, written from the declarations, so they cannot drift."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from ..kinds import Choice, Kind, ListOf, OneSection, Scalar, kind_of, sections, type_tags
from ..model.definition import Definition
from ..model.fields import Section, Setting, plain_values, values_of

WIDTH = 112
_WORDS = {int: "whole number", float: "number", bool: "true | false"}
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
    return HEADER + "\n".join(_section(Definition, {}, "")) + "\n"


def default_text(declared: Setting) -> str:
    """The default as a user writes it; `required` where there is none."""
    if declared.is_required:
        return "required"
    value = declared.new_default()
    if isinstance(value, Section):
        return _flow(values) if (values := without_defaults(value)) else "its defaults"
    return "none" if value is None else _flow(value)


def without_defaults(section: Section) -> dict[str, Any]:
    """What a user has to write for the section."""
    return {
        name: plain_values(value)
        for name, value in values_of(section).items()
        if (declared := section.declared_keys[name]).is_required or value != declared.new_default()
    }


def kind_text(kind: Kind) -> str:
    if isinstance(kind, ListOf):
        return f"list of {kind_text(kind.item)}"
    if isinstance(kind, Choice):
        return " | ".join(str(option) for option in kind.options)
    if isinstance(kind, Scalar):
        # A text may hold anything, so only what else is possible is worth a word.
        return " or ".join(_WORDS[each] for each in kind.types if each is not str) or "text"
    return "text or mapping" if isinstance(kind, OneSection) and kind.may_be_text else "mapping"


def _section(section: type[Section], values: Mapping[str, Any], indent: str) -> Iterator[str]:
    for name, declared in section.declared_keys.items():
        value = values.get(name, declared.example)
        if not indent:
            yield ""
        yield from _comment(declared, indent)
        lines = list(_entry(name, declared, value, indent))
        yield from (lines if declared.active or name in values else _commented(lines, indent))


def _entry(name: str, declared: Setting, value: Any, indent: str) -> Iterator[str]:
    kind = kind_of(declared)
    item = kind.item if isinstance(kind, ListOf) else None
    if isinstance(item, OneSection) and isinstance(value, list) and value and isinstance(value[0], Mapping):
        yield f"{indent}{name}:"
        yield from _items(item, value, indent + "  ")
    elif isinstance(kind, OneSection) and isinstance(value, Mapping | None):
        chosen = kind.chosen(value) or kind.classes[0]
        yield f"{indent}{name}:"
        yield from _section(chosen, value or {}, indent + "  ")
        for other in kind.classes:
            if other is not chosen:
                yield f"{indent}# or, instead: {_first_sentence(other)}"
                yield from _commented([f"{indent}{name}:", *_section(other, {}, indent + "  ")], indent)
    else:
        yield f"{indent}{name}: {_flow(value)}"


def _items(kind: OneSection, values: list[Any], indent: str) -> Iterator[str]:
    used = []
    for number, value in enumerate(values):
        section = kind.chosen(value) or kind.classes[0]
        used.append(section)
        if number == 0:
            yield from _dashed(list(_section(section, value, indent + "  ")), indent)
        else:
            yield f"{indent}- {_flow(value)}"
    for other in kind.classes:
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


def _comment(declared: Setting, indent: str) -> Iterator[str]:
    for line in textwrap.wrap(
        f"{declared.text}{_facts(declared)}", WIDTH - len(indent), break_long_words=False, break_on_hyphens=False
    ):
        yield f"{indent}# {line}"


def _facts(declared: Setting) -> str:
    """Type, unit, default and cost of a change in brackets; what the description or the example says is left out."""
    unit, kind, default = declared.unit, kind_text(kind_of(declared)), default_text(declared)
    facts = [] if kind in ("mapping", "list of mapping") else [f"{kind}, {unit}" if unit else kind]
    if default == "required":
        facts.append("required")
    elif default not in ("none", "its defaults", "[]", "{}") and kind != "mapping":
        facts.append(f"default: {default}")
    if facts:
        facts.append(f"change: {declared.change}")
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


_PAGE_HEAD = """\
# The definition

One YAML file describes one deployment. Unknown keys and wrong types are problems; everything but `name`, `location`
and `slurm.partitions` has a default. `${NAME}` and `${NAME:-default}` read the environment; `$$` is a dollar sign.
A value that is one variable means what its key says, text or number, with or without quotes.
A variable that is not set is a problem, except for the SSH key and the hub network, which the deployment then asks
for. This page is generated from the model: `make accept`.

The column "change" shows what a change costs on a running cluster: `in place`, `node restart` (running nodes keep
the old value until they are replaced) or `recreate` (the resource or the cluster must be deleted first).
"""


def page() -> str:
    lines = [_PAGE_HEAD]
    for title, section in _walk("", Definition):
        lines += [
            f"## {title or 'Top level'}",
            "",
            (section.__doc__ or "").strip(),
            "",
            "| key | type | default | change | meaning |",
            "|---|---|---|---|---|",
        ]
        for name, declared in section.declared_keys.items():
            kind = kind_text(kind_of(declared)).replace("|", "\\|") + (f", {declared.unit}" if declared.unit else "")
            lines.append(f"| `{name}` | {kind} | {default_text(declared)} | {declared.change} | {declared.text} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _walk(title: str, section: type[Section]) -> Iterator[tuple[str, type[Section]]]:
    yield title, section
    for name, declared in section.declared_keys.items():
        kind = kind_of(declared)
        for part in sections(kind):
            path = f"{title}.{name}" if title else name
            tags = type_tags(part)
            label = f"{path}{'[]' if isinstance(kind, ListOf) else ''}{f' (type: {tags[0]})' if tags else ''}"
            yield from _walk(label, part)
