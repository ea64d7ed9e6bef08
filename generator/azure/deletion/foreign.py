"""What a deployment has in the groups of others: peerings of the hub, links of existing DNS zones."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from ...plan.deployment import Plan
from ...records import record
from ..answers import below, text_below
from ..reader import Reader
from ..refusals import Refused
from ..request import Call
from ..requests.network import PEERINGS, ZONE_LINKS
from . import ids
from .seen import NotSeen


@record
class Foreign:
    """What leads to exactly this deployment's network."""

    peerings: tuple[str, ...]
    links: tuple[str, ...]
    not_seen: tuple[NotSeen, ...]

    @property
    def scopes(self) -> tuple[str, ...]:
        """Everything, as ids."""
        return (*self.peerings, *self.links)


def foreign_things(plan: Plan, reader: Reader) -> Foreign:
    """Look; what must not be looked at is said."""
    network = network_of(plan, reader.subscription)
    blind: list[NotSeen] = []
    peerings: list[str] = []
    for hub in _hubs(plan, reader, network, blind):
        call = PEERINGS(id=hub)
        peerings += _leading(reader, call, network, "remoteVirtualNetwork", f"peerings of {hub}", blind)
    links: list[str] = []
    for zone in plan.cleanup.linked_zones:
        call = ZONE_LINKS(owner=zone.subscription, group=zone.resource_group, zone=zone.name)
        links += _leading(reader, call, network, "virtualNetwork", f"links of the DNS zone {zone.name}", blind)
    return Foreign(tuple(peerings), tuple(links), tuple(blind))


def network_of(plan: Plan, subscription: str) -> str:
    """Id of the network."""
    return plan.network.vnet_id or (
        f"/subscriptions/{subscription}/resourceGroups/{plan.network.vnet_resource_group}"
        f"/providers/Microsoft.Network/virtualNetworks/{plan.network.vnet_name}"
    )


def _hubs(plan: Plan, reader: Reader, network: str, blind: list[NotSeen]) -> Iterable[str]:
    """The hub of the definition; one that was asked for at deployment is in the environment, or in our peering."""
    if plan.network.hub is None:
        return ()
    named = plan.network.hub.vnet_id
    if isinstance(named, str):
        return (named,)
    if os.environ.get(named.variable):
        return (os.environ[named.variable],)
    call = PEERINGS(id=network)
    found = {text_below(each, "properties", "remoteVirtualNetwork", "id") for each in reader.find_pages(call)}
    if not found:
        hint = f"export {named.variable}=ID of the hub network"
        blind.append(NotSeen("which network is the hub, and whether it keeps a peering", "nothing says it", hint))
    return sorted(found)


def _leading(reader: Reader, call: Call, network: str, key: str, what: str, blind: list[NotSeen]) -> Iterable[str]:
    """Ids of those of a list that lead to the network."""
    return _seen(
        lambda: [
            text_below(each, "id")
            for each in reader.find_pages(call)
            if ids.same(str(below(each, "properties", key, "id") or ""), network)
        ],
        what,
        blind,
    )


def _seen(look: Callable[[], list[str]], what: str, blind: list[NotSeen]) -> list[str]:
    try:
        return look()
    except Refused as reason:
        blind.append(NotSeen(f"whether there are {what} to this network", str(reason)))
        return []
