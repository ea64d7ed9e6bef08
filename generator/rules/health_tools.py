"""Health checks of nodes: what the tools of an image can measure."""

from __future__ import annotations

from collections.abc import Iterator

from ..definition.model.slurm import Partition
from ..plan.assignment import HEALTH, chosen_projects
from ..plan.image_tools import MissingTool, missing_tools, tool_titles
from ..problems.problem import Problem
from .base import DefinitionRule, Site
from .roles import RoleNode, role_sizes
from .wording import quoted

_SOURCE = "https://github.com/Azure/azhpc-images"
_UNMEASURED, _ENABLED, _DEEP_S = "cycleforge.health.unmeasured", "cycleforge.health.enabled", "cycleforge.health.deep_s"


def _unable(site: Site) -> Iterator[tuple[RoleNode, Partition, tuple[MissingTool, ...]]]:
    """Partitions whose nodes run deep checks that their image has no tool for, once per VM size."""
    for node in role_sizes(site):
        partition = node.partition
        if partition is None or partition.mig_profile is not None or not _runs_deep(site, node, partition):
            continue
        missing = missing_tools(site.vm_size(node.vm_size), node.image)
        if missing:
            yield node, partition, missing


def _runs_deep(site: Site, node: RoleNode, partition: Partition) -> bool:
    chosen = partition.projects
    if chosen is None:
        chosen = list(chosen_projects("execute", site.vm_size(node.vm_size), nodes_are_checked=True))
    named = {text.partition(":")[0] for text in (*chosen, *partition.extra_projects)}
    given = {key: str(value).lower() for key, value in partition.configuration.items()}
    return HEALTH in named and given.get(_ENABLED, "true") != "false" and given.get(_DEEP_S, "600") != "0"


def _drains(partition: Partition) -> bool:
    return str(partition.configuration.get(_UNMEASURED, "report")) == "drain"


def _text(node: RoleNode, missing: tuple[MissingTool, ...]) -> str:
    checks = ", ".join(each.check for each in missing)
    return f"{node.label}: image {quoted(node.image)} has no tool for these deep checks of {node.vm_size}: {checks}"


def _hint(missing: tuple[MissingTool, ...]) -> str:
    return "they need " + tool_titles(tuple(sorted({name for each in missing for name in each.tools})))


class DrainedForMissingTools(DefinitionRule):
    id = "E3501"
    summary = "Nodes are drained for what is not measured, and their image cannot measure it."
    why = (
        "The deep checks of every node would end as not measured, so every node would be drained and no job would run."
    )
    fix = (
        "Use an HPC image, which brings the tools; or let what is not measured be reported "
        f"({_UNMEASURED}: report); or run no deep checks ({_DEEP_S}: 0)."
    )
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        for node, partition, missing in _unable(site):
            if _drains(partition):
                yield self.problem((*node.path, "configuration", _UNMEASURED), _text(node, missing), _hint(missing))


class DeepChecksWithoutTools(DefinitionRule):
    id = "W3502"
    summary = "The image of a partition has no tool for some deep checks of its nodes."
    why = (
        "These checks end as `not measured` on every node: a slow link or GPU would be found by the first job instead. "
        "`cycleforge health report` counts such nodes as not measured."
    )
    fix = "Use an HPC image, which brings the tools; or silence this rule."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        for node, partition, missing in _unable(site):
            if not _drains(partition):
                yield self.problem(node.image_path, _text(node, missing), _hint(missing))
