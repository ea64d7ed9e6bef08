"""An existing network: where it is, whether its subnets take what goes into them, and its Bastion.

Sources: https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/get and .../list-usage: a limit there
lacks the five addresses that Azure keeps. For the Bastion, its SKUs and native client support:
https://learn.microsoft.com/azure/bastion/configuration-settings
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from shlex import quote
from typing import Any

from ...plan.deployment import Plan
from ...plan.network import SubnetPlan
from ...plan.resources import resource_id
from ...problems.problem import KeyPath
from ...rules.base import quoted
from ..answers import Item, below, folded, listed_below, number, said, same
from ..check import Check, Finding
from ..reader import Reader
from ..request import Call, Request
from ..requests.network import BASTIONS, VNET, VNET_USAGES

_EXISTING: KeyPath = ("network", "existing")


def vnet_call(request: Request, vnet_id: str) -> Call:
    parts = resource_id(vnet_id)
    return request(owner=parts.subscription, group=parts.resource_group, vnet=parts.name)


def existing_subnet_id(plan: Plan, role: str) -> str | None:
    """Id of an existing network's subnet for something; None in a new network."""
    subnet = plan.network.subnet(role)
    return f"{plan.network.vnet_id}/subnets/{subnet.name}" if subnet is not None and plan.network.vnet_id else None


def subnets(vnet: Item) -> Mapping[str, Item]:
    """The network's subnets by folded name."""
    return {folded(each.get("name") or str(each.get("id")).rsplit("/", 1)[-1]): each for each in _subnets(vnet)}


def _subnets(vnet: Item) -> list[Item]:
    return listed_below(vnet, "properties", "subnets")


def _found(plan: Plan, vnet: Item) -> Iterator[tuple[SubnetPlan, Item]]:
    known = subnets(vnet)
    for subnet in plan.network.subnets:
        actual = known.get(folded(subnet.name))
        if actual is not None:
            yield subnet, actual


def _path(plan: Plan, subnet: SubnetPlan) -> KeyPath:
    name = subnet.role.removeprefix("compute-") if subnet.role.startswith("compute-") else None
    network = plan.resolved.get("network")
    existing = network.get("existing") if isinstance(network, dict) else None
    if name is not None and isinstance(existing, dict):
        for index, each in enumerate(existing.get("compute_subnets") or ()):
            if isinstance(each, dict) and each.get("name") == name:
                return (*_EXISTING, "compute_subnets", index)
    return (*_EXISTING, "subnets", subnet.role)


class _OfExisting(Check):
    path = (*_EXISTING, "vnet_id")
    question = "whether the existing network can be used"

    def needed(self, plan: Plan) -> bool:
        return plan.network.vnet_id is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """What is wrong; that a network is not there is for one check to say."""
        vnet = reader.find(vnet_call(VNET, plan.network.vnet_id or ""))
        if vnet is not None:
            yield from self.judged(plan, vnet)

    def judged(self, plan: Plan, vnet: Item) -> Iterator[Finding]:
        raise NotImplementedError


class NetworkMisplaced(_OfExisting):
    id = "E4601"
    summary = "The existing network is not there, or in another subscription or region than the deployment."
    why = "Network cards and private endpoints join only networks of their own subscription and region."
    fix = "Deploy into the network's subscription and region, or peer a new network with it: access hub."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-network-interface"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        vnet = reader.find(vnet_call(VNET, plan.network.vnet_id or ""))
        yield from self.misplaced(plan, reader.subscription, vnet)

    def misplaced(self, plan: Plan, subscription: str, vnet: Item | None) -> Iterator[Finding]:
        vnet_id = plan.network.vnet_id or ""
        parts = vnet_id.split("/")
        if len(parts) > 2 and not same(parts[2], subscription):
            text = f"the network is in subscription {parts[2]}, the deployment goes to {subscription}"
            hint = f"deploy with --subscription {parts[2]}, or peer a new network with it"
            yield self.finding(self.path, text, hint)
        if vnet is None:
            text = f"there is no network {quoted(vnet_id)}"
            yield self.finding(self.path, text, "az network vnet list --query [].id -o tsv")
        elif not same(vnet.get("location"), plan.location):
            text = f"the network is in {said(vnet.get('location'))}, the deployment in {plan.location}"
            yield self.finding(self.path, text, "deploy into the network's region, or peer a new network with it")


