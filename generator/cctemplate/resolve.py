"""What a node really gets: attributes, configuration and cluster-init specs with inheritance applied.

`[[node defaults]]` comes first, then the names of `Extends` in order, then the node itself; later wins, and
`Attribute := undefined` takes an inherited attribute away.
Source: https://learn.microsoft.com/azure/cyclecloud/cluster-references/node-nodearray-reference#inheritance
"""

from __future__ import annotations

from collections.abc import Iterator

from ..records import record
from .errors import EvaluationError
from .expressions import Constant
from .syntax import Attribute, Section
from .values import constant

DEFAULTS = "defaults"
LONGEST_INHERITANCE = 64
"""Nodes through which attributes are followed."""


@record
class SpecReference:
    """A cluster-init spec; `source` is its locker: "" for the node's own, `cyclecloud` for built-in ones."""

    source: str
    project: str
    spec: str
    version: str
    line: int

    @property
    def key(self) -> str:
        """As CycleCloud writes it."""
        parts = [self.project, self.spec, *([self.version] if self.version else [])]
        return (f"{self.source}/" if self.source else "") + ":".join(parts)


@record
class ResolvedNode:
    """A node or node array; keys of attributes and configuration are in lower case."""

    section: Section
    attributes: dict[str, Attribute]
    configuration: dict[str, Attribute]
    specs: tuple[SpecReference, ...]

    @property
    def name(self) -> str:
        """Name as written."""
        return self.section.name

    @property
    def is_abstract(self) -> bool:
        """Not created itself: `defaults`, or `Abstract = true`."""
        own = self.section.attribute("Abstract")
        return self.name.lower() == DEFAULTS or (own is not None and own.value == Constant(True))


def text_of(section: Section, name: str) -> str:
    """An attribute as text; "" if it is absent or depends on a parameter."""
    found = section.attribute(name)
    if found is None:
        return ""
    try:
        value = constant(found.value)
    except EvaluationError:
        return ""
    return "" if value is None else str(value)


def extends(section: Section) -> tuple[str, ...]:
    """Names that a node inherits from, without the implicit `defaults`; none where a parameter decides."""
    found = section.attribute("Extends")
    if found is None:
        return ()
    try:
        value = constant(found.value)
    except EvaluationError:
        return ()
    names = value if isinstance(value, list) else [value]
    return tuple(str(name) for name in names)


def configuration_items(section: Section) -> Iterator[tuple[str, Attribute]]:
    """(full key, attribute) of a node's own `[[[configuration]]]` sections."""
    for part in section.of_kind("configuration"):
        prefix = f"{part.name}." if part.name else ""
        for attribute in part.attributes:
            yield prefix + attribute.name, attribute


def spec_reference(section: Section) -> SpecReference:
    """What a `[[[cluster-init …]]]` section refers to; empty parts where nothing is said."""
    source, slash, rest = section.name.rpartition("/")
    parts = [*rest.split(":"), "", ""][:3] if ":" in rest else ["", "", ""]
    project, spec, version = (
        text_of(section, name) or part for name, part in zip(("Project", "Spec", "Version"), parts, strict=True)
    )
    source = text_of(section, "SourceLocker") or (source if slash else "")
    return SpecReference(source, project, spec, version, section.line)


def resolve(cluster: Section) -> dict[str, ResolvedNode]:
    """Every node and node array of a cluster by lower-case name. Unknown or circular `Extends` are skipped here."""
    sections = {section.name.lower(): section for section in cluster.of_kind("node", "nodearray")}
    return {name: _merged(_lineage(name, sections)) for name in sections}


def _lineage(name: str, sections: dict[str, Section]) -> tuple[Section, ...]:
    """The node after everything it inherits from; each base once, `defaults` first."""
    ordered: dict[str, Section] = {}
    if DEFAULTS in sections:
        ordered[DEFAULTS] = sections[DEFAULTS]

    def add(current: str, below: frozenset[str]) -> None:
        if len(below) > LONGEST_INHERITANCE:
            return
        for base in (base.lower() for base in extends(sections[current])):
            if base in sections and base not in below and base not in ordered:
                add(base, below | {base})
        ordered.setdefault(current, sections[current])

    add(name, frozenset({name}))
    return tuple(ordered.values())


def _merged(lineage: tuple[Section, ...]) -> ResolvedNode:
    attributes: dict[str, Attribute] = {}
    configuration: dict[str, Attribute] = {}
    specs: dict[tuple[str, str, str], SpecReference] = {}
    own = lineage[-1]
    for section in lineage:
        for attribute in section.attributes:
            if section is own or attribute.name.lower() != "abstract":
                _set(attributes, attribute.name, attribute)
        for key, attribute in configuration_items(section):
            _set(configuration, key, attribute)
        for part in section.of_kind("cluster-init"):
            spec = spec_reference(part)
            specs.setdefault((spec.source, spec.project, spec.spec), spec)
    return ResolvedNode(own, attributes, configuration, tuple(specs.values()))


def _set(target: dict[str, Attribute], name: str, attribute: Attribute) -> None:
    if attribute.value == Constant(None):
        target.pop(name.lower(), None)
    else:
        target[name.lower()] = attribute
