"""The hub network: whether it has the gateway that the deployment uses, and addresses that do not overlap ours.

Source: https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview: address spaces of peered
networks must not overlap, and a remote gateway must exist before a peering may use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from shlex import quote

from ...plan.asked import Asked
from ...plan.deployment import Plan
from ...plan.subnets import parse_network
from ...rules.base import quoted
from ..answers import Item, below, folded, listed_below, said, same, texts_below
from ..check import Check, Finding
from ..reader import Reader
from ..requests.network import VNET
from .networks import subnets, vnet_call

_PEERING = "https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview"
_SPACE = ("network", "address_space")


class _OfHub(Check):
    path = ("network", "hub")

    def needed(self, plan: Plan) -> bool:
        return plan.network.hub is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """What is wrong with it; nothing is known of one that is yet to be named."""
        named = plan.network.hub.vnet_id if plan.network.hub is not None else ""
        if isinstance(named, Asked):
            yield self.not_known("the environment does not name the hub", f"export {named.variable}=…")
            return
        vnet = reader.find(vnet_call(VNET, named))
        yield from self.missing(named) if vnet is None else self.judged(plan, vnet)

    def missing(self, vnet_id: str) -> Iterator[Finding]:
        """What a check says of a hub that is not there: one check is enough for that."""
        del vnet_id
        yield from ()

    def judged(self, plan: Plan, vnet: Item) -> Iterator[Finding]:
        raise NotImplementedError


class NoHubGateway(_OfHub):
    id = "E4606"
    summary = "The hub is not there, or has no gateway although the peering is to use it."
    why = "Azure refuses a peering that uses a gateway that does not exist."
    fix = "Correct the id, or set `use_remote_gateway: false` until the hub has a VPN or ExpressRoute gateway."
    source = "https://learn.microsoft.com/azure/vpn-gateway/vpn-gateway-peering-gateway-transit"
    question = "whether the hub has its gateway"

    def missing(self, vnet_id: str) -> Iterator[Finding]:
        yield self.finding((*self.path, "vnet_id"), f"there is no network {quoted(vnet_id)}")

    def judged(self, plan: Plan, vnet: Item) -> Iterator[Finding]:
        if plan.network.hub is None or not plan.network.hub.use_remote_gateway:
            return
        gateways = subnets(vnet).get("gatewaysubnet")
        if gateways is None or not listed_below(gateways, "properties", "ipConfigurations"):
            name = quoted(said(vnet.get("name")))
            text = f"the hub {name} has no VPN or ExpressRoute gateway that the peering could use"
            hint = "use_remote_gateway: false, until the hub has one"
            yield self.finding((*self.path, "use_remote_gateway"), text, hint)


class HubOverlap(_OfHub):
    id = "E4607"
    summary = "The network overlaps addresses of the hub."
    why = "Azure refuses the peering of networks that overlap."
    fix = "Choose another address_space."
    source = _PEERING
    question = "whether the hub's addresses overlap the network's"

    def judged(self, plan: Plan, vnet: Item) -> Iterator[Finding]:
        name = quoted(said(vnet.get("name")))
        for own, other in _overlapping(plan, texts_below(vnet, "properties", "addressSpace", "addressPrefixes")):
            text = f"the network {own} overlaps {other} of the hub {name}, so they cannot be peered"
            yield self.finding(_SPACE, text, "choose another address_space")


class SpokeOverlap(_OfHub):
    id = "W4608"
    summary = "The network overlaps another network that the hub is peered with."
    why = "The peering is made, but what comes back from the hub may go to the other network."
    fix = "Choose another address_space."
    source = _PEERING
    question = "whether other networks behind the hub overlap the network"

    def judged(self, plan: Plan, vnet: Item) -> Iterator[Finding]:
        for peering, remote in _peerings(vnet):
            if _is_ours(plan, remote):
                continue
            name = quoted(said(remote.rsplit("/", 1)[-1]))
            prefixes = texts_below(peering, "properties", "remoteAddressSpace", "addressPrefixes")
            for own, other in _overlapping(plan, prefixes):
                text = f"the network {own} overlaps {other} of {name}, which the hub is peered with"
                yield self.finding(_SPACE, text, "choose another address_space")


class PeeringDisconnected(_OfHub):
    id = "E4609"
    summary = "The hub has a disconnected peering with an earlier network of this deployment."
    why = "Azure does not connect it again: it has to be deleted before a new one can be made."
    fix = "Delete the hub's side of it."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-troubleshoot-peering-issues"
    question = "whether the hub has a peering of an earlier run"

    def judged(self, plan: Plan, vnet: Item) -> Iterator[Finding]:
        for peering, remote in _peerings(vnet):
            if _is_ours(plan, remote) and same(below(peering, "properties", "peeringState"), "Disconnected"):
                name, peering_id = quoted(said(peering.get("name"))), quote(str(peering.get("id")))
                text = f"the hub's peering {name} with an earlier network of this deployment is disconnected"
                hint = f"az network vnet peering delete --ids {peering_id}"
                yield self.finding((*self.path, "vnet_id"), text, hint)


def _peerings(vnet: Item) -> Iterator[tuple[Item, str]]:
    """Each peering of the hub with the id of the other network."""
    for peering in listed_below(vnet, "properties", "virtualNetworkPeerings"):
        yield peering, str(below(peering, "properties", "remoteVirtualNetwork", "id") or "")


def _overlapping(plan: Plan, prefixes: Iterable[str]) -> Iterator[tuple[IPv4Network, IPv4Network]]:
    """Our address space with each prefix that overlaps it."""
    own = parse_network(plan.network.address_space) if plan.network.address_space else None
    for other in map(parse_network, prefixes):
        if own is not None and other is not None and own.overlaps(other):
            yield own, other


def _is_ours(plan: Plan, vnet_id: str) -> bool:
    """Whether an id is that of the network that the deployment creates, by its group and name."""
    end = f"/resourcegroups/{plan.resource_group}/providers/microsoft.network/virtualnetworks/{plan.network.vnet_name}"
    return folded(vnet_id).endswith(folded(end))
