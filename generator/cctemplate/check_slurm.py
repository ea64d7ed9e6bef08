"""Slurm clusters: what azslurm needs to make partitions of node arrays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..problems.problem import Problem
from .errors import EvaluationError
from .evaluate import Value
from .resolve import ResolvedNode
from .rules import (
    ContradictingHpc,
    DefaultPartition,
    HiddenPartition,
    MissingHpc,
    MissingRole,
    MissingSpec,
    ScaleSetSize,
    SharedPartition,
)
from .syntax import Attribute
from .values import value_of
from .vocabulary import BUILTIN_LOCKER

_DEFAULT_SCALE_SET_SIZE = 40  # node-nodearray-reference, Azure.MaxScaleSetSize


def check_slurm(nodes: Iterable[ResolvedNode], variables: Mapping[str, Value]) -> Iterator[Problem]:
    """Problems of a cluster whose nodes have Slurm roles; nothing for others. `variables` are parameter values."""
    concrete = [node for node in nodes if not node.is_abstract]
    if not any("slurm.role" in node.configuration for node in concrete):
        return
    execute: list[ResolvedNode] = []
    for node in concrete:
        role = _value(node.configuration, "slurm.role", variables)
        if "slurm.role" not in node.configuration:
            yield MissingRole.problem((), f"node {node.name!r} has no slurm.role", place=node.section.place)
        elif role is not None:
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


def _role_specs(node: ResolvedNode, role: str) -> Iterator[Problem]:
    present = {spec.spec for spec in node.specs if spec.project == "slurm"}
    for spec in ("default", role):
        if spec not in present:
            text = f"node {node.name!r} with role {role!r} lacks {BUILTIN_LOCKER}/slurm:{spec}"
            yield MissingSpec.problem((), text, place=node.section.place)


def _execute(node: ResolvedNode, variables: Mapping[str, Value]) -> Iterator[Problem]:
    place, configuration = node.section.place, node.configuration
    hpc = _value(configuration, "slurm.hpc", variables)
    if "slurm.hpc" not in configuration:
        yield MissingHpc.problem((), f"node array {node.name!r} does not set slurm.hpc", place=place)
    elif hpc is True and _value(configuration, "autoscale.is_hpc", variables) is False:
        yield ContradictingHpc.problem(
            (), f"node array {node.name!r} sets slurm.hpc and unsets autoscale.is_hpc", place=place
        )
    for key in ("autoscale.enabled", "slurm.autoscale"):
        if _value(configuration, key, variables) is False:
            yield HiddenPartition.problem((), f"node array {node.name!r} sets {key} = false", place=place)
    limit = _value(node.attributes, "maxcount", variables)
    size = _value(node.attributes, "azure.maxscalesetsize", variables)
    size = _DEFAULT_SCALE_SET_SIZE if size is None else size
    if hpc is True and isinstance(limit, int) and isinstance(size, int) and size < limit:
        text = f"node array {node.name!r} may have {limit} nodes, but one scale set only {size}"
        yield ScaleSetSize.problem((), text, f"raise Azure.MaxScalesetSize to {limit}", place=place)


def _partitions(execute: list[ResolvedNode], variables: Mapping[str, Value]) -> Iterator[Problem]:
    owners: dict[str, str] = {}
    defaults = [node for node in execute if _value(node.configuration, "slurm.default_partition", variables) is True]
    if execute and len(defaults) != 1:
        place = (defaults[1] if defaults else execute[0]).section.place
        names = ", ".join(repr(node.name) for node in defaults) or "no partition"
        yield DefaultPartition.problem((), f"exactly one partition must be the default; {names} is", place=place)
    for node in execute:
        if "slurm.dynamic_feature" in node.configuration:
            continue
        partition = str(_value(node.configuration, "slurm.partition", variables) or node.name)
        if partition in owners:
            text = f"partition {partition!r} belongs to the node arrays {owners[partition]!r} and {node.name!r}"
            yield SharedPartition.problem((), text, place=node.section.place)
        owners.setdefault(partition, node.name)