class SubnetMissing(_OfExisting):
    id = "E4602"
    summary = "The existing network has no subnet of a name that the definition gives."
    why = "The deployment creates no subnet in someone else's network."
    fix = "Correct the name: the message says which subnets there are."
    source = "https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/get"
    question = "whether the subnets are there"

    def judged(self, plan: Plan, vnet: Item) -> Iterator[Finding]:
        known = subnets(vnet)
        for subnet in plan.network.subnets:
            if folded(subnet.name) not in known:
                names = ", ".join(said(each.get("name")) for each in _subnets(vnet)) or "none"
                text = f"the network has no subnet {quoted(subnet.name)} (for {subnet.role}); it has {names}"
                yield self.finding(_path(plan, subnet), text)


class SubnetDelegated(_OfExisting):
    id = "E4603"
    summary = "A subnet is not delegated to the service that needs it, or is delegated and takes nothing else."
    why = "NetApp Files and MySQL take a subnet that is delegated to them, and nothing else can be in such a subnet."
    fix = "Have the subnet delegated as the message says, or use another one."
    source = "https://learn.microsoft.com/azure/virtual-network/subnet-delegation-overview"
    question = "to what the subnets are delegated"

    def judged(self, plan: Plan, vnet: Item) -> Iterator[Finding]:
        for subnet, actual in _found(plan, vnet):
            services = [
                str(below(each, "properties", "serviceName"))
                for each in listed_below(actual, "properties", "delegations")
                if below(each, "properties", "serviceName")
            ]
            wanted, has = subnet.delegation, said(", ".join(services))
            has = f"it is delegated to {has}" if services else "it is not delegated"
            if wanted is not None and not any(same(wanted, service) for service in services):
                text = f"the subnet {quoted(subnet.name)} must be delegated to {wanted}; {has}"
                yield self.finding(_path(plan, subnet), text, _delegate_line(plan, subnet, wanted))
            elif wanted is None and services:
                text = f"the subnet {quoted(subnet.name)} ({subnet.role}) must not be delegated; {has}"
                yield self.finding(_path(plan, subnet), text, "use another subnet")


def _delegate_line(plan: Plan, subnet: SubnetPlan, service: str) -> str:
    network = f"--resource-group {quote(plan.network.vnet_resource_group)} --vnet-name {quote(plan.network.vnet_name)}"
    return f"az network vnet subnet update {network} --name {quote(subnet.name)} --delegations {service}"


class TooFewAddresses(_OfExisting):
    id = "E4604"
    summary = "A subnet of the existing network has too few free addresses."
    why = "A node or an endpoint that gets no address is not created."
    fix = "Use a larger subnet, or lower max_nodes."
    source = "https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/list-usage"
    question = "how many addresses are free"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        vnet_id = plan.network.vnet_id or ""
        questions: list[Callable[[], Any]] = [
            partial(reader.find, vnet_call(VNET, vnet_id)),
            partial(reader.find_pages, vnet_call(VNET_USAGES, vnet_id)),
        ]
        vnet, spaces = reader.together(questions)
        if vnet is not None:
            yield from self.counted(plan, vnet, spaces)

    def counted(self, plan: Plan, vnet: Item, usages: Iterable[Item]) -> Iterator[Finding]:
        """Subnets with too little room for what is still to come, and those of which nothing is known."""
        usages = list(usages)
        free = {
            folded(each.get("id")): number(each, "limit", what="free addresses")
            - number(each, "currentValue", what="free addresses")
            for each in usages
            if same(below(each, "name", "value"), "SubnetSpace")
        }
        needs: dict[str, tuple[SubnetPlan, Item, int]] = {}
        for subnet, actual in _found(plan, vnet):
            if subnet.addresses is not None:
                first, _, before = needs.get(folded(subnet.name), (subnet, actual, 0))
                needs[folded(subnet.name)] = (first, actual, before + subnet.addresses)
        for subnet, actual, need in needs.values():
            has, more = free.get(folded(actual.get("id"))), need - _own_addresses(plan, actual)
            if has is not None and has < more:
                text = f"the subnet {quoted(subnet.name)} has {has} free addresses; the deployment may need {more} more"
                yield self.finding(_path(plan, subnet), text, "use a larger subnet, or lower max_nodes")
        known = {folded(each.get("id")) for each in usages}
        for subnet, actual in _found(plan, vnet):
            if subnet.addresses is not None and folded(actual.get("id")) not in known:
                yield self.not_known(f"Azure does not say it of the subnet {subnet.name}")


