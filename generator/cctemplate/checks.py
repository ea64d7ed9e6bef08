"""All checks of one template, with the parameter file and the projects beside it; first those of its structure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set

from ..problems.problem import LEVELS, Place, Problem
from . import rules
from .check_nodes import Specs, check_arrays, check_nodes, check_slurm
from .check_parameters import check_parameters
from .expressions import Call, Tree, walk
from .resolve import configuration_items, resolve
from .syntax import Attribute, Section, Template
from .values import KNOWN_FUNCTIONS, AttributeValue, Expression, Interpolation, Listing, Value, known_value
from .vocabulary import (
    ATTRIBUTES,
    CONFIGURATION,
    EXPORT_KEYS,
    MOUNT_KEYS,
    NODE_KINDS,
    OLDER_CONFIGURATION,
    OPEN_PREFIXES,
    PARENTS,
    STRICT_PREFIXES,
    knows,
    meant,
    misspelt,
)


def variables(template: Template, values: Mapping[str, Value] | None = None) -> dict[str, Value]:
    """Return what expressions may read: values of the parameter file, else defaults, else undefined; `ClusterName`."""
    known: dict[str, Value] = {"ClusterName": template.clusters[0].name if template.clusters else None}
    for section in template.parameters:
        default = section.attribute("DefaultValue")
        known[section.name] = None if default is None else known_value(default.value, {})
    return known | {name: value for name, value in (values or {}).items() if name in known}


def check(
    template: Template,
    *,
    values: Mapping[str, Value] | None = None,
    late: Set[str] = frozenset(),
    specs: Specs | None = None,
) -> tuple[Problem, ...]:
    """Everything that is wrong, in the order of lines.

    `values` is the parameter file, `late` names the parameters that are filled in on the server, `specs` holds
    (project, spec, version) of what the deployment folder contains. None leaves out the checks that need it.
    """
    found = [*check_structure(template), *check_parameters(template, values, late)]
    known = variables(template, values)
    for cluster in template.clusters:
        nodes = resolve(cluster).values()
        found += check_nodes(cluster, nodes, specs)
        found += check_arrays(nodes, known)
        found += check_slurm(nodes, known)
    return tuple(sorted(found, key=_order))


def _order(problem: Problem) -> tuple[Place, int, str, str]:
    """Sort by line; problems of the parameter file, which have no place here, come first."""
    place = problem.place or Place(0, 0, 0)
    return place, LEVELS.index(problem.level), problem.rule_id, problem.message


def check_structure(template: Template) -> Iterator[Problem]:
    """Report sections and attributes that are unknown, out of place or there twice."""
    if not template.clusters:
        place = template.sections[0].place if template.sections else Place(1, 1, 1)
        yield rules.NoCluster.problem((), "the file has no [cluster] section", "write [cluster NAME]", place=place)
    for cluster in template.clusters[1:]:
        text = f"the file has {len(template.clusters)} [cluster] sections; an import takes one of them"
        yield rules.SeveralClusters.problem((), text, f"-c {cluster.name} imports this one", place=cluster.place)
    yield from _sections("", template.sections)
    for section in template.walk():
        yield from _attributes(section)
        yield from _functions(section)


def _sections(parent: str, sections: tuple[Section, ...]) -> Iterator[Problem]:
    seen: dict[tuple[str, str], int] = {}
    for section in sections:
        shown = f"{section.kind} {section.name}".strip()
        if section.kind not in PARENTS:
            text = f"there are no sections of kind {section.kind!r}"
            yield rules.UnknownSection.problem((), text, meant(section.kind, frozenset(PARENTS)), place=section.place)
        elif parent not in PARENTS[section.kind]:
            where = " or ".join(
                sorted(f"[{name}]" if name else "the top of the file" for name in PARENTS[section.kind])
            )
            here = f"[{parent}]" if parent else "the top of the file"
            text = f"'{shown}' is in {here}, but belongs in {where}"
            yield rules.MisplacedSection.problem((), text, place=section.place)
        key = ("node" if section.kind in NODE_KINDS else section.kind, section.name.lower())
        # Configuration sections merge, so several of one name are legal; their keys are checked one by one.
        if key in seen and section.kind not in ("configuration", "parameter", "cluster", "list", "record"):
            rule = rules.SpecNamedTwice if section.kind == "cluster-init" else rules.DuplicateSection
            yield rule.problem((), f"'{shown}' was already described in line {seen[key]}", place=section.place)
        seen.setdefault(key, section.line)
        yield from _sections(section.kind, section.sections)


def _attributes(section: Section) -> Iterator[Problem]:
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


def _twice(name: str, section: Section, attribute: Attribute, first: int) -> Problem:
    message = f"{name!r} of {section.kind} {section.name!r} was already set in line {first}"
    return rules.DuplicateAttribute.problem((), message, place=attribute.place)


def _unknown(section: Section, attribute: Attribute, known: frozenset[str]) -> Problem:
    where = f"{section.kind} {section.name!r}"
    if section.kind in NODE_KINDS and knows(CONFIGURATION, attribute.name):
        message = f"{attribute.name!r} of {where} is a configuration key and is ignored here"
        return rules.MisplacedAttribute.problem((), message, "move it into [[[configuration]]]", place=attribute.place)
    rule = rules.MisspeltAttribute if misspelt(attribute.name, known) else rules.UnknownAttribute
    text = f"{where} has no attribute {attribute.name!r}"
    return rule.problem((), text, meant(attribute.name, known), place=attribute.place)


def _configuration(node: Section) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for key, attribute in configuration_items(node):
        lower = key.lower()
        if lower in seen:
            yield _twice(key, node, attribute, seen[lower])
        seen[lower] = attribute.line
        if knows(ATTRIBUTES["node"], key):
            message = f"{key!r} is a node attribute and is ignored in the configuration of {node.name!r}"
            hint = "move it out of [[[configuration]]]"
            yield rules.MisplacedAttribute.problem((), message, hint, place=attribute.place)
            continue
        known, word = _expected(lower)
        if known is None or knows(known, word) or knows(OLDER_CONFIGURATION, lower):
            continue
        # Of other names CycleCloud may know more than this list does: only a near miss counts.
        is_mount = word != lower
        near = meant(word, known)
        if lower.startswith(STRICT_PREFIXES) or is_mount or near:
            rule = rules.MisspeltAttribute if is_mount and misspelt(word, known) else rules.UnknownAttribute
            message = f"nothing is known to read the configuration key {key!r} of {node.name!r}"
            yield rule.problem((), message, near, place=attribute.place)


def _expected(key: str) -> tuple[frozenset[str] | None, str]:
    """The names among which a configuration key should be, and the part of it to look up; None: any key will do."""
    parts = key.split(".", 3)
    if parts[0] == "cyclecloud" and len(parts) > 3 and parts[1] in ("mounts", "exports"):
        return (MOUNT_KEYS if parts[1] == "mounts" else EXPORT_KEYS), parts[3]
    if key.startswith((*STRICT_PREFIXES, "cyclecloud.")):
        return CONFIGURATION, key
    return None, key


def trees(value: AttributeValue) -> Iterator[Tree]:
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


def _functions(section: Section) -> Iterator[Problem]:
    for attribute in section.attributes:
        calls = [node for tree in trees(attribute.value) for node in walk(tree) if isinstance(node, Call)]
        for call in calls:
            if call.function.lower() not in KNOWN_FUNCTIONS:
                message = f"{attribute.name!r} calls the unknown function {call.function!r}"
                hint = meant(call.function, KNOWN_FUNCTIONS)
                yield rules.UnknownFunction.problem((), message, hint, place=attribute.value_place)
