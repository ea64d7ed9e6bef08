"""Nodes: what each needs to start, and what azslurm needs to make partitions of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set

from .errors import EvaluationError
from .evaluate import Value
from .findings import Finding
from .resolve import ResolvedNode, SpecReference, extends, resolve, spec_reference
from .syntax import Attribute, Section
from .values import value_of
from .vocabulary import BUILTIN_LOCKER, BUILTIN_PROJECTS, suggestion

Specs = Set[tuple[str, str, str]]
"""(project, spec, version) of everything that the deployment folder contains."""

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_DEFAULT_SCALE_SET_SIZE = 40  # node-nodearray-reference, Azure.MaxScaleSetSize
_NEEDED = ("MachineType", "SubnetId", "Credentials")
_IMAGES = (("imagename",), ("imageid",), ("azure.publisher", "azure.offer", "azure.sku", "azure.imageversion"))


def check_nodes(cluster: Section, variables: Mapping[str, Value], specs: Specs | None) -> Iterator[Finding]:
    """Findings about nodes; `variables` are parameter values, `specs` what the folder contains (None: not known)."""
    yield from _bases(cluster)
    yield from _references(cluster, specs)
    concrete = [node for node in resolve(cluster).values() if not node.is_abstract]
    execute: list[ResolvedNode] = []
    for node in concrete:
        yield from _attributes(node)
        role = _value(node.configuration, "slurm.role", variables)
        if role is None:
            yield Finding("missing-role", node.section.line, f"node {node.name!r} has no slurm.role")
        else:
            yield from _role_specs(node, str(role))
        if role == "execute":
            execute.append(node)
    for node in execute:
        yield from _execute(node, variables)
    yield from _partitions(execute, variables)


def _value(attributes: Mapping[str, Attribute], name: str, variables: Mapping[str, Value]) -> Value:
    """A resolved attribute's value; None if it is absent or depends on something unknown."""
    attribute = attributes.get(name)
    if attribute is None:
        return None
    try:
        return value_of(attribute.value, variables)
    except EvaluationError:
        return None


def _bases(cluster: Section) -> Iterator[Finding]:
    nodes = {section.name.lower(): section for section in cluster.of_kind("node", "nodearray")}
    for name, section in nodes.items():
        for base in extends(section):
            if base.lower() not in nodes:
                close = suggestion(base, frozenset(node.name for node in nodes.values()))
                hint = f"did you mean {close!r}?" if close else None
                yield Finding(
                    "unknown-base", section.line, f"{section.name!r} extends {base!r}, which is missing", hint
                )
            elif name in _ancestors(base.lower(), nodes, frozenset()):
                yield Finding("circular-base", section.line, f"{section.name!r} inherits from itself through {base!r}")


def _ancestors(name: str, nodes: Mapping[str, Section], seen: frozenset[str]) -> frozenset[str]:
    """The node and all it inherits from."""
    if name not in nodes or name in seen:
        return seen
    seen = seen | {name}
    for base in extends(nodes[name]):
        seen = _ancestors(base.lower(), nodes, seen)
    return seen


def _attributes(node: ResolvedNode) -> Iterator[Finding]:
    missing = [name for name in _NEEDED if name.lower() not in node.attributes]
    if not any(all(name in node.attributes for name in image) for image in _IMAGES):
        missing.append("ImageName")
    for name in missing:
        yield Finding("missing-attribute", node.section.line, f"{node.section.kind} {node.name!r} has no {name}")
    if node.section.kind == "nodearray" and not _NAME.fullmatch(node.name):
        yield Finding("node-name", node.section.line, f"{node.name!r} cannot be part of a host name")


def _role_specs(node: ResolvedNode, role: str) -> Iterator[Finding]:
    present = {spec.spec for spec in node.specs if (spec.source, spec.project) == (BUILTIN_LOCKER, "slurm")}
    for spec in ("default", role):
        if spec not in present:
            text = f"node {node.name!r} with role {role!r} lacks {BUILTIN_LOCKER}/slurm:{spec}"
            yield Finding("missing-spec", node.section.line, text)


