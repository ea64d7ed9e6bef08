"""What a node really gets: attributes, configuration and cluster-init specs with inheritance applied.

`[[node defaults]]` comes first, then the names of `Extends` in order, then the node itself; later wins, and
`Attribute := undefined` takes an inherited attribute away.
Source: https://learn.microsoft.com/azure/cyclecloud/cluster-references/node-nodearray-reference#inheritance
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from .expressions import Constant
from .syntax import Attribute, Section
from .values import known_value

DEFAULTS = "defaults"
LONGEST_INHERITANCE = 64
"""Nodes through which attributes are followed."""
_UNDEFINED = Constant(None)


class SpecReference(Struct, frozen=True):
    """A cluster-init spec; `source` is its locker: "" for the node's own, `cyclecloud` for built-in ones."""

    source: str
    project: str
    spec: str
    version: str
    line: int

    @property
    def key(self) -> str:
        """`locker/project:spec:version`, as a template writes it."""
        parts = [self.project, self.spec, *([self.version] if self.version else [])]
        return (f"{self.source}/" if self.source else "") + ":".join(parts)


class ResolvedNode(Struct, frozen=True):
    """A node or node array; keys of attributes and configuration are in lower case."""

    section: Section
    attributes: dict[str, Attribute]
    configuration: dict[str, Attribute]
    specs: tuple[SpecReference, ...]
    interfaces: dict[str, dict[str, Attribute]]
    """Network interface → its attributes; names in lower case."""

    @property
    def name(self) -> str:
        return self.section.name

    @property
    def is_abstract(self) -> bool:
        """Not created itself: `defaults`, or `Abstract = true`."""
        own = self.section.attribute("Abstract")
        return self.name.lower() == DEFAULTS or (own is not None and own.value == Constant(True))


def text_of(section: Section, name: str) -> str:
    """An attribute as text; "" if it is absent or depends on a parameter."""
    found = section.attribute(name)
    value = None if found is None else known_value(found.value, {})
    return "" if value is None else str(value)


def extends(section: Section) -> tuple[str, ...]:
    """Names that a node inherits from, without the implicit `defaults`; none where a parameter decides."""
    found = section.attribute("Extends")
    value = None if found is None else known_value(found.value, {})
    names = value if isinstance(value, list) else [value]
    return tuple(str(name) for name in names if name is not None)


def configuration_items(section: Section) -> Iterator[tuple[str, Attribute]]:
    """(full key, attribute) of a node's own `[[[configuration]]]` sections."""
    for part in section.of_kind("configuration"):
        prefix = f"{part.name}." if part.name else ""
        for attribute in part.attributes:
            yield prefix + attribute.name, attribute


def spec_reference(section: Section) -> SpecReference:
    """Read what a `[[[cluster-init …]]]` section refers to; parts that it leaves out are empty."""
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
    # Once for each section: along a chain of nodes, every node passes everything on.
    bases = {name: lower_bases(section) for name, section in sections.items()}
    own = {name: _own(section) for name, section in sections.items()}
    return {name: _merged(sections[name], [own[part] for part in _lineage(name, bases)]) for name in sections}


def lower_bases(section: Section) -> tuple[str, ...]:
    """The names of `extends` in lower case, as nodes are found by."""
    return tuple(name.lower() for name in extends(section))


class _Own(Struct, frozen=True):
    """The attributes that one section sets itself; keys in lower case."""

    attributes: tuple[tuple[str, Attribute], ...]
    configuration: tuple[tuple[str, Attribute], ...]
    specs: tuple[SpecReference, ...]
    interfaces: tuple[tuple[str, str, Attribute], ...]
    """(interface, name, attribute)."""


def _own(section: Section) -> _Own:
    return _Own(
        tuple((attribute.name.lower(), attribute) for attribute in section.attributes),
        tuple((key.lower(), attribute) for key, attribute in configuration_items(section)),
        tuple(spec_reference(part) for part in section.of_kind("cluster-init")),
        tuple(
            (part.name.lower(), attribute.name.lower(), attribute)
            for part in section.of_kind("network-interface")
            for attribute in part.attributes
        ),
    )


def _lineage(name: str, bases: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The node after everything it inherits from; each base once, `defaults` first."""
    ordered = dict.fromkeys([DEFAULTS] if DEFAULTS in bases else [])

    def add(current: str, below: frozenset[str]) -> None:
        if len(below) > LONGEST_INHERITANCE:
            return
        for base in bases[current]:
            if base in bases and base not in below and base not in ordered:
                add(base, below | {base})
        ordered.setdefault(current)

    add(name, frozenset({name}))
    return tuple(ordered)


def _merged(section: Section, lineage: Sequence[_Own]) -> ResolvedNode:
    attributes: dict[str, Attribute] = {}
    configuration: dict[str, Attribute] = {}
    specs: dict[tuple[str, str, str], SpecReference] = {}
    interfaces: dict[str, dict[str, Attribute]] = {}
    for part in lineage:
        for name, attribute in part.attributes:
            if part is lineage[-1] or name != "abstract":
                _set(attributes, name, attribute)
        for name, attribute in part.configuration:
            _set(configuration, name, attribute)
        for spec in part.specs:
            specs.setdefault((spec.source, spec.project, spec.spec), spec)
        for interface, name, attribute in part.interfaces:
            _set(interfaces.setdefault(interface, {}), name, attribute)
    return ResolvedNode(section, attributes, configuration, tuple(specs.values()), interfaces)


def _set(target: dict[str, Attribute], name: str, attribute: Attribute) -> None:
    if attribute.value == _UNDEFINED:
        target.pop(name, None)
    else:
        target[name] = attribute
