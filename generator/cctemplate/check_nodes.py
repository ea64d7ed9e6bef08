"""Nodes and node arrays: what each needs to start, what only single nodes may have, projects, and Slurm's roles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from ..problems.problem import Place, Problem
from ..words.counts import listed
from ..words.suggestions import did_you_mean
from . import rules
from .expressions import Constant, Scalar
from .resolve import (
    LONGEST_INHERITANCE,
    ResolvedNode,
    SpecReference,
    configuration_items,
    extends,
    lower_bases,
    spec_reference,
)
from .syntax import Attribute, Section
from .values import Value, known_value
from .vocabulary import (
    BUILTIN_LOCKER,
    BUILTIN_PROJECTS,
    MOUNT_TYPES,
    NODE_KINDS,
    NODE_ONLY,
    RANGES,
    STANDALONE_ONLY,
    SWITCHES,
    knows,
    meant,
    misspelt,
)

Specs = Set[tuple[str, str, str]]
"""(project, spec, version) of everything that the deployment folder contains."""

_MOUNT_TYPE = re.compile(r"cyclecloud\.(?:mounts|exports)\.[^.]+\.type", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_NEEDED = ("MachineType", "SubnetId", "Credentials")
_IMAGES = (("imagename",), ("imageid",), ("azure.publisher", "azure.offer", "azure.sku", "azure.imageversion"))


def check_nodes(cluster: Section, nodes: Iterable[ResolvedNode], specs: Specs | None) -> Iterator[Problem]:
    """Problems of the nodes of a cluster, which are resolved already; `specs` is what the folder contains (None: not
    known)."""
    yield from _bases(cluster)
    yield from _references(cluster, specs)
    for section in cluster.walk():
        yield from _plain_values(section)
    for node in nodes:
        yield from _mounts(node)
        if not node.is_abstract:
            yield from _attributes(node)


def _bases(cluster: Section) -> Iterator[Problem]:
    nodes = {section.name.lower(): section for section in cluster.of_kind("node", "nodearray")}
    bases = {name: lower_bases(section) for name, section in nodes.items()}
    for name, section in nodes.items():
        for base in extends(section):
            if base.lower() not in nodes:
                hint = meant(base, frozenset(node.name for node in nodes.values()))
                text = f"{section.name!r} extends {base!r}, which is missing"
                yield rules.UnknownBase.problem((), text, hint, place=_place(section, "Extends"))
                continue
            above = _ancestors(base.lower(), bases)
            if above is None:
                text = f"{section.name!r} inherits through more than {LONGEST_INHERITANCE} nodes"
                yield rules.CircularBase.problem((), text, place=_place(section, "Extends"))
            elif name in above:
                text = f"{section.name!r} inherits from itself through {base!r}"
                yield rules.CircularBase.problem((), text, place=_place(section, "Extends"))


def _ancestors(name: str, bases: Mapping[str, Sequence[str]]) -> frozenset[str] | None:
    """The node and all it inherits from; None when there are too many to follow."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current in bases and current not in seen:
            seen.add(current)
            waiting += bases[current]
        if len(seen) > LONGEST_INHERITANCE:
            return None
    return frozenset(seen)


def _attributes(node: ResolvedNode) -> Iterator[Problem]:
    missing = [name for name in _NEEDED if name.lower() not in node.attributes]
    if not any(all(name in node.attributes for name in image) for image in _IMAGES):
        missing.append("ImageName")
    for name in missing:
        text = f"{node.section.kind} {node.name!r} has no {name}"
        yield rules.MissingAttribute.problem((), text, place=node.section.place)
    if node.section.kind == "nodearray" and not _NAME.fullmatch(node.name):
        text = f"{node.name!r} cannot be part of a host name"
        yield rules.NodeName.problem((), text, "use a-z, 0-9 and '-'", place=node.section.place)


# ---------------------------------------------------------------- cluster-init


def _references(cluster: Section, specs: Specs | None) -> Iterator[Problem]:
    versions: dict[str, dict[str, Place]] = {}
    for node in cluster.of_kind("node", "nodearray"):
        for section in node.of_kind("cluster-init"):
            reference = spec_reference(section)
            if reference.source == BUILTIN_LOCKER:
                yield from _builtin(reference, section.place)
                versions.setdefault(reference.project, {}).setdefault(reference.version, section.place)
            else:
                yield from _own(reference, section, specs)
    for project, named in versions.items():
        if len(named) > 1:
            shown = ", ".join(repr(version) if version else "none" for version in sorted(named))
            text = f"references to {BUILTIN_LOCKER}/{project} name different versions: {shown}"
            place = max(named.values())
            yield rules.MixedVersions.problem((), text, place=place)


