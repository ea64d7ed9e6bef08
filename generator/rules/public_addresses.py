"""Public addresses of nodes: where they lead, which releases can make them, and which nodes can have them."""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..definition.model.slurm import Slurm
from ..plan.access import kind_of
from ..plan.cluster import server_release
from ..plan.network import route_plan
from ..plan.nodes import is_hpc, sizes_of
from ..problems.problem import Problem
from .base import ClusterRule, Path, Site, partitions
from .roles import partition_label

_KEY: Path = ("slurm", "public_addresses")


class PublicNodes(ClusterRule):
    id = "E0335"
    summary = "Nodes are to have public addresses where nothing leads to them."
    why = (
        "Behind a Bastion, a hub or a firewall nobody reaches the address, and its answers leave another way. In a "
        "network that exists, nothing here decides who may reach it: it would be open, or shut, by chance."
    )
    fix = "Remove slurm.public_addresses, or use access public with a new network and allowed_sources."
    source = "https://learn.microsoft.com/azure/virtual-network/ip-services/default-outbound-access"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        definition = site.definition
        if slurm.public_addresses == "none":
            return
        reasons = (
            (not kind_of(definition).is_public, f"access is {definition.network.access}"),
            (definition.network.existing is not None, "the network exists already"),
            (definition.server.existing is not None, "the server exists already, and allowed_sources are its own"),
            (route_plan(definition) is not None, "what leaves the network goes through a firewall"),
        )
        found = next((reason for is_so, reason in reasons if is_so), None)
        if found is not None:
            text = f"nodes cannot be reached by public addresses, because {found}"
            yield self.problem(_KEY, text, "public_addresses: none")


class PublicAddressesOfRelease(ClusterRule):
    id = "E0375"
    summary = "The CycleCloud release cannot give nodes public addresses."
    why = (
        "It asks Azure for addresses of the Basic SKU, which Azure retired on 2025-09-30: no node with one is created. "
        "CycleCloud 8.9.2 asks for Standard ones."
    )
    fix = "Remove slurm.public_addresses, or use CycleCloud 8.9.2 or newer."
    source = "https://learn.microsoft.com/azure/cyclecloud/release-notes/8-9-2"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        release, first = server_release(site.definition), catalog.rule_figures().standard_public_addresses.release
        if slurm.public_addresses != "none" and catalog.is_newer(first, release):
            text = f"CycleCloud {release} cannot create public addresses of nodes, {first} is the first that can"
            yield self.problem(_KEY, text, f"public_addresses: none, or a server of release {first} or newer")


class PublicNodesInScaleSet(ClusterRule):
    id = "E0385"
    summary = "Nodes that share a scale set are to have public addresses."
    why = (
        "Only single VMs get addresses from CycleCloud. The nodes of a partition for tightly coupled jobs are in one "
        "scale set, because InfiniBand connects no others."
    )
    fix = "Write public_addresses: scheduler, or set hpc: false for partitions whose jobs do not need InfiniBand."
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/infiniband"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        coupled = [
            partition_label(partition)
            for _, partition in partitions(site)
            if is_hpc(partition, sizes_of(site.definition, partition))
        ]
        if slurm.public_addresses == "all" and coupled:
            text = f"{coupled[0]} is for tightly coupled jobs, so its nodes cannot have public addresses"
            yield self.problem(_KEY, text, "public_addresses: scheduler")
