"""The hub network: whether it has the gateway that is to be used, and addresses that do not overlap ours.

Source: https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview: address spaces of peered
networks must not overlap, and a remote gateway must exist before a peering may use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from shlex import quote

from ...plan.subnets import parse_network
from ...plan.types import Plan
from ...problems.problem import KeyPath
from ...rules.wording import quoted
from .answers import Found, Item, below, folded, listed_below, said, same, texts_below
from .existing_network import subnets

_HUB: KeyPath = ("network", "hub")
_SPACE: KeyPath = ("network", "address_space")


def hub_id(plan: Plan) -> str | None:
    """Resource id of the hub; None where there is none or the deployment asks for it."""
    hub = plan.network.hub
    return hub.vnet_id if hub is not None and isinstance(hub.vnet_id, str) else None


def no_gateway(plan: Plan, vnet: Item | None) -> Iterator[Found]:
    """A hub that is not there, or whose gateway is to be used and does not exist."""
    if vnet is None:
        yield Found((*_HUB, "vnet_id"), f"there is no network {quoted(hub_id(plan) or '')}")
        return
    hub = plan.network.hub
    if hub is None or not hub.use_remote_gateway:
        return
    gateways = subnets(vnet).get("gatewaysubnet")
    if gateways is None or not listed_below(gateways, "properties", "ipConfigurations"):
        text = f"the hub {quoted(said(vnet.get('name')))} has no VPN or ExpressRoute gateway that the peering could use"
        yield Found((*_HUB, "use_remote_gateway"), text, "use_remote_gateway: false, until the hub has one")


def overlaps(plan: Plan, vnet: Item | None) -> Iterator[Found]:
    """Addresses of the hub that are ours as well."""
    if vnet is None:
        return
    name = quoted(said(vnet.get("name")))
    for own, other in _overlapping(plan, texts_below(vnet, "properties", "addressSpace", "addressPrefixes")):
        text = f"the network {own} overlaps {other} of the hub {name}, so they cannot be peered"
        yield Found(_SPACE, text, "choose another address_space")


def overlapping_spokes(plan: Plan, vnet: Item | None) -> Iterator[Found]:
    """Other networks behind the hub with addresses of ours: the peering is made, and traffic goes astray."""
    for peering, remote in _peerings(vnet):
        if _is_ours(plan, remote):
            continue
        name = quoted(said(remote.rsplit("/", 1)[-1]))
        for own, other in _overlapping(
            plan, texts_below(peering, "properties", "remoteAddressSpace", "addressPrefixes")
        ):
            text = f"the network {own} overlaps {other} of {name}, which the hub is peered with"
            yield Found(_SPACE, text, "choose another address_space")


def disconnected(plan: Plan, vnet: Item | None) -> Iterator[Found]:
    """A peering of ours from an earlier run that is disconnected: Azure does not connect it again, it must go first.

    Source: https://learn.microsoft.com/azure/virtual-network/virtual-network-troubleshoot-peering-issues
    """
    for peering, remote in _peerings(vnet):
        if _is_ours(plan, remote) and same(below(peering, "properties", "peeringState"), "Disconnected"):
            name, peering_id = quoted(said(peering.get("name"))), quote(str(peering.get("id")))
            text = f"the hub's peering {name} with an earlier network of this deployment is disconnected"
            yield Found((*_HUB, "vnet_id"), text, f"az network vnet peering delete --ids {peering_id}")


def _peerings(vnet: Item | None) -> Iterator[tuple[Item, str]]:
    """Each peering of the hub with the id of the other network."""
    for peering in listed_below(vnet, "properties", "virtualNetworkPeerings") if vnet else ():
        yield peering, str(below(peering, "properties", "remoteVirtualNetwork", "id") or "")


def _overlapping(plan: Plan, prefixes: Iterable[str]) -> Iterator[tuple[IPv4Network, IPv4Network]]:
    """Our address space with each prefix that overlaps it."""
    own = _own(plan)
    for other in map(parse_network, prefixes):
        if own is not None and other is not None and own.overlaps(other):
            yield own, other


def _own(plan: Plan) -> IPv4Network | None:
    return parse_network(plan.network.address_space) if plan.network.address_space else None


def _is_ours(plan: Plan, vnet_id: str) -> bool:
    """Whether an id is that of the network that the deployment creates, by its group and name."""
    end = f"/resourcegroups/{plan.resource_group}/providers/microsoft.network/virtualnetworks/{plan.network.vnet_name}"
    return folded(vnet_id).endswith(folded(end))
