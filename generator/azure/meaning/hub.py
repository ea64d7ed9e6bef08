"""The hub network: whether it has the gateway that is to be used, and addresses that do not overlap ours.

Source: https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview: address spaces of peered
networks must not overlap, and a remote gateway must exist before a peering may use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from ...plan.subnets import parse_network
from ...plan.types import Plan
from ...problems.problem import KeyPath
from .answers import Found, Item, below, folded, listed_below, same, texts_below
from .existing_network import subnets

_HUB: KeyPath = ("network", "hub")


def hub_id(plan: Plan) -> str | None:
    """Resource id of the hub; None where there is none or the deployment asks for it."""
    hub = plan.network.hub
    return hub.vnet_id if hub is not None and isinstance(hub.vnet_id, str) else None


def no_gateway(plan: Plan, vnet: Item | None) -> Iterator[Found]:
    """A hub that is not there, or whose gateway is to be used and does not exist."""
    if vnet is None:
        yield Found((*_HUB, "vnet_id"), f"there is no network {hub_id(plan)}")
        return
    hub = plan.network.hub
    if hub is None or not hub.use_remote_gateway:
        return
    gateways = subnets(vnet).get("gatewaysubnet")
    if gateways is None or not listed_below(gateways, "properties", "ipConfigurations"):
        text = f"the hub {vnet.get('name')} has no VPN or ExpressRoute gateway that the peering could use"
        yield Found((*_HUB, "use_remote_gateway"), text, "use_remote_gateway: false, until the hub has one")


def overlaps(plan: Plan, vnet: Item | None) -> Iterator[Found]:
    """Addresses of the hub that are ours as well."""
    own, hub_name = _own(plan), vnet.get("name") if vnet else ""
    for text in texts_below(vnet, "properties", "addressSpace", "addressPrefixes") if vnet and own else ():
        other = parse_network(text)
        if own is not None and other is not None and own.overlaps(other):
            said = f"the network {own} overlaps {other} of the hub {hub_name}, so they cannot be peered"
            yield Found(("network", "address_space"), said, "choose another address_space")


def overlapping_spokes(plan: Plan, vnet: Item | None) -> Iterator[Found]:
    """Other networks behind the hub with addresses of ours: the peering is made, and traffic goes astray."""
    own = _own(plan)
    for peering in listed_below(vnet, "properties", "virtualNetworkPeerings") if vnet and own else ():
        remote = str(below(peering, "properties", "remoteVirtualNetwork", "id") or "")
        if _is_ours(plan, remote):
            continue
        for text in texts_below(peering, "properties", "remoteAddressSpace", "addressPrefixes"):
            other = parse_network(text)
            if own is not None and other is not None and own.overlaps(other):
                said = (
                    f"the network {own} overlaps {other} of {remote.rsplit('/', 1)[-1]}, which the hub is peered with"
                )
                yield Found(("network", "address_space"), said, "choose another address_space")


def disconnected(plan: Plan, vnet: Item | None) -> Iterator[Found]:
    """A peering of ours from an earlier run that is disconnected: Azure does not mend it, it must go first.

    Source: https://learn.microsoft.com/azure/virtual-network/virtual-network-troubleshoot-peering-issues
    """
    for peering in listed_below(vnet, "properties", "virtualNetworkPeerings") if vnet else ():
        remote = str(below(peering, "properties", "remoteVirtualNetwork", "id") or "")
        if _is_ours(plan, remote) and same(below(peering, "properties", "peeringState"), "Disconnected"):
            said = f"the hub's peering {peering.get('name')} with an earlier network of this deployment is disconnected"
            yield Found((*_HUB, "vnet_id"), said, f"az network vnet peering delete --ids {peering.get('id')}")


def _own(plan: Plan) -> IPv4Network | None:
    return parse_network(plan.network.address_space) if plan.network.address_space else None


def _is_ours(plan: Plan, vnet_id: str) -> bool:
    """Whether an id is that of the network that the deployment creates, by its group and name."""
    end = f"/resourcegroups/{plan.resource_group}/providers/microsoft.network/virtualnetworks/{plan.network.vnet_name}"
    return folded(vnet_id).endswith(folded(end))
