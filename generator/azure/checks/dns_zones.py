"""Private DNS zones: Azure links one network to one zone of a name, so a second one is refused.

Sources: https://learn.microsoft.com/azure/dns/private-dns-virtual-network-links and
https://learn.microsoft.com/rest/api/dns/privatedns/virtual-network-links/list. No call leads from a network to its
zones, and zones of other subscriptions are not in the list: Azure's own validation finds those.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import ClassVar

from msgspec import Struct

from ... import catalog
from ...plan.deployment import Plan
from ...plan.resources import resource_id
from ...problems.problem import KeyPath
from ..answers import Item, below, folded, said, same, texts_below
from ..check import Check, Finding
from ..reader import Reader
from ..refusals import Refused
from ..requests.network import VNET, ZONE_LINKS, ZONES
from ..resource_ids import network_id
from .networks import vnet_call

_LINKS = "https://learn.microsoft.com/azure/dns/private-dns-virtual-network-links"


class Zone(Struct, frozen=True):
    name: str
    path: KeyPath
    zone_id: str | None
    """Of an existing one."""
    links: bool
    """Whether the deployment links an existing one."""

    @property
    def is_of_database(self) -> bool:
        """Without a link to that zone Azure refuses the server."""
        return self.path[-1] == "mysql_dns_zone"


def zones(plan: Plan) -> tuple[Zone, ...]:
    """Those of the locker's endpoint and of the accounting database."""
    found, network = [], plan.network
    if network.blob_dns_zone != "none":
        is_new = network.blob_dns_zone == "new"
        name = f"privatelink.{catalog.cloud(plan.cloud).blob_endpoint}"
        zone_id = None if is_new else network.blob_dns_zone
        found.append(Zone(_name(zone_id) or name, ("network", "blob_dns_zone"), zone_id, network.links_dns_zone))
    if plan.creates_database:
        zone_id = None if network.mysql_dns_zone == "new" else network.mysql_dns_zone
        name = _name(zone_id) or plan.names.database_zone
        found.append(Zone(name, ("network", "mysql_dns_zone"), zone_id, network.links_mysql_dns_zone))
    return tuple(found)


def _name(zone_id: str | None) -> str | None:
    return zone_id.rstrip("/").rsplit("/", 1)[-1] if zone_id else None


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


def _leads_to(link: Item, vnet_id: str) -> bool:
    return same(below(link, "properties", "virtualNetwork", "id"), vnet_id)


def _links(reader: Reader, zone_id: str) -> Sequence[Item] | None:
    """The links of a zone; None: there is no such zone."""
    parts = resource_id(zone_id)
    try:
        return reader.pages(ZONE_LINKS(owner=parts.subscription, group=parts.resource_group, zone=parts.name))
    except Refused as refused:
        if refused.is_missing:
            return None
        raise