def _builtin(reference: SpecReference, place: Place) -> Iterator[Problem]:
    if not reference.project or not reference.spec:
        text = f"'{BUILTIN_LOCKER}/…' names no project and spec"
        yield rules.UnknownSpec.problem((), text, f"write {BUILTIN_LOCKER}/project:spec", place=place)
        return
    known = BUILTIN_PROJECTS.get(reference.project)
    if known is not None and reference.spec in known:
        return
    names = frozenset(f"{project}:{spec}" for project, have in BUILTIN_PROJECTS.items() for spec in have)
    if known is None and not misspelt(reference.project, frozenset(BUILTIN_PROJECTS)):
        text = f"{reference.key!r} is not among the published projects"
        yield rules.UnknownBuiltIn.problem((), text, place=place)
        return
    close = did_you_mean(f"{reference.project}:{reference.spec}", sorted(names))
    hint = f"did you mean {BUILTIN_LOCKER}/{close}?" if close else None
    rule = rules.UnknownSpec if known is None or misspelt(reference.spec, known) else rules.UnknownBuiltIn
    yield rule.problem((), f"CycleCloud has no built-in spec {reference.key!r}", hint, place=place)


def _own(reference: SpecReference, section: Section, specs: Specs | None) -> Iterator[Problem]:
    if not reference.project or not reference.spec:
        text = f"'{section.name}' names no project and spec"
        yield rules.UnknownSpec.problem((), text, "write project:spec:version", place=section.place)
        return
    if not reference.version:
        text = f"reference {reference.key!r} names no version"
        yield rules.MissingVersion.problem((), text, place=section.place)
        return
    key = (reference.project, reference.spec, reference.version)
    if specs is not None and key not in specs:
        known = frozenset(":".join(spec) for spec in specs)
        text = f"the deployment folder has no project for {reference.key!r}"
        yield rules.UnknownSpec.problem((), text, meant(":".join(key), known), place=section.place)


# ---------------------------------------------------------------- values


def _place(section: Section, name: str) -> Place:
    """Return the place of an attribute's value, or of the section that lacks it."""
    attribute = section.attribute(name)
    return section.place if attribute is None else attribute.value_place


def _plain_values(section: Section) -> Iterator[Problem]:
    """Numbers and switches that are written out."""
    kind = "node" if section.kind in NODE_KINDS else section.kind
    for name in SWITCHES.get(kind, ()):
        attribute = section.attribute(name)
        if attribute is not None and isinstance(attribute.value, Constant):
            value = attribute.value.value
            if value is not None and not isinstance(value, bool):
                text = f"{attribute.name} of {section.kind} {section.name!r} is true or false, not {value!r}"
                yield rules.BadValue.problem((), text, place=attribute.value_place)
    for name, limits in RANGES.get(kind, {}).items():
        attribute = section.attribute(name)
        if attribute is not None and isinstance(attribute.value, Constant) and attribute.value.value is not None:
            yield from _number(section, attribute, attribute.value.value, limits)
    counts = [section.attribute(name) for name in ("InitialCount", "MaxCount")]
    first, most = (each.value.value if each and isinstance(each.value, Constant) else None for each in counts)
    if isinstance(first, int) and isinstance(most, int) and first > most and counts[0] is not None:
        text = f"{section.kind} {section.name!r} begins with {first} nodes and may have {most}"
        yield rules.BadValue.problem((), text, place=counts[0].value_place)


def _number(
    section: Section, attribute: Attribute, value: Scalar, limits: tuple[float, float, bool]
) -> Iterator[Problem]:
    least, largest, is_whole = limits
    what = f"{attribute.name} of {section.kind} {section.name!r}"
    if isinstance(value, bool) or not isinstance(value, int if is_whole else int | float):
        text = f"{what} is {'a whole number' if is_whole else 'a number'}, not {value!r}"
    elif not least <= value <= largest:
        text = f"{what} is {least:.0f} to {largest:.0f}, not {value}"
    else:
        return
    yield rules.BadValue.problem((), text, place=attribute.value_place)


def _mounts(node: ResolvedNode) -> Iterator[Problem]:
    """Types of mounts and exports that a node sets itself."""
    for key, attribute in configuration_items(node.section):
        if not _MOUNT_TYPE.fullmatch(key):
            continue
        value = attribute.value.value if isinstance(attribute.value, Constant) else None
        if isinstance(value, str) and value and not knows(MOUNT_TYPES, value):
            text = f"{key!r} of {node.name!r} is of the unknown type {value!r}"
            hint = meant(value, MOUNT_TYPES) or "published templates use nfs, lustre, glusterfs, beegfs and cifs"
            yield rules.BadMount.problem((), text, hint, place=attribute.value_place)


_METHOD, _STANDALONE = "azure.allocationmethod", "standalone"


def check_arrays(nodes: Iterable[ResolvedNode], known: Mapping[str, Value]) -> Iterator[Problem]:
    """Attributes of network interfaces that CycleCloud refuses of arrays; `known` is what expressions may read.

    What an array inherits is reported once, where it is written, with all arrays that get it.
    """
    arrays: dict[int, tuple[Attribute, list[ResolvedNode]]] = {}
    for node in nodes:
        if node.section.kind == "nodearray" and not node.is_abstract and not _stays_empty(node, known):
            for attribute in _refused(node, known):
                arrays.setdefault(id(attribute), (attribute, []))[1].append(node)
    for attribute, having in arrays.values():
        names = listed([repr(node.name) for node in having])
        text = f"{attribute.name} is for single nodes, but the node array{'s' * (len(having) > 1)} {names} would get it"
        hint = "Azure.AllocationMethod = StandAlone" if _is_in(attribute, STANDALONE_ONLY) else None
        yield rules.NodeOnly.problem((), text, hint, place=attribute.place)