def _execute(node: ResolvedNode, variables: Mapping[str, Value]) -> Iterator[Finding]:
    line, configuration = node.section.line, node.configuration
    hpc = _value(configuration, "slurm.hpc", variables)
    if "slurm.hpc" not in configuration:
        yield Finding("missing-hpc", line, f"node array {node.name!r} does not set slurm.hpc")
    elif hpc is True and _value(configuration, "autoscale.is_hpc", variables) is False:
        yield Finding("contradicting-hpc", line, f"node array {node.name!r} sets slurm.hpc and unsets autoscale.is_hpc")
    for key in ("autoscale.enabled", "slurm.autoscale"):
        if _value(configuration, key, variables) is False:
            yield Finding("hidden-partition", line, f"node array {node.name!r} sets {key} = false")
    limit = _value(node.attributes, "maxcount", variables)
    size = _value(node.attributes, "azure.maxscalesetsize", variables)
    size = _DEFAULT_SCALE_SET_SIZE if size is None else size
    if hpc is True and isinstance(limit, int) and isinstance(size, int) and size < limit:
        text = f"node array {node.name!r} may have {limit} nodes, but one scale set only {size}"
        yield Finding("scale-set-size", line, text, f"raise Azure.MaxScalesetSize to {limit}")


def _partitions(execute: list[ResolvedNode], variables: Mapping[str, Value]) -> Iterator[Finding]:
    owners: dict[str, str] = {}
    defaults = [node for node in execute if _value(node.configuration, "slurm.default_partition", variables) is True]
    if execute and len(defaults) != 1:
        line = defaults[1].section.line if defaults else execute[0].section.line
        names = ", ".join(repr(node.name) for node in defaults) or "no partition"
        yield Finding("default-partition", line, f"exactly one partition must be the default; {names} is")
    for node in execute:
        if "slurm.dynamic_feature" in node.configuration:
            continue
        partition = str(_value(node.configuration, "slurm.partition", variables) or node.name)
        if partition in owners:
            text = f"partition {partition!r} belongs to the node arrays {owners[partition]!r} and {node.name!r}"
            yield Finding("shared-partition", node.section.line, text)
        owners.setdefault(partition, node.name)


# ---------------------------------------------------------------- cluster-init


def _references(cluster: Section, specs: Specs | None) -> Iterator[Finding]:
    versions: dict[str, dict[str, int]] = {}
    for node in cluster.of_kind("node", "nodearray"):
        for section in node.of_kind("cluster-init"):
            reference = spec_reference(section)
            if reference.source == BUILTIN_LOCKER:
                yield from _builtin(reference)
                versions.setdefault(reference.project, {}).setdefault(reference.version, reference.line)
            else:
                yield from _own(reference, section, specs)
    for project, named in versions.items():
        if len(named) > 1:
            shown = ", ".join(repr(version) if version else "none" for version in sorted(named))
            text = f"references to {BUILTIN_LOCKER}/{project} name different versions: {shown}"
            yield Finding("mixed-versions", max(named.values()), text)


def _builtin(reference: SpecReference) -> Iterator[Finding]:
    if reference.spec not in BUILTIN_PROJECTS.get(reference.project, frozenset()):
        known = [f"{project}:{spec}" for project, have in sorted(BUILTIN_PROJECTS.items()) for spec in sorted(have)]
        close = suggestion(f"{reference.project}:{reference.spec}", frozenset(known))
        hint = f"did you mean {BUILTIN_LOCKER}/{close}?" if close else None
        yield Finding("unknown-project", reference.line, f"CycleCloud has no built-in spec {reference.key!r}", hint)


def _own(reference: SpecReference, section: Section, specs: Specs | None) -> Iterator[Finding]:
    if not reference.project or not reference.spec:
        text = f"'{section.name}' names no project and spec"
        yield Finding("unknown-project", reference.line, text, "write project:spec:version")
        return
    if not reference.version:
        yield Finding("missing-version", reference.line, f"reference {reference.key!r} names no version")
        return
    key = (reference.project, reference.spec, reference.version)
    if specs is not None and key not in specs:
        known = frozenset(":".join(spec) for spec in specs)
        close = suggestion(":".join(key), known)
        hint = f"did you mean {close!r}?" if close else None
        text = f"the deployment folder has no project for {reference.key!r}"
        yield Finding("unknown-project", reference.line, text, hint)
