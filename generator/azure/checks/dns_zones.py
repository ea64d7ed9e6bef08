"""Private DNS zones: there, linked to the network once and not to another zone of the name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from ...plan.resources import resource_id
from ...plan.types import Plan
from ..check import Check, Finding
from ..findings import dns
from ..reader import Reader
from ..refusals import Refused
from ..requests.network import VNET, ZONE_LINKS, ZONES
from .networks import vnet_call

_LINKS = "https://learn.microsoft.com/azure/dns/private-dns-virtual-network-links"
Body = Mapping[str, Any]


def _links(reader: Reader, zone_id: str) -> Sequence[Body] | None:
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
        """Whether a zone is created or linked."""
        return any(zone.zone_id is None or zone.links for zone in dns.zones(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Zones of the subscription; Azure's own validation finds those of others."""
        listed, vnet_id = reader.pages(ZONES()), dns.network_id(plan, reader.subscription)
        for zone in (each for each in dns.zones(plan) if each.zone_id is None or each.links):
            rivals = dns.rivals(plan, zone, listed)
            answers = reader.together([partial(_links, reader, str(each.get("id"))) for each in rivals])
            for rival, links in zip(rivals, answers, strict=True):
                yield from (self.finding(*each) for each in dns.linked_elsewhere(zone, vnet_id, rival, links or ()))


class _OfExistingZone(Check):
    path = ("network", "blob_dns_zone")

    def needed(self, plan: Plan) -> bool:
        """Whether one is named."""
        return any(zone.zone_id is not None for zone in dns.zones(plan))

    @staticmethod
    def answers(plan: Plan, reader: Reader) -> Iterator[tuple[dns.Zone, Sequence[Body] | None]]:
        """Each existing zone with its links."""
        zones = [zone for zone in dns.zones(plan) if zone.zone_id is not None]
        yield from zip(
            zones, reader.together([partial(_links, reader, str(zone.zone_id)) for zone in zones]), strict=True
        )


class ZoneUnusable(_OfExistingZone):
    id = "E4611"
    summary = "An existing private DNS zone is not there, or is linked to the network by another name."
    why = "Without the zone the locker or the database has no name; a second link of one network is refused."
    fix = "Correct the id, or set `network.link_dns_zones: false`."
    source = _LINKS
    question = "whether the existing DNS zones can be used"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each zone."""
        vnet_id = dns.network_id(plan, reader.subscription)
        for zone, links in self.answers(plan, reader):
            if links is None:
                yield self.finding(*dns.missing_zone(zone))
            else:
                yield from (self.finding(*found) for found in dns.other_link(plan, zone, vnet_id, links))


class _NotLinked(_OfExistingZone):
    of_database: ClassVar[bool]
    """Whether it is about the zone of the database, or about the other one."""

    def needed(self, plan: Plan) -> bool:
        """Whether that zone is an existing one."""
        return any(zone.zone_id is not None and dns.of_database(zone) is self.of_database for zone in dns.zones(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """That zone."""
        vnet_id = dns.network_id(plan, reader.subscription)
        for zone, links in self.answers(plan, reader):
            if links is not None and dns.of_database(zone) is self.of_database:
                yield from (self.finding(*found) for found in dns.not_linked(zone, vnet_id, links))


class ZoneNotLinked(_NotLinked):
    id = "W4612"
    summary = "The private DNS zone of the locker is not linked to the network."
    why = "Server and nodes do not find the locker, unless the network's DNS servers resolve the zone."
    fix = "Have the zone linked to the network, or have the network's own DNS servers resolve it."
    source = _LINKS
    question = "whether the locker's DNS zone is linked to the network"
    of_database = False

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Nothing where the network asks DNS servers of its own, which may know the zone."""
        vnet = reader.find(vnet_call(VNET, plan.network.vnet_id)) if plan.network.vnet_id is not None else None
        if not dns.own_servers(plan, vnet):
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