def _stays_empty(node: ResolvedNode, known: Mapping[str, Value]) -> bool:
    """Return True for an array that never gets a node, such as that of a second scheduler that is switched off."""
    begins_empty = _of(node.attributes, "initialcount", known) == 0
    grows = _of(node.configuration, "autoscale.enabled", known) is not False or "maxcount" in node.attributes
    return begins_empty and not grows


def _refused(node: ResolvedNode, known: Mapping[str, Value]) -> Iterator[Attribute]:
    is_standalone = str(_of(node.attributes, _METHOD, known)).lower() == _STANDALONE
    for attributes in node.interfaces.values():
        for attribute in attributes.values():
            may_be_refused = _is_in(attribute, NODE_ONLY) or (_is_in(attribute, STANDALONE_ONLY) and not is_standalone)
            if may_be_refused and known_value(attribute.value, known) not in (None, False, ""):
                yield attribute


def _is_in(attribute: Attribute, names: frozenset[str]) -> bool:
    return attribute.name.lower() in {name.lower() for name in names}


_DEFAULT_SCALE_SET_SIZE = 40  # node-nodearray-reference, Azure.MaxScaleSetSize


def check_slurm(nodes: Iterable[ResolvedNode], variables: Mapping[str, Value]) -> Iterator[Problem]:
    """Problems of a cluster whose nodes have Slurm roles; nothing for others. `variables` are parameter values."""
    concrete = [node for node in nodes if not node.is_abstract]
    if not any("slurm.role" in node.configuration for node in concrete):
        return
    execute: list[ResolvedNode] = []
    for node in concrete:
        role = _of(node.configuration, "slurm.role", variables)
        if "slurm.role" not in node.configuration:
            yield rules.MissingRole.problem((), f"node {node.name!r} has no slurm.role", place=node.section.place)
        elif role is not None:
            yield from _role_specs(node, str(role))
        if role == "execute":
            execute.append(node)
    for node in execute:
        yield from _execute(node, variables)
    yield from _partitions(execute, variables)


def _of(attributes: Mapping[str, Attribute], name: str, variables: Mapping[str, Value]) -> Value:
    attribute = attributes.get(name)
    return None if attribute is None else known_value(attribute.value, variables)


def _role_specs(node: ResolvedNode, role: str) -> Iterator[Problem]:
    present = {spec.spec for spec in node.specs if spec.project == "slurm"}
    for spec in ("default", role):
        if spec not in present:
            text = f"node {node.name!r} with role {role!r} lacks {BUILTIN_LOCKER}/slurm:{spec}"
            yield rules.MissingSpec.problem((), text, place=node.section.place)


def _execute(node: ResolvedNode, variables: Mapping[str, Value]) -> Iterator[Problem]:
    place, configuration = node.section.place, node.configuration
    hpc = _of(configuration, "slurm.hpc", variables)
    if "slurm.hpc" not in configuration:
        yield rules.MissingHpc.problem((), f"node array {node.name!r} does not set slurm.hpc", place=place)
    elif hpc is True and _of(configuration, "autoscale.is_hpc", variables) is False:
        yield rules.ContradictingHpc.problem(
            (), f"node array {node.name!r} sets slurm.hpc and unsets autoscale.is_hpc", place=place
        )
    for key in ("autoscale.enabled", "slurm.autoscale"):
        if _of(configuration, key, variables) is False:
            yield rules.HiddenPartition.problem((), f"node array {node.name!r} sets {key} = false", place=place)
    limit = _of(node.attributes, "maxcount", variables)
    size = _of(node.attributes, "azure.maxscalesetsize", variables)
    size = _DEFAULT_SCALE_SET_SIZE if size is None else size
    if hpc is True and isinstance(limit, int) and isinstance(size, int) and size < limit:
        text = f"node array {node.name!r} may have {limit} nodes, but one scale set only {size}"
        yield rules.ScaleSetSize.problem((), text, f"raise Azure.MaxScalesetSize to {limit}", place=place)


def _partitions(execute: list[ResolvedNode], variables: Mapping[str, Value]) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    defaults = [node for node in execute if _of(node.configuration, "slurm.default_partition", variables) is True]
    if execute and len(defaults) != 1:
        place = (defaults[1] if defaults else execute[0]).section.place
        names = ", ".join(repr(node.name) for node in defaults) or "no partition"
        yield rules.DefaultPartition.problem((), f"exactly one partition must be the default; {names} is", place=place)
    for node in execute:
        if "slurm.dynamic_feature" in node.configuration:
            continue
        partition = str(_of(node.configuration, "slurm.partition", variables) or node.name)
        if partition in owners:
            text = f"partition {partition!r} belongs to the node arrays {owners[partition]!r} and {node.name!r}"
            yield rules.SharedPartition.problem((), text, place=node.section.place)
        owners.setdefault(partition, node.name)
