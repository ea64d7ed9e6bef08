"""Health checks of nodes, their settings, and the nodes that they have drained."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from .. import catalog
from ..catalog.rule_facts import HealthValue
from ..definition.model.slurm import Partition, Slurm, Value
from ..plan.assignment import HEALTH, chosen_projects, is_checked, specs_of
from ..plan.computed import computed_once
from ..plan.image_tools import MissingTool, missing_tools, tool_titles
from ..plan.nodes import deciding_size
from ..plan.slurm_conf import KEPT_STATES, newer_keys
from ..problems.problem import Problem
from ..words.counts import listed
from .base import LOGIN, SCHEDULER, ClusterRule, DefinitionRule, Path, Site, first_given, given, partitions, quoted
from .releases import slurm_version
from .roles import RoleNode, known_sizes, role_sizes, roles

_PREFIX = "cycleforge.health."
_GUARD, _RESULTS, _ENABLED = f"{_PREFIX}guard", f"{_PREFIX}results", f"{_PREFIX}enabled"
_UNMEASURED, _DEEP_S = f"{_PREFIX}unmeasured", f"{_PREFIX}deep_s"
_FOLDER = "/sched/cycleforge-health"
_SWITCH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_NOT_SET = ("", "None")
_PATH = re.compile(r"(/[A-Za-z0-9._-]+)+", re.ASCII)


def _whole(value: Value, row: HealthValue) -> str | None:
    is_number = not isinstance(value, bool) and re.fullmatch("[0-9]{1,12}", str(value), re.ASCII)
    if is_number and row.min <= int(value) <= row.max:
        return None
    return f"a whole number from {row.min} to {row.max}"


def _switch(value: Value, row: HealthValue) -> str | None:
    return None if str(value).lower() in _SWITCH else "true or false"


def _choice(value: Value, row: HealthValue) -> str | None:
    return None if not isinstance(value, bool) and str(value) in row.values else _words(row)


def _path(value: Value, row: HealthValue) -> str | None:
    text = str(value)
    if text in row.values or (_PATH.fullmatch(text) and "/../" not in f"{text}/"):
        return None
    return f"an absolute path of letters, digits, '.', '_', '-'{', or ' + _words(row) if row.values else ''}"


def _words(row: HealthValue) -> str:
    """The words in quotes: without them YAML reads some as true or false."""
    return " or ".join(f'"{word}"' for word in row.values)


_WANTED: Mapping[str, Callable[[Value, HealthValue], str | None]] = {
    "whole": _whole,
    "switch": _switch,
    "choice": _choice,
    "path": _path,
}


class BadHealthSetting(ClusterRule):
    id = "E3401"
    summary = "A setting of slurm_nhc has a value that its scripts refuse."
    why = "The project stops there on every node: no node of the role is checked, and none becomes ready for jobs."
    fix = "Write a value that the message allows, or remove the key: its default is in projects/README.md."
    source = "https://learn.microsoft.com/azure/cyclecloud/cluster-references/configuration-reference"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        accepted = catalog.rule_figures().health_values.keys
        for _, node in health_roles(site):
            for key, value in node.settings.configuration.items():
                row = accepted.get(key)
                if row is None or str(value) in _NOT_SET:
                    continue
                wanted = _WANTED[row.kind](value, row)
                if wanted:
                    shown = str(value).lower() if isinstance(value, bool) else str(value)
                    text = f"{node.label}: {key} cannot be {quoted(shown)}"
                    yield self.problem((*node.path, "configuration", key), text, f"expected {wanted}")


class GuardOnOneSide(ClusterRule):
    id = "W3402"
    summary = "Scheduler and nodes differ in the guard against one shared cause, or in the folder that it needs."
    why = (
        "Nodes write there that a check fails, and hold their drain back only while the scheduler looks at the same "
        "folder. With one of the two alone a share that goes away drains every node."
    )
    fix = "Write the same value, or none, in the configuration of the scheduler and of every partition."
    source = "https://slurm.schedmd.com/scontrol.html"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        found = health_roles(site)
        scheduler = next((node for role, node in found if role == "scheduler"), None)
        if scheduler is None or not _is_on(scheduler, _ENABLED):
            return
        for role, node in found:
            if role != "execute" or not _is_on(node, _ENABLED):
                continue
            keys = [_GUARD] if _is_on(node, _GUARD) != _is_on(scheduler, _GUARD) else []
            if not keys and _is_on(node, _GUARD) and _folder(node) != _folder(scheduler):
                keys = [_RESULTS]
            for key in keys:
                written = node if key in node.settings.configuration else scheduler
                text = f"{node.label} and the scheduler differ in {key}, so the guard works for neither"
                yield self.problem((*written.path, "configuration", key), text)


def _is_on(node: RoleNode, key: str) -> bool:
    """A switch, which is on where it is not set; what is no switch is for E3401."""
    return _SWITCH.get(str(node.settings.configuration.get(key, True)).lower(), True)


def _folder(node: RoleNode) -> str:
    text = str(node.settings.configuration.get(_RESULTS, _FOLDER))
    return _FOLDER if text in _NOT_SET else text


_SOURCE = "https://github.com/Azure/azhpc-images"


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


_OLD: Path = ("slurm", "health_checks")
_NEW: Path = ("slurm", "healthagent")


class TwoNamesForHealthagent(ClusterRule):
    id = "E3701"
    summary = "health_checks is the old name of healthagent, and the two contradict each other."
    why = "Each says alone whether healthagent runs on the nodes, so one of them would be ignored."
    fix = "Write healthagent only; whether slurm_nhc checks the nodes too is the key slurm_nhc."
    source = "https://github.com/Azure/cyclecloud-healthagent"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if slurm.health_checks is not None and given(site, _NEW) and slurm.healthagent != slurm.health_checks:
            text = "health_checks is the old name of healthagent, which has another value here"
            yield self.problem(_OLD, text, "remove health_checks")


class NobodyChecks(ClusterRule):
    id = "W3702"
    summary = "Neither healthagent nor slurm_nhc checks the nodes."
    why = "A node with a broken GPU, link or file system goes on taking jobs, and each of them fails."
    fix = "Leave out `slurm_nhc: false`; it knows more faults than healthagent and names them in its reasons."
    source = "https://github.com/Azure/cyclecloud-healthagent"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        nodes, _ = _attached(site)
        if nodes and not slurm.slurm_nhc and not slurm.runs_healthagent:
            text = f"the nodes of {listed(nodes)} are not checked: healthagent and slurm_nhc are both off"
            yield self.problem(first_given(site, ("slurm", "slurm_nhc"), ("slurm",)), text, "slurm_nhc: true")


_POWER = "https://slurm.schedmd.com/power_save.html"
_HAND_BACK: Path = ("slurm", "hand_back_after_h")


def _attached(site: Site) -> tuple[list[str], bool]:
    """The partitions whose nodes have the project slurm_nhc, in words, and whether the scheduler does."""
    found = health_roles(site)
    return [node.label for role, node in found if role == "execute"], any(role == "scheduler" for role, _ in found)


@computed_once
def health_roles(site: Site) -> tuple[tuple[str, RoleNode], ...]:
    """The roles that have the project slurm_nhc, each with what it is to the project: scheduler, login or execute."""
    are_checked = any(is_checked(site.vm_size(size)) for _, each in partitions(site) for size in each.sizes)
    found = []
    for node in roles(site):
        role = {SCHEDULER: "scheduler", LOGIN: "login"}.get(node.path, "execute")
        hardware = deciding_size(known_sizes(site, node))
        specs = specs_of(role, node.settings, hardware, {}, nodes_are_checked=are_checked)
        if any(spec.project == HEALTH for spec in specs):
            found.append((role, node))
    return tuple(found)


class DrainsAreForgotten(ClusterRule):
    id = "W3201"
    summary = "This Slurm forgets the drain of a sick node."
    why = (
        "Power saving deletes the VM of an idle node and takes its drain away, whatever it was drained for. Without "
        "SuspendExcStates, which came with Slurm 23.02, nobody sees the fault, and the next job may get the same VM."
    )
    fix = "Choose a cyclecloud-slurm that installs Slurm 23.02 or newer; every one in the catalogue does."
    source = _POWER

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        nodes, _ = _attached(site)
        version = slurm_version(site, slurm)
        bound = newer_keys(version).get(KEPT_STATES.lower())
        if nodes and slurm.slurm_nhc and bound:
            text = (
                f"Slurm {version} does not know {KEPT_STATES}, which came with {bound}: power saving deletes the "
                f"drained VMs of {listed(nodes)} and forgets why they were drained"
            )
            yield self.problem(("slurm", "version"), text)


class NobodyHandsBack(ClusterRule):
    id = "W3202"
    summary = "Drained nodes wait for a person although a limit is given or expected."
    why = (
        "A node that slurm_nhc has drained keeps its VM, which costs as much as one that works. Only slurm_nhc on the "
        "scheduler hands it back after the limit; in a static pool it does not, where only people stop nodes."
    )
    fix = (
        "Attach slurm_nhc to the scheduler too, or write hand_back_after_h: 0 and look at `sinfo -R` every day; in a "
        "static pool remove the limit."
    )
    source = _POWER

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        nodes, on_scheduler = _attached(site)
        hours = slurm.hand_back_after_h
        if slurm.slurm_nhc and nodes and not on_scheduler and hours:
            text = (
                f"slurm_nhc drains nodes of {listed(nodes)}, but it is not on the scheduler, where it hands them back"
            )
            yield self.problem(first_given(site, _HAND_BACK, (*SCHEDULER, "projects")), text)
        elif not slurm.autoscale and hours and given(site, _HAND_BACK):
            text = f"hand_back_after_h is {hours} h, but autoscale is off: a drained node waits for a person"
            yield self.problem(_HAND_BACK, text, on_key=True)
