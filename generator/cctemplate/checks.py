"""All checks of one template, with the parameter file and the projects that travel beside it."""

from __future__ import annotations

from collections.abc import Mapping, Set

from ..problems.problem import LEVELS, Place, Problem
from .check_nodes import Specs, check_arrays, check_nodes
from .check_parameters import check_parameters
from .check_slurm import check_slurm
from .check_structure import check_structure
from .errors import EvaluationError
from .evaluate import Value
from .resolve import resolve
from .syntax import Template
from .values import constant


def variables(template: Template, values: Mapping[str, Value] | None = None) -> dict[str, Value]:
    """What expressions may read: the parameter file's values, else defaults, else undefined; and `ClusterName`."""
    known: dict[str, Value] = {"ClusterName": template.clusters[0].name if template.clusters else None}
    for section in template.parameters:
        default = section.attribute("DefaultValue")
        try:
            known[section.name] = None if default is None else constant(default.value)
        except EvaluationError:
            known[section.name] = None
    for name, value in (values or {}).items():
        if name in known:
            known[name] = value
    return known


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
    """What has no place in the template is about the parameter file, and comes first."""
    place = problem.place or Place(0, 0, 0)
    return place, LEVELS.index(problem.level), problem.rule_id, problem.message
