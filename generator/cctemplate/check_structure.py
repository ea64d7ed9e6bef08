"""Sections and attributes: known, in their place, and there once."""

from __future__ import annotations

from collections.abc import Iterator

from .evaluate import KNOWN_FUNCTIONS
from .expressions import Call, Tree, walk
from .findings import Finding
from .resolve import configuration_items
from .syntax import Attribute, Section, Template
from .values import AttributeValue, Expression, Interpolation, Listing
from .vocabulary import (
    ATTRIBUTES,
    CONFIGURATION,
    EXPORT_KEYS,
    MOUNT_KEYS,
    NODE_KINDS,
    OPEN_PREFIXES,
    PARENTS,
    STRICT_PREFIXES,
    knows,
    suggestion,
)


def check_structure(template: Template) -> Iterator[Finding]:
    """Findings about the shape of the file."""
    if len(template.clusters) != 1:
        line = template.clusters[1].line if template.clusters else 0
        yield Finding("cluster-count", line, f"the file has {len(template.clusters)} [cluster] sections instead of one")
    yield from _sections("", template.sections)
    for section in template.walk():
        yield from _attributes(section)
        yield from _functions(section)


def _sections(parent: str, sections: tuple[Section, ...]) -> Iterator[Finding]:
    seen: dict[tuple[str, str], int] = {}
    for section in sections:
        shown = f"{section.kind} {section.name}".strip()
        if section.kind not in PARENTS:
            close = suggestion(section.kind, frozenset(PARENTS))
            hint = f"did you mean {close!r}?" if close else None
            yield Finding("unknown-section", section.line, f"no section is of kind {section.kind!r}", hint)
        elif parent not in PARENTS[section.kind]:
            where = " or ".join(
                sorted(f"[{name}]" if name else "the top of the file" for name in PARENTS[section.kind])
            )
            place = f"[{parent}]" if parent else "the top of the file"
            yield Finding("misplaced-section", section.line, f"'{shown}' lies in {place}, but belongs into {where}")
        key = ("node" if section.kind in NODE_KINDS else section.kind, section.name.lower())
        # Configuration sections merge, so several of one name are legal; their keys are checked one by one.
        if key in seen and section.kind not in ("configuration", "parameter", "cluster", "list"):
            yield Finding("duplicate-section", section.line, f"'{shown}' was already described in line {seen[key]}")
        seen.setdefault(key, section.line)
        yield from _sections(section.kind, section.sections)


def _attributes(section: Section) -> Iterator[Finding]:
    if section.kind in NODE_KINDS:
        yield from _configuration(section)
    if section.kind == "configuration":
        return
    seen: dict[str, int] = {}
    known = ATTRIBUTES.get(section.kind)
    for attribute in section.attributes:
        name = attribute.name.lower()
        if name in seen:
            yield _twice(attribute.name, section, attribute, seen[name])
        seen[name] = attribute.line
        if known is None or knows(known, name) or name.startswith(OPEN_PREFIXES.get(section.kind, ("\0",))):
            continue
        yield _unknown(section, attribute, known)


def _twice(name: str, section: Section, attribute: Attribute, first: int) -> Finding:
    message = f"{name!r} of {section.kind} {section.name!r} was already set in line {first}"
    return Finding("duplicate-attribute", attribute.line, message)


def _unknown(section: Section, attribute: Attribute, known: frozenset[str]) -> Finding:
    where = f"{section.kind} {section.name!r}"
    if section.kind in NODE_KINDS and knows(CONFIGURATION, attribute.name):
        message = f"{attribute.name!r} of {where} is a configuration key and has no effect here"
        return Finding("misplaced-attribute", attribute.line, message, "move it into [[[configuration]]]")
    close = suggestion(attribute.name, known)
    hint = f"did you mean {close!r}?" if close else None
    return Finding("unknown-attribute", attribute.line, f"{where} has no attribute {attribute.name!r}", hint)


def _configuration(node: Section) -> Iterator[Finding]:
    seen: dict[str, int] = {}
    for key, attribute in configuration_items(node):
        lower = key.lower()
        if lower in seen:
            yield _twice(key, node, attribute, seen[lower])
        seen[lower] = attribute.line
        if knows(ATTRIBUTES["node"], key):
            message = f"{key!r} is a node attribute and has no effect in the configuration of {node.name!r}"
            yield Finding("misplaced-attribute", attribute.line, message, "move it out of [[[configuration]]]")
            continue
        known, word = _expected(lower)
        if known is not None and not knows(known, word):
            close = suggestion(word, known)
            # Of other names CycleCloud may know more than this list does: only a near miss counts.
            if lower.startswith(STRICT_PREFIXES) or word != lower or close:
                hint = f"did you mean {close!r}?" if close else None
                message = f"nothing reads the configuration key {key!r} of {node.name!r}"
                yield Finding("unknown-attribute", attribute.line, message, hint)


def _expected(key: str) -> tuple[frozenset[str] | None, str]:
    """The names among which a configuration key should be, and the part of it to look up; None: any key will do."""
    parts = key.split(".", 3)
    if parts[0] == "cyclecloud" and len(parts) > 3 and parts[1] in ("mounts", "exports"):
        return (MOUNT_KEYS if parts[1] == "mounts" else EXPORT_KEYS), parts[3]
    if key.startswith((*STRICT_PREFIXES, "cyclecloud.")):
        return CONFIGURATION, key
    return None, key


def trees(value: AttributeValue) -> Iterator[Tree]:
    """Expressions inside a value."""
    match value:
        case Expression(_, tree):
            yield tree
        case Interpolation(parts):
            yield from (part for part in parts if not isinstance(part, str))
        case Listing(items):
            for item in items:
                yield from trees(item)
        case _:
            return


def _functions(section: Section) -> Iterator[Finding]:
    for attribute in section.attributes:
        calls = [node for tree in trees(attribute.value) for node in walk(tree) if isinstance(node, Call)]
        for call in calls:
            if call.function.lower() not in KNOWN_FUNCTIONS:
                close = suggestion(call.function, frozenset(KNOWN_FUNCTIONS))
                hint = f"did you mean {close!r}?" if close else None
                message = f"{attribute.name!r} calls the unknown function {call.function!r}"
                yield Finding("unknown-function", attribute.line, message, hint)
