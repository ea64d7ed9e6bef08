"""An existing network and its subnets; the hub."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from ...plan.resources import resource_id
from ...plan.types import Asked, Plan
from ..check import Check, Finding
from ..findings import bastion, existing_network, hub
from ..findings.answers import Found
from ..reader import Reader
from ..request import Call, Request
from ..requests.network import BASTIONS, VNET, VNET_USAGES

Body = Mapping[str, Any]
_PEERING = "https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview"


def vnet_call(request: Request, vnet_id: str) -> Call:
    """A question about a network."""
    parts = resource_id(vnet_id)
    return request(owner=parts.subscription, group=parts.resource_group, vnet=parts.name)


class _OfExisting(Check):
    path = ("network", "existing", "vnet_id")
    question = "whether the existing network can be used"

    def needed(self, plan: Plan) -> bool:
        """Whether there is one."""
        return plan.network.vnet_id is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """What is wrong; that a network is not there is for one check to say."""
        vnet = reader.find(vnet_call(VNET, plan.network.vnet_id or ""))
        if vnet is not None:
            yield from (self.finding(*found) for found in self.judged(plan, vnet))

    def judged(self, plan: Plan, vnet: Body) -> Iterator[Found]:
        """What is wrong with a network that is there."""
        raise NotImplementedError


class NetworkMisplaced(_OfExisting):
    id = "E4601"
    summary = "The existing network is not there, or in another subscription or region than the deployment."
    why = "Network cards and private endpoints join only networks of their own subscription and region."
    fix = "Deploy into the network's subscription and region, or peer a new network with it: access hub."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-network-interface"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Also a network that is missing."""
        vnet = reader.find(vnet_call(VNET, plan.network.vnet_id or ""))
        yield from (self.finding(*each) for each in existing_network.misplaced(plan, reader.subscription, vnet))


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
        """Whether somebody else's Bastion is the way in."""
        return plan.network.vnet_id is not None and plan.access.tunnel is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Those of the network's subscription."""
        vnet_id = plan.network.vnet_id or ""
        hosts = reader.pages(BASTIONS(owner=resource_id(vnet_id).subscription))
        yield from (self.finding(*found) for found in bastion.missing(vnet_id, hosts))


class SubnetMissing(_OfExisting):
    id = "E4602"
    summary = "The existing network has no subnet of a name that the definition gives."
    why = "The deployment creates no subnet in someone else's network."
    fix = "Correct the name: the message says which subnets there are."
    source = "https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/get"
    question = "whether the subnets are there"

    def judged(self, plan: Plan, vnet: Body) -> Iterator[Found]:
        """Each of them."""
        return existing_network.missing_subnets(plan, vnet)


class SubnetDelegated(_OfExisting):
    id = "E4603"
    summary = "A subnet is not delegated to the service that needs it, or is delegated and takes nothing else."
    why = "NetApp Files and MySQL take a subnet that is delegated to them, and nothing else can be in such a subnet."
    fix = "Have the subnet delegated as the message says, or use another one."
    source = "https://learn.microsoft.com/azure/virtual-network/subnet-delegation-overview"
    question = "to what the subnets are delegated"

    def judged(self, plan: Plan, vnet: Body) -> Iterator[Found]:
        """Each of them."""
        return existing_network.wrong_delegations(plan, vnet)


