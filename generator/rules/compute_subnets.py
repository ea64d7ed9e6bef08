"""Several subnets for nodes: which there are, and which role's nodes are in which."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..definition.model.network import ComputeSubnet, ExistingSubnet
from ..definition.model.slurm import Slurm
from ..problems.problem import Problem
from .base import ClusterRule, DefinitionRule, Path, Site
from .roles import roles
from .wording import choose_from, quoted

_VNET_FAQ = "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"
_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?")


def _given(site: Site) -> Iterator[tuple[Path, ComputeSubnet | ExistingSubnet]]:
    """The further compute subnets with their paths, of the new network or the existing one."""
    network = site.definition.network
    base: Path = ("network",) if network.existing is None else ("network", "existing")
    found: Sequence[ComputeSubnet | ExistingSubnet] = (
        network.compute_subnets if network.existing is None else network.existing.compute_subnets
    )
    for index, subnet in enumerate(found):
        yield (*base, "compute_subnets", index), subnet


class UnknownComputeSubnet(ClusterRule):
    id = "E0344"
    summary = "A role names a subnet that compute_subnets does not have."
    why = "CycleCloud would look for a subnet that nobody creates or knows, and no node of the role would start."
    fix = "Add it to network.compute_subnets, or to network.existing.compute_subnets for a network that exists."
    source = "https://learn.microsoft.com/azure/cyclecloud/cluster-references/node-nodearray-reference"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        del slurm
        names = [subnet.name for _, subnet in _given(site)]
        for node in roles(site):
            wanted = node.settings.subnet
            if wanted is not None and wanted not in names:
                text = f"{node.label}: compute_subnets has no subnet {quoted(wanted)}"
                yield self.problem((*node.path, "subnet"), text, choose_from(wanted, names))


class BadComputeSubnet(DefinitionRule):
    id = "E0345"
    summary = "A further compute subnet cannot be what it is said to be."
    why = (
        "Its name becomes part of names in Azure and is what roles write. Security rules and exports of file systems "
        "are made from its prefix, also where the subnet exists already."
    )
    fix = "Write each subnet once, with its prefix, and for a new network a short name of a-z, 0-9 and hyphens."
    source = _VNET_FAQ

    def check(self, site: Site) -> Iterator[Problem]:
        existing = site.definition.network.existing
        seen: set[str] = set()
        taken = {existing.subnets.compute.name.lower()} if existing is not None else set()
        for path, subnet in _given(site):
            shown = f"the compute subnet {quoted(subnet.name)}"
            if existing is None and not _NAME.fullmatch(subnet.name):
                text = f"{shown} has a name that is not 1 to 40 of a-z, 0-9 and hyphens, a letter first"
                yield self.problem((*path, "name"), text, "for example name: gpu")
            if subnet.name.lower() in taken:
                yield self.problem((*path, "name"), f"{shown} is the one of all other nodes already", "leave it out")
            if subnet.name.lower() in seen:
                yield self.problem((*path, "name"), f"{shown} is there twice")
            if subnet.prefix is None:
                yield self.problem(path, f"{shown} has no prefix", "prefix: 10.20.8.0/22, as Azure shows it")
            seen.add(subnet.name.lower())


class UnusedComputeSubnet(ClusterRule):
    id = "W0354"
    summary = "No role has nodes in a further compute subnet."
    why = "It is created, or opened to the nodes, for nothing."
    fix = "Write its name in `subnet` of a partition, the scheduler or the login nodes, or remove it."
    source = _VNET_FAQ

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        del slurm
        used = {node.settings.subnet for node in roles(site)}
        for path, subnet in _given(site):
            if subnet.name not in used:
                yield self.problem((*path, "name"), f"no nodes are in the compute subnet {quoted(subnet.name)}")