def _own_addresses(plan: Plan, subnet: Item) -> int:
    """Addresses of a subnet that the deployment's own resource group holds already."""
    own = f"/resourcegroups/{folded(plan.resource_group)}/"
    return sum(own in folded(each.get("id")) for each in listed_below(subnet, "properties", "ipConfigurations"))


class NoWayOut(_OfExisting):
    id = "W4605"
    summary = "A private subnet of the existing network has neither a NAT gateway nor a route table."
    why = "Server and nodes call Azure, and fetch packages; without a way out their first boot fails."
    fix = "Give the subnet a NAT gateway, or a route to a firewall."
    source = "https://learn.microsoft.com/azure/virtual-network/ip-services/default-outbound-access"
    question = "whether the subnets have a way out"

    def judged(self, plan: Plan, vnet: Item) -> Iterator[Finding]:
        """Nothing where a proxy or a peering may be the way."""
        if plan.network.proxy is not None or listed_below(vnet, "properties", "virtualNetworkPeerings"):
            return
        for subnet, actual in _found(plan, vnet):
            is_private = below(actual, "properties", "defaultOutboundAccess") is False
            ways = (below(actual, "properties", "natGateway"), below(actual, "properties", "routeTable"))
            if subnet.role.split("-")[0] in ("server", "compute") and is_private and not any(ways):
                name = quoted(subnet.name)
                text = f"the subnet {name} has no way out: it is private, without NAT gateway and route table"
                yield self.finding(_path(plan, subnet), text, "give it a NAT gateway or a route to a firewall")


_TUNNELLING = ("Standard", "Premium")
_OTHER_WAY = "for a VPN that leads into the network write access: private"


class NoBastion(Check):
    id = "W4614"
    summary = "The existing network has no Bastion that opens tunnels, and access is bastion."
    why = (
        "Nothing is created in an existing network, so its own Bastion is the way in; `connect`, ssh and the portal "
        "need tunnels, which the SKUs Standard and Premium have, with native client support. Everything deploys "
        "without them, but no user reaches it."
    )
    fix = "Let the network's owner create or change the Bastion, or write `access: private` for a VPN in place."
    source = "https://learn.microsoft.com/azure/bastion/native-client"
    question = "whether the existing network has a Bastion that opens tunnels"
    path = ("network", "access")

    def needed(self, plan: Plan) -> bool:
        """Return True when someone else's Bastion is the way in."""
        return plan.network.vnet_id is not None and plan.access.tunnel is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Nothing if one Bastion of the network opens tunnels; all of the subscription are looked at."""
        vnet = resource_id(plan.network.vnet_id or "")
        hosts = reader.pages(BASTIONS(owner=vnet.subscription))
        ours = [host for host in hosts if _is_of(host, plan.network.vnet_id or "")]
        if any(_opens_tunnels(host) for host in ours):
            return
        if not ours:
            text = (
                f"access is bastion, but the existing network {vnet.name} has no Azure Bastion, and this "
                "deployment creates none there: so no path leads to the server"
            )
            hint = f"let its owner create one of the SKU Standard with native client support; {_OTHER_WAY}"
            yield self.finding(self.path, text, hint)
        for host in ours:
            yield self.finding(self.path, *_lacking(host))


def _is_of(host: Item, vnet_id: str) -> bool:
    """By its subnet; one of the SKU Developer has none and names the network."""
    subnets = (
        below(each, "properties", "subnet", "id") for each in listed_below(host, "properties", "ipConfigurations")
    )
    networks = [str(each or "").rpartition("/subnets/")[0] for each in subnets]
    return any(same(each, vnet_id) for each in [*networks, below(host, "properties", "virtualNetwork", "id")])


def _opens_tunnels(host: Item) -> bool:
    sku = below(host, "sku", "name")
    return any(same(sku, each) for each in _TUNNELLING) and below(host, "properties", "enableTunneling") is True


def _lacking(host: Item) -> tuple[str, str]:
    name, sku = str(host["name"]), str(below(host, "sku", "name") or "of an unknown kind")
    where = f"--name {quote(name)} --resource-group {quote(resource_id(str(host['id'])).resource_group)}"
    if any(same(sku, each) for each in _TUNNELLING):
        text = f"the Bastion {name} of the existing network opens no tunnels: its native client support is off"
        return text, f"az network bastion update {where} --enable-tunneling true; {_OTHER_WAY}"
    text = f"the Bastion {name} of the existing network has the SKU {sku}, which opens no tunnels"
    return text, f"az network bastion update {where} --sku Standard --enable-tunneling true; {_OTHER_WAY}"
