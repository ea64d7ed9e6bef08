"""Nodes that the health checks have drained: they keep their VM until it is handed back."""

from __future__ import annotations

from collections.abc import Iterator

from ..definition.model.slurm import Slurm
from ..plan.assignment import HEALTH, is_checked, specs_of
from ..plan.nodes import deciding_size
from ..plan.slurm_conf import KEPT_STATES, newer_keys
from ..problems.problem import Problem
from ..records import computed_once
from ..words.counts import listed
from .base import ClusterRule, Path, Site
from .releases import slurm_version
from .roles import RoleNode, roles
from .wording import LOGIN, SCHEDULER, first_given, given

_POWER = "https://slurm.schedmd.com/power_save.html"
_HAND_BACK: Path = ("slurm", "hand_back_after_h")


def checked(site: Site, slurm: Slurm) -> tuple[list[str], bool]:
    """The partitions whose nodes run slurm_nhc, in words, and whether the scheduler does."""
    return attached(site, slurm) if slurm.slurm_nhc else ([], False)


def attached(site: Site, slurm: Slurm) -> tuple[list[str], bool]:
    """The partitions whose nodes have the project slurm_nhc, in words, and whether the scheduler does."""
    found = health_roles(site)
    return [node.label for role, node in found if role == "execute"], any(role == "scheduler" for role, _ in found)


@computed_once
def health_roles(site: Site) -> tuple[tuple[str, RoleNode], ...]:
    """The roles that have the project slurm_nhc, each with what it is to the project: scheduler, login or execute."""
    slurm = site.definition.slurm
    return () if slurm is None else tuple(_health_roles(site, slurm))


def _health_roles(site: Site, slurm: Slurm) -> Iterator[tuple[str, RoleNode]]:
    sizes = [site.vm_size(size) for partition in slurm.partitions for size in partition.sizes]
    are_checked = any(is_checked(size) for size in sizes)
    for node in roles(site):
        role = {SCHEDULER: "scheduler", LOGIN: "login"}.get(node.path, "execute")
        own = node.partition.sizes if node.partition else (node.vm_size,)
        hardware = deciding_size(tuple(site.vm_size(size) for size in own))
        specs = specs_of(role, node.settings, hardware, {}, nodes_are_checked=are_checked)
        if any(spec.project == HEALTH for spec in specs):
            yield role, node


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
        nodes, _ = checked(site, slurm)
        version = slurm_version(site, slurm)
        bound = newer_keys(version).get(KEPT_STATES.lower())
        if nodes and bound:
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
        nodes, on_scheduler = checked(site, slurm)
        hours = slurm.hand_back_after_h
        if nodes and not on_scheduler and hours:
            text = (
                f"slurm_nhc drains nodes of {listed(nodes)}, but it is not on the scheduler, where it hands them back"
            )
            yield self.problem(first_given(site, _HAND_BACK, (*SCHEDULER, "projects")), text)
        elif not slurm.autoscale and hours and given(site, _HAND_BACK):
            text = f"hand_back_after_h is {hours} h, but autoscale is off: a drained node waits for a person"
            yield self.problem(_HAND_BACK, text, on_key=True)