class LinkedElsewhere(Check):
    id = "E4610"
    summary = "The network is linked to another private DNS zone of the same name."
    why = "Azure links a network to one zone of a name, and refuses a second one."
    fix = "Use that zone, by its id, or have the link deleted."
    source = _LINKS
    question = "whether the network is linked to another zone"
    path = ("network", "blob_dns_zone")

    def needed(self, plan: Plan) -> bool:
        return any(zone.zone_id is None or zone.links for zone in zones(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Zones of the subscription; Azure's own validation finds those of others."""
        listed, vnet_id = reader.pages(ZONES()), network_id(plan, reader.subscription)
        for zone in (each for each in zones(plan) if each.zone_id is None or each.links):
            others = rivals(plan, zone, listed)
            answers = reader.together([partial(_links, reader, str(each.get("id"))) for each in others])
            for rival, links in zip(others, answers, strict=True):
                yield from self.judged(zone, vnet_id, rival, links or ())

    def judged(self, zone: Zone, vnet_id: str, rival: Item, links: Iterable[Item]) -> Iterator[Finding]:
        other = said(rival.get("id"))
        for link in links:
            if _leads_to(link, vnet_id):
                text = f"the network is linked to another zone {zone.name}: {other}"
                yield self.finding(zone.path, text, f"{'.'.join(map(str, zone.path))}: {other}, or delete the link")


class _OfExistingZone(Check):
    path = ("network", "blob_dns_zone")

    def needed(self, plan: Plan) -> bool:
        return any(self.concerns(zone) for zone in zones(plan))

    def concerns(self, zone: Zone) -> bool:
        return zone.zone_id is not None

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        wanted, vnet_id = [each for each in zones(plan) if self.concerns(each)], network_id(plan, reader.subscription)
        answers = reader.together([partial(_links, reader, str(zone.zone_id)) for zone in wanted])
        for zone, links in zip(wanted, answers, strict=True):
            yield from self.judged(plan, zone, vnet_id, links)

    def judged(self, plan: Plan, zone: Zone, vnet_id: str, links: Sequence[Item] | None) -> Iterator[Finding]:
        """What is wrong with a zone; `links` is None where there is none of that id."""
        raise NotImplementedError


class ZoneUnusable(_OfExistingZone):
    id = "E4611"
    summary = "An existing private DNS zone is not there, or is linked to the network by another name."
    why = "Without the zone the locker or the database has no name; a second link of one network is refused."
    fix = "Correct the id, or set `network.link_dns_zones: false`."
    source = _LINKS
    question = "whether the existing DNS zones can be used"

    def judged(self, plan: Plan, zone: Zone, vnet_id: str, links: Sequence[Item] | None) -> Iterator[Finding]:
        if links is None:
            text = f"there is no zone {zone.zone_id}"
            yield self.finding(zone.path, text, "az network private-dns zone list --query [].id -o tsv")
        for link in links or () if zone.links else ():
            is_ours = folded(link.get("name")).startswith(folded(plan.names.shared_dns_link_stem))
            if _leads_to(link, vnet_id) and not is_ours:
                text = f"the zone {zone.name} has a link to the network already: {said(link.get('name'))}"
                yield self.finding(zone.path, text, "network.link_dns_zones: false")


class _NotLinked(_OfExistingZone):
    of_database: ClassVar[bool]
    """Whether it is about the zone of the database, or about the other one."""

    def concerns(self, zone: Zone) -> bool:
        return zone.zone_id is not None and zone.is_of_database is self.of_database

    def judged(self, plan: Plan, zone: Zone, vnet_id: str, links: Sequence[Item] | None) -> Iterator[Finding]:
        """Neither someone has linked it nor does the deployment."""
        del plan
        if links is not None and not zone.links and not any(_leads_to(link, vnet_id) for link in links):
            text = f"the network is not linked to the zone {zone.name}, and the deployment does not link it"
            yield self.finding(zone.path, text, "have its owner link it to the network")


def has_own_servers(plan: Plan, vnet: Item | None) -> bool:
    """Whether the network asks DNS servers of its own, which may know the locker's zone without a link."""
    return bool(plan.network.dns_servers or (vnet and texts_below(vnet, "properties", "dhcpOptions", "dnsServers")))


class ZoneNotLinked(_NotLinked):
    id = "W4612"
    summary = "The private DNS zone of the locker is not linked to the network."
    why = "Server and nodes do not find the locker, unless the network's DNS servers resolve the zone."
    fix = "Have the zone linked to the network, or have the network's own DNS servers resolve it."
    source = _LINKS
    question = "whether the locker's DNS zone is linked to the network"
    of_database = False

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        vnet = reader.find(vnet_call(VNET, plan.network.vnet_id)) if plan.network.vnet_id is not None else None
        if not has_own_servers(plan, vnet):
            yield from super().run(plan, reader)


class DatabaseZoneNotLinked(_NotLinked):
    id = "E4613"
    summary = "The private DNS zone of the database is not linked to the network."
    why = (
        "Azure creates a database server in a subnet only if the network is linked to the server's zone, whichever DNS "
        "servers the network asks; else it refuses the server (VnetNotLinkedToPrivateDnsZone)."
    )
    fix = "Have the zone linked to the network before the deployment."
    source = "https://learn.microsoft.com/azure/mysql/flexible-server/concepts-networking-vnet"
    question = "whether the database's DNS zone is linked to the network"
    path = ("network", "mysql_dns_zone")
    of_database = True
