"""Definitions of one run that cannot be deployed beside each other. Both are told, each at its own line."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_network

from ..plan.deployment import Plan
from ..problems.problem import Problem
from .base import Path, RunRule, Together, quoted

_MANAGE = "https://learn.microsoft.com/azure/azure-resource-manager/management/manage-resource-groups-portal"


def _value(plan: Plan, section: str, key: str) -> object:
    found = plan.resolved.get(section)
    return found.get(key) if isinstance(found, dict) else None


def _prefix(plan: Plan) -> str:
    return str(_value(plan, "azure", "prefix") or plan.name)


def _same_group(one: Plan, other: Plan) -> bool:
    """Whether both go into one resource group; where only one names its subscription, that is not known."""
    same = one.subscription_id == other.subscription_id and one.cloud == other.cloud
    return same and one.resource_group.lower() == other.resource_group.lower()


class NameTwice(RunRule):
    id = "E0234"
    summary = "Two definitions have the same name."
    why = "Both would be built into one folder, and what belongs to a deployment is found and deleted by its name."
    fix = "Rename one of them."

    def check(self, this: Together, other: Together) -> Iterator[Problem]:
        if this.plan.name == other.plan.name:
            text = f"{other.filename} also defines {quoted(this.plan.name)}"
            yield self.problem(("name",), text, "rename one of them; neither is built")


class SameGroup(RunRule):
    id = "E0225"
    summary = "Two definitions create the same resource group, or resources of the same names in one group."
    why = "The second deployment would take over what the first one has made, and deleting one would delete the other."
    fix = (
        "Give each its own azure.prefix or azure.resource_group; to share a group on purpose, create it in one "
        "definition and name it as {existing: NAME} in the other."
    )
    source = _MANAGE

    def check(self, this: Together, other: Together) -> Iterator[Problem]:
        mine, theirs = this.plan, other.plan
        if mine.name == theirs.name or not _same_group(mine, theirs):
            return
        prefix: Path = ("azure", "prefix") if _value(mine, "azure", "prefix") else ("name",)
        if mine.creates_resource_group and theirs.creates_resource_group:
            path: Path = ("azure", "resource_group") if _value(mine, "azure", "resource_group") else prefix
            text = f"the resource group {quoted(mine.resource_group)} is also created by {other.filename}"
            yield self.problem(path, text)
        elif _prefix(mine).lower() == _prefix(theirs).lower():
            text = f"names begin with {quoted(_prefix(mine))}, like those of {other.filename} in the same group"
            yield self.problem(prefix, text)


class SpacesOverlapBehindHub(RunRule):
    id = "E0325"
    summary = "The networks of two definitions overlap, and one hub connects them."
    why = "Azure refuses to peer a network with one whose addresses overlap those of a network that is peered already."
    fix = "Choose address spaces that do not overlap."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview"

    def check(self, this: Together, other: Together) -> Iterator[Problem]:
        mine, theirs = this.plan.network.address_space, other.plan.network.address_space
        if mine is None or theirs is None or not ip_network(mine).overlaps(ip_network(theirs)):
            return
        same_hub = _hub(this.plan) is not None and _hub(this.plan) == _hub(other.plan)
        if same_hub or _connected(this.plan, other.plan) or _connected(other.plan, this.plan):
            text = f"the address space {mine} overlaps {theirs} of {other.filename}, and a hub connects both networks"
            yield self.problem(("network", "address_space"), text)


def _hub(plan: Plan) -> str | None:
    """Resource id of the hub that a new network is peered with; None for one that only the deployment asks for."""
    hub = plan.network.hub
    return hub.vnet_id.lower() if hub is not None and isinstance(hub.vnet_id, str) else None


def _connected(hub: Plan, spoke: Plan) -> bool:
    """Whether the new network of one deployment is the hub of the other's."""
    return hub.network.is_new and (_hub(spoke) or "").endswith(_network_id(hub))


class ZoneTwice(RunRule):
    id = "E0371"
    summary = "Two definitions create a private DNS zone of the same name for one network."
    why = "Azure links a network to one zone of a name, so the second deployment is refused at its link."
    fix = "Let one of them create the zone, and name it by its resource id in network.blob_dns_zone of the other."
    source = "https://learn.microsoft.com/azure/dns/private-dns-virtual-network-links"

    def check(self, this: Together, other: Together) -> Iterator[Problem]:
        mine, theirs = this.plan, other.plan
        both_create = mine.network.blob_dns_zone == theirs.network.blob_dns_zone == "new"
        if mine.name != theirs.name and both_create and _same_network(mine, theirs):
            network = mine.network.vnet_name
            text = f"{other.filename} also creates the zone of a locker's endpoint for the network {network}"
            hint = "blob_dns_zone: the resource id of the zone that the first deployment creates"
            yield self.problem(("network", "blob_dns_zone"), text, hint)


def _same_network(one: Plan, other: Plan) -> bool:
    """Whether both are in one network, which one of them may create; two new networks are two."""
    if one.network.is_new and other.network.is_new:
        return False
    first, second = (_network_id(plan) for plan in (one, other))
    return first == second or first.endswith(second) or second.endswith(first)


def _network_id(plan: Plan) -> str:
    """The network's resource id, without a subscription that is not written."""
    if plan.network.vnet_id is not None:
        return plan.network.vnet_id.lower().rstrip("/")
    start = f"/subscriptions/{plan.subscription_id}" if plan.subscription_id else ""
    group = f"/resourcegroups/{plan.resource_group}/providers/microsoft.network"
    return f"{start}{group}/virtualnetworks/{plan.network.vnet_name}".lower()


class ClusterTwice(RunRule):
    id = "E1914"
    summary = "Two definitions import clusters of the same name into one server."
    why = "A server has one cluster of a name: the second import replaces the first cluster."
    fix = "Set another slurm.cluster_name in one of them."
    source = "https://learn.microsoft.com/azure/cyclecloud/cli#cyclecloud-import_cluster"

    def check(self, this: Together, other: Together) -> Iterator[Problem]:
        mine, theirs = this.plan.slurm, other.plan.slurm
        if mine is None or theirs is None or mine.cluster_name.lower() != theirs.cluster_name.lower():
            return
        if _same_server(this.plan, other.plan) and this.plan.name != other.plan.name:
            path: Path = ("slurm", "cluster_name") if _value(this.plan, "slurm", "cluster_name") else ("name",)
            yield self.problem(
                path, f"{other.filename} imports a cluster {quoted(mine.cluster_name)} into the same server"
            )


def _same_server(one: Plan, other: Plan) -> bool:
    """Whether both import into one VM; a subscription that is not written may be the other's."""
    (one_subscription, *one_vm), (other_subscription, *other_vm) = _server(one), _server(other)
    may_be_same = one_subscription is None or other_subscription is None or one_subscription == other_subscription
    return one_vm == other_vm and may_be_same


def _server(plan: Plan) -> tuple[str | None, str, str]:
    """(subscription, resource group, name) of the VM of the server, new or existing; None: not written."""
    if plan.existing_server is not None:
        parts = plan.existing_server.vm_id.lower().rstrip("/").split("/")
        return parts[2], parts[4], parts[-1]
    subscription = plan.subscription_id.lower() if plan.subscription_id else None
    return subscription, plan.resource_group.lower(), plan.server.vm_name.lower() if plan.server else ""
