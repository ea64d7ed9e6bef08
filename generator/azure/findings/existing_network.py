"""An existing network, as Azure describes it: where it is, and whether its subnets take what goes into them.

Sources: https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/get and .../list-usage: a limit there
lacks the five addresses that Azure keeps. Network cards join only networks of their own subscription and region.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from shlex import quote

from ...plan.types import Plan, SubnetPlan
from ...problems.problem import KeyPath
from ...rules.wording import quoted
from .answers import Found, Item, below, folded, listed_below, number, said, same, texts_below

_EXISTING: KeyPath = ("network", "existing")
_ID: KeyPath = (*_EXISTING, "vnet_id")


def subnet_path(plan: Plan, subnet: SubnetPlan) -> KeyPath:
    """Where the definition names a subnet."""
    name = subnet.role.removeprefix("compute-") if subnet.role.startswith("compute-") else None
    network = plan.resolved.get("network")
    existing = network.get("existing") if isinstance(network, dict) else None
    if name is not None and isinstance(existing, dict):
        for index, each in enumerate(existing.get("compute_subnets") or ()):
            if isinstance(each, dict) and each.get("name") == name:
                return (*_EXISTING, "compute_subnets", index)
    return (*_EXISTING, "subnets", subnet.role)


def misplaced(plan: Plan, subscription: str, vnet: Item | None) -> Iterator[Found]:
    """A network that is not there, or in another subscription or region."""
    vnet_id = plan.network.vnet_id or ""
    parts = vnet_id.split("/")
    if len(parts) > 2 and not same(parts[2], subscription):
        text = f"the network is in subscription {parts[2]}, the deployment goes to {subscription}"
        yield Found(_ID, text, f"deploy with --subscription {parts[2]}, or peer a new network with it")
    if vnet is None:
        yield Found(_ID, f"there is no network {quoted(vnet_id)}", "az network vnet list --query [].id -o tsv")
    elif not same(vnet.get("location"), plan.location):
        text = f"the network is in {said(vnet.get('location'))}, the deployment in {plan.location}"
        yield Found(_ID, text, "deploy into the network's region, or peer a new network with it")


def subnets(vnet: Item) -> Mapping[str, Item]:
    """The network's subnets by folded name."""
    return {folded(each.get("name") or str(each.get("id")).rsplit("/", 1)[-1]): each for each in _subnets(vnet)}


def _subnets(vnet: Item) -> list[Item]:
    return listed_below(vnet, "properties", "subnets")


def missing_subnets(plan: Plan, vnet: Item) -> Iterator[Found]:
    """Subnets that the definition names and the network does not have."""
    known = subnets(vnet)
    for subnet in plan.network.subnets:
        if folded(subnet.name) not in known:
            names = ", ".join(said(each.get("name")) for each in _subnets(vnet)) or "none"
            text = f"the network has no subnet {quoted(subnet.name)} (for {subnet.role}); it has {names}"
            yield Found(subnet_path(plan, subnet), text)


def wrong_delegations(plan: Plan, vnet: Item) -> Iterator[Found]:
    """Subnets that are not delegated to the service that needs it, or that are delegated and so take nothing else."""
    for subnet, actual in _found(plan, vnet):
        services = [
            str(below(each, "properties", "serviceName"))
            for each in listed_below(actual, "properties", "delegations")
            if below(each, "properties", "serviceName")
        ]
        wanted = subnet.delegation
        if wanted is not None and not any(same(wanted, service) for service in services):
            text = f"the subnet {quoted(subnet.name)} must be delegated to {wanted}; {_delegated(services)}"
            yield Found(subnet_path(plan, subnet), text, _delegate_line(plan, subnet, wanted))
        elif wanted is None and services:
            text = f"the subnet {quoted(subnet.name)} ({subnet.role}) must not be delegated; {_delegated(services)}"
            yield Found(subnet_path(plan, subnet), text, "use another subnet")


def _delegated(services: list[str]) -> str:
    return f"it is delegated to {said(', '.join(services))}" if services else "it is not delegated"


def _delegate_line(plan: Plan, subnet: SubnetPlan, service: str) -> str:
    network = f"--resource-group {quote(plan.network.vnet_resource_group)} --vnet-name {quote(plan.network.vnet_name)}"
    return f"az network vnet subnet update {network} --name {quote(subnet.name)} --delegations {service}"


def _found(plan: Plan, vnet: Item) -> Iterator[tuple[SubnetPlan, Item]]:
    known = subnets(vnet)
    for subnet in plan.network.subnets:
        actual = known.get(folded(subnet.name))
        if actual is not None:
            yield subnet, actual


def too_few_addresses(plan: Plan, vnet: Item, usages: Iterable[Item]) -> Iterator[Found]:
    """Subnets with fewer free addresses than what goes into them; what is in them of this deployment is subtracted."""
    free = {
        folded(each.get("id")): number(each, "limit", what="free addresses")
        - number(each, "currentValue", what="free addresses")
        for each in usages
        if same(below(each, "name", "value"), "SubnetSpace")
    }
    needs: dict[str, tuple[SubnetPlan, Item, int]] = {}
    for subnet, actual in _found(plan, vnet):
        if subnet.addresses is not None:
            before = needs.get(folded(subnet.name))
            needs[folded(subnet.name)] = (
                before[0] if before else subnet,
                actual,
                subnet.addresses + (before[2] if before else 0),
            )
    for subnet, actual, need in needs.values():
        has = free.get(folded(actual.get("id")))
        more = need - own_addresses(plan, actual)
        if has is not None and has < more:
            text = f"the subnet {quoted(subnet.name)} has {has} free addresses; the deployment may need {more} more"
            yield Found(subnet_path(plan, subnet), text, "use a larger subnet, or lower max_nodes")


def uncounted_subnets(plan: Plan, vnet: Item, usages: Iterable[Item]) -> list[str]:
    """Subnets of which the answer does not say how many addresses are free."""
    known = {folded(each.get("id")) for each in usages}
    return [
        subnet.name
        for subnet, actual in _found(plan, vnet)
        if subnet.addresses is not None and folded(actual.get("id")) not in known
    ]


def own_addresses(plan: Plan, subnet: Item) -> int:
    """Addresses of a subnet that the deployment's own resource group holds already."""
    own = f"/resourcegroups/{folded(plan.resource_group)}/"
    return sum(own in folded(each.get("id")) for each in listed_below(subnet, "properties", "ipConfigurations"))


def without_way_out(plan: Plan, vnet: Item) -> Iterator[Found]:
    """Private subnets without any way out that the network itself shows: nothing in them reaches Azure.

    Source: https://learn.microsoft.com/azure/virtual-network/ip-services/default-outbound-access
    """
    if plan.network.proxy is not None or len(listed_below(vnet, "properties", "virtualNetworkPeerings")):
        return
    for subnet, actual in _found(plan, vnet):
        is_private = below(actual, "properties", "defaultOutboundAccess") is False
        ways = (below(actual, "properties", "natGateway"), below(actual, "properties", "routeTable"))
        if subnet.role.split("-")[0] in ("server", "compute") and is_private and not any(ways):
            text = (
                f"the subnet {quoted(subnet.name)} has no way out: it is private, without NAT gateway and route table"
            )
            yield Found(subnet_path(plan, subnet), text, "give it a NAT gateway or a route to a firewall")


def prefixes(subnet: Item) -> list[str]:
    """The address prefixes of a subnet: one, or several."""
    one = below(subnet, "properties", "addressPrefix")
    return [str(one)] if one else texts_below(subnet, "properties", "addressPrefixes")
