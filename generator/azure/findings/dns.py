"""Private DNS zones: Azure links one network to one zone of a name, so a second one is refused.

Sources: https://learn.microsoft.com/azure/dns/private-dns-virtual-network-links and
https://learn.microsoft.com/rest/api/dns/privatedns/virtual-network-links/list. No call leads from a network to its
zones, and zones of other subscriptions are not in the list: Azure's own validation finds those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ... import catalog
from ...plan.types import Plan
from ...problems.problem import KeyPath
from ...records import record
from .answers import Found, Item, below, folded, said, same, texts_below


@record
class Zone:
    """A zone that the deployment creates or links."""

    name: str
    path: KeyPath
    zone_id: str | None
    """Of an existing one."""
    links: bool
    """Whether the deployment links an existing one."""


def zones(plan: Plan) -> tuple[Zone, ...]:
    """Those of the locker's endpoint and of the accounting database."""
    found, network = [], plan.network
    if network.blob_dns_zone != "none":
        is_new = network.blob_dns_zone == "new"
        name = f"privatelink.{catalog.cloud(plan.cloud)['blob_endpoint']}"
        zone_id = None if is_new else network.blob_dns_zone
        found.append(Zone(_name(zone_id) or name, ("network", "blob_dns_zone"), zone_id, network.links_dns_zone))
    if plan.creates_database:
        zone_id = None if network.mysql_dns_zone == "new" else network.mysql_dns_zone
        name = _name(zone_id) or plan.names.database_zone
        found.append(Zone(name, ("network", "mysql_dns_zone"), zone_id, network.links_mysql_dns_zone))
    return tuple(found)


def _name(zone_id: str | None) -> str | None:
    return zone_id.rstrip("/").rsplit("/", 1)[-1] if zone_id else None


def network_id(plan: Plan, subscription: str) -> str:
    """Id of the network, also of one that is yet to be created."""
    if plan.network.vnet_id:
        return plan.network.vnet_id
    group = f"/subscriptions/{subscription}/resourceGroups/{plan.resource_group}"
    return f"{group}/providers/Microsoft.Network/virtualNetworks/{plan.network.vnet_name}"


def rivals(plan: Plan, zone: Zone, listed: Iterable[Item]) -> list[Item]:
    """Other zones of the same name in the subscription."""
    own = f"/resourcegroups/{folded(plan.resource_group)}/"
    return [
        each
        for each in listed
        if same(each.get("name"), zone.name)
        and not same(each.get("id"), zone.zone_id or "")
        and not (zone.zone_id is None and own in folded(each.get("id")))
    ]


def linked_elsewhere(zone: Zone, vnet_id: str, rival: Item, links: Iterable[Item]) -> Iterator[Found]:
    """A network that is linked to another zone of the name."""
    for link in links:
        if same(below(link, "properties", "virtualNetwork", "id"), vnet_id):
            text = f"the network is linked to another zone {zone.name}: {said(rival.get('id'))}"
            yield Found(
                zone.path, text, f"{'.'.join(map(str, zone.path))}: {said(rival.get('id'))}, or delete the link"
            )


def other_link(plan: Plan, zone: Zone, vnet_id: str, links: Iterable[Item]) -> Iterator[Found]:
    """An existing zone that has a link to the network by another name: a second one is refused."""
    for link in links if zone.links else ():
        is_ours = folded(link.get("name")).startswith(folded(plan.names.shared_dns_link_stem))
        if same(below(link, "properties", "virtualNetwork", "id"), vnet_id) and not is_ours:
            text = f"the zone {zone.name} has a link to the network already: {said(link.get('name'))}"
            yield Found(zone.path, text, "network.link_dns_zones: false")


def of_database(zone: Zone) -> bool:
    """Whether it is the zone of the database, without a link to which Azure refuses the server."""
    return zone.path[-1] == "mysql_dns_zone"


def own_servers(plan: Plan, vnet: Item | None) -> bool:
    """Whether the network asks DNS servers of its own, which may know the locker's zone without a link."""
    return bool(plan.network.dns_servers or (vnet and texts_below(vnet, "properties", "dhcpOptions", "dnsServers")))


def not_linked(zone: Zone, vnet_id: str, links: Iterable[Item]) -> Iterator[Found]:
    """An existing zone that neither someone has linked nor the deployment links."""
    linked = any(same(below(link, "properties", "virtualNetwork", "id"), vnet_id) for link in links)
    if zone.zone_id is not None and not zone.links and not linked:
        text = f"the network is not linked to the zone {zone.name}, and the deployment does not link it"
        yield Found(zone.path, text, "have its owner link it to the network")


def missing_zone(zone: Zone) -> Found:
    """An existing zone that does not exist."""
    return Found(zone.path, f"there is no zone {zone.zone_id}", "az network private-dns zone list --query [].id -o tsv")