class TooFewAddresses(_OfExisting):
    id = "E4604"
    summary = "A subnet of the existing network has too few free addresses."
    why = "A node or an endpoint that gets no address is not created."
    fix = "Use a larger subnet, or lower max_nodes."
    source = "https://learn.microsoft.com/rest/api/virtualnetwork/virtual-networks/list-usage"
    question = "how many addresses are free"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each subnet, and those of which the answer does not tell."""
        vnet_id = plan.network.vnet_id or ""
        questions: list[Callable[[], Any]] = [
            partial(reader.find, vnet_call(VNET, vnet_id)),
            partial(reader.find_pages, vnet_call(VNET_USAGES, vnet_id)),
        ]
        vnet, spaces = reader.together(questions)
        if vnet is None:
            return
        yield from (self.finding(*found) for found in existing_network.too_few_addresses(plan, vnet, spaces))
        for name in existing_network.uncounted_subnets(plan, vnet, spaces):
            yield self.not_known(f"Azure does not say it of the subnet {name}")


class NoWayOut(_OfExisting):
    id = "W4605"
    summary = "A private subnet of the existing network has neither a NAT gateway nor a route table."
    why = "Server and nodes call Azure, and fetch packages; without a way out their first boot fails."
    fix = "Give the subnet a NAT gateway, or a route to a firewall."
    source = "https://learn.microsoft.com/azure/virtual-network/ip-services/default-outbound-access"
    question = "whether the subnets have a way out"

    def judged(self, plan: Plan, vnet: Body) -> Iterator[Found]:
        """Each of them."""
        return existing_network.without_way_out(plan, vnet)


class _OfHub(Check):
    path = ("network", "hub")

    def needed(self, plan: Plan) -> bool:
        """Whether the deployment peers with one."""
        return plan.network.hub is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """What is wrong with it; nothing is known of one that is yet to be named."""
        named = plan.network.hub.vnet_id if plan.network.hub is not None else None
        if isinstance(named, Asked):
            yield self.not_known("the environment does not name the hub", f"export {named.variable}=…")
            return
        vnet = reader.find(vnet_call(VNET, hub.hub_id(plan) or ""))
        yield from (self.finding(*found) for found in self.judged(plan, vnet))

    def judged(self, plan: Plan, vnet: Body | None) -> Iterator[Found]:
        """What is wrong with it."""
        raise NotImplementedError


class NoHubGateway(_OfHub):
    id = "E4606"
    summary = "The hub is not there, or has no gateway although the peering is to use it."
    why = "Azure refuses a peering that uses a gateway that does not exist."
    fix = "Correct the id, or set `use_remote_gateway: false` until the hub has a VPN or ExpressRoute gateway."
    source = "https://learn.microsoft.com/azure/vpn-gateway/vpn-gateway-peering-gateway-transit"
    question = "whether the hub has its gateway"

    def judged(self, plan: Plan, vnet: Body | None) -> Iterator[Found]:
        """Hub and gateway."""
        return hub.no_gateway(plan, vnet)


class HubOverlap(_OfHub):
    id = "E4607"
    summary = "The network overlaps addresses of the hub."
    why = "Azure refuses the peering of networks that overlap."
    fix = "Choose another address_space."
    source = _PEERING
    question = "whether the hub's addresses overlap the network's"

    def judged(self, plan: Plan, vnet: Body | None) -> Iterator[Found]:
        """Each prefix of the hub."""
        return hub.overlaps(plan, vnet)


class SpokeOverlap(_OfHub):
    id = "W4608"
    summary = "The network overlaps another network that the hub is peered with."
    why = "The peering is made, but what comes back from the hub may go to the other network."
    fix = "Choose another address_space."
    source = _PEERING
    question = "whether other networks behind the hub overlap the network"

    def judged(self, plan: Plan, vnet: Body | None) -> Iterator[Found]:
        """Each prefix of the others."""
        return hub.overlapping_spokes(plan, vnet)


class PeeringDisconnected(_OfHub):
    id = "E4609"
    summary = "The hub has a disconnected peering with an earlier network of this deployment."
    why = "Azure does not connect it again: it has to be deleted before a new one can be made."
    fix = "Delete the hub's side of it."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-troubleshoot-peering-issues"
    question = "whether the hub has a peering of an earlier run"

    def judged(self, plan: Plan, vnet: Body | None) -> Iterator[Found]:
        """Each peering with our network."""
        return hub.disconnected(plan, vnet)
