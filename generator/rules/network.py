"""The way in, the hub and the DNS zone of a new network; an existing network and its subnets."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from .. import catalog
from ..definition.model.slurm import NewDatabase
from ..plan.access import KINDS, kind_of
from ..plan.addresses import needed_addresses, smallest_subnet
from ..plan.file_systems.registry import wanted_by
from ..plan.network import existing_subnets, prefix_lengths, route_plan
from ..plan.subnet_kinds import SubnetRole
from ..plan.subnets import compute_name, kind_of_role
from ..problems.problem import Problem
from ..words.counts import counted
from .addresses import prefix, private_ranges, usable_addresses
from .azure_names import ID_FORM, resource_id_fault
from .base import DefinitionRule, Path, Site, given, meant, quoted


class PublicWithoutSources(DefinitionRule):
    id = "E0313"
    summary = "The server gets a public address, but no one may reach it."
    why = "With access public only listed sources pass the firewall; an empty list shuts everyone out."
    fix = "List the prefixes of your users in network.allowed_sources."
    source = "https://learn.microsoft.com/azure/virtual-network/network-security-groups-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.definition.network
        creates_server = site.definition.server.existing is None
        if creates_server and kind_of(site.definition).is_public and not network.allowed_sources:
            yield self.problem(
                ("network", "access"),
                "access is public, but network.allowed_sources is empty",
                "allowed_sources: [203.0.113.7/32], with the address that your users come from",
            )


class OpenToAll(DefinitionRule):
    id = "E0314"
    summary = "The server is open to the whole internet."
    why = "The portal of CycleCloud can create and delete VMs in your subscription; it must not be open to everyone."
    fix = "List the prefixes of your users."
    source = "https://learn.microsoft.com/azure/cyclecloud/concepts/security-best-practices"

    def check(self, site: Site) -> Iterator[Problem]:
        for index, text in enumerate(site.definition.network.allowed_sources):
            network = prefix(text)
            if network is not None and network.prefixlen == 0:
                yield self.problem(
                    ("network", "allowed_sources", index), f"{text} lets the whole internet reach the server"
                )


class PrivateSource(DefinitionRule):
    id = "W0315"
    summary = "An allowed source is a private prefix."
    why = "Traffic reaches a public address from public addresses; a private source never matches."
    fix = "Write the public address of your site, or use access hub or bastion."
    source = "https://www.rfc-editor.org/rfc/rfc1918"

    def check(self, site: Site) -> Iterator[Problem]:
        private = private_ranges()
        for index, text in enumerate(site.definition.network.allowed_sources):
            network = prefix(text)
            if network is not None and any(network.subnet_of(range_) for range_ in private):
                yield self.problem(
                    ("network", "allowed_sources", index),
                    f"{text} is private, so no traffic to a public address comes from it",
                )


class HubMissing(DefinitionRule):
    id = "E0316"
    summary = "Access by private address is requested, but nothing leads to the network."
    why = "Without the peering with a hub no one can reach a server in a new network."
    fix = (
        "Add network.hub with the hub's vnet_id; it may be left to an environment variable. access private is for an "
        "existing network into which a VPN leads."
    )
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        network, kind = site.definition.network, kind_of(site.definition)
        if network.existing is not None:
            return
        if kind.peers_with_hub and (network.hub is None or network.hub.vnet_id is None):
            hint = "hub: {vnet_id: ${HUB_VNET_ID}}"
            yield self.problem(("network", "access"), "access is hub, but network.hub names no hub network", hint)
        if kind.needs_existing_network:
            text = f"access is {network.access}, but the network is new, so nothing leads to it"
            yield self.problem(("network", "access"), text, "access: hub with hub: {vnet_id: ${HUB_VNET_ID}}")


class SettingWithoutEffect(DefinitionRule):
    id = "E0317"
    summary = "A setting belongs to another type of access."
    why = "It would be ignored, which is hardly what was meant."
    fix = "Remove the setting, or change network.access."
    source = "https://learn.microsoft.com/azure/bastion/bastion-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.definition.network
        for kind in KINDS:
            key = kind.own_key
            if key is not None and kind.default("kind") != network.access and getattr(network, key):
                text = f"network.{key} is given, but access is {network.access}"
                yield self.problem(("network", key), text, f"access: {kind.default('kind')}", on_key=True)


class ExistingAndNew(DefinitionRule):
    id = "E0318"
    summary = "An existing network is named together with settings of a new one."
    why = "Nothing is created in an existing network: its prefixes, outbound access and peerings belong to its owner."
    fix = "Remove network.existing, or remove the settings of the new network."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-networks-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        if site.definition.network.existing is None:
            return
        new_only = (
            *("address_space", "subnets", "nat_gateway", "hub"),
            *("next_hop", "route_table", "dns_servers", "link_dns_zones", "compute_subnets"),
        )
        for path in (("network", name) for name in new_only):
            if given(site, path):
                text = f"network.{path[1]} is ignored in the existing network that network.existing names"
                yield self.problem(path, text, on_key=True)


class ExistingSubnetMissing(DefinitionRule):
    id = "E0319"
    summary = "An existing network lacks the subnet that a service needs."
    why = (
        "A new server, NetApp Files, Managed Lustre and MySQL each need a subnet, which is not created in an existing "
        "network."
    )
    fix = "Create the subnet and name it in network.existing.subnets."
    source = "https://learn.microsoft.com/azure/virtual-network/subnet-delegation-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        existing = site.definition.network.existing
        if existing is None:
            return
        for role, reason in _needed_roles(site):
            if getattr(existing.subnets, role) is None:
                path: Path = ("network", "existing", "subnets")
                text = f"network.existing.subnets names no {role} subnet, which {reason} needs"
                yield self.problem(path, text, f"{role}: <name of the subnet>", on_key=True)


def _needed_roles(site: Site) -> Iterator[tuple[str, str]]:
    if site.definition.server.existing is None:
        yield "server", "the CycleCloud server"
    subnets = (each.file_system.subnet for each in wanted_by(site.definition))
    yield from dict.fromkeys((subnet.role, subnet.service) for subnet in subnets if subnet is not None)
    slurm = site.definition.slurm
    if slurm is not None and isinstance(slurm.accounting, NewDatabase):
        yield "database", "the accounting database"


class BlobDnsZone(DefinitionRule):
    id = "E0320"
    summary = "The DNS zone of the locker's endpoint is not new, none or an id of such a zone."
    why = "Server and nodes find the locker's private address through this zone."
    fix = "Write new, none, or the resource id of the privatelink.blob zone."
    source = "https://learn.microsoft.com/azure/private-link/private-endpoint-dns"

    def check(self, site: Site) -> Iterator[Problem]:
        value, path = site.definition.network.blob_dns_zone, ("network", "blob_dns_zone")
        if value in ("new", "none"):
            return
        if not value.startswith("/"):
            hint = meant(value, ("new", "none")) or "new, none, or the resource id of a zone"
            yield self.problem(path, f"network.blob_dns_zone cannot be {quoted(value)}", hint)
            return
        fault = resource_id_fault(value, "Microsoft.Network", "privateDnsZones")
        zone = catalog.rule_figures().blob_dns_suffix.values[site.definition.azure.cloud]
        if fault:
            yield self.problem(path, f"network.blob_dns_zone {quoted(value)} {fault}", ID_FORM)
        elif value.rsplit("/", 1)[1].lower() != zone:
            yield self.problem(
                path, f"network.blob_dns_zone names the zone {quoted(value.rsplit('/', 1)[1])}; the locker needs {zone}"
            )


class MysqlDnsZone(DefinitionRule):
    id = "E0348"
    summary = "The DNS zone of the new database server is not new or an id of such a zone."
    why = "Azure registers the server in this zone only, cannot change it later, and takes no zone with another ending."
    fix = "Write new, or the resource id of a private DNS zone whose name ends as the message says."
    source = "https://learn.microsoft.com/azure/mysql/flexible-server/concepts-networking-vnet"

    def check(self, site: Site) -> Iterator[Problem]:
        value, path = site.definition.network.mysql_dns_zone, ("network", "mysql_dns_zone")
        if value == "new":
            return
        if not value.startswith("/"):
            hint = meant(value, ("new",)) or "new, or the resource id of a zone"
            yield self.problem(path, f"network.mysql_dns_zone cannot be {quoted(value)}", hint)
            return
        fault = resource_id_fault(value, "Microsoft.Network", "privateDnsZones")
        ending = catalog.cloud(site.definition.azure.cloud).mysql_domain
        name = value.rsplit("/", 1)[1]
        if fault:
            yield self.problem(path, f"network.mysql_dns_zone {quoted(value)} {fault}", ID_FORM)
        elif name.lower().startswith("privatelink."):
            text = f"network.mysql_dns_zone names {quoted(name)}, a zone for private endpoints, but the server has none"
            yield self.problem(path, text, f"a zone like slurm.{ending}")
        elif name.lower() == f"{_server_name(site)}.{ending}":
            text = f"network.mysql_dns_zone names {quoted(name)}, which would be the name of the server itself"
            yield self.problem(path, text, f"a zone like slurm.{ending}, or another server_name")
        elif not f".{name.lower()}".endswith(f".{ending}"):
            yield self.problem(
                path, f"network.mysql_dns_zone names the zone {quoted(name)}; its name must end in {ending}"
            )


def _server_name(site: Site) -> str | None:
    """What the definition calls the new database server, whose address in the zone is made of it."""
    accounting = site.definition.slurm.accounting if site.definition.slurm else None
    return accounting.server_name if isinstance(accounting, NewDatabase) else None


class NoNatGateway(DefinitionRule):
    id = "W0321"
    summary = "The new network has no NAT gateway."
    why = (
        "Nodes install Slurm from packages.microsoft.com when they start; since 2026-03-31 new networks have no "
        "default outbound access, so without another route no node becomes ready."
    )
    fix = "Set network.nat_gateway: true, or silence this rule with the route that exists."
    source = "https://learn.microsoft.com/azure/virtual-network/ip-services/default-outbound-access"

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.definition.network
        if network.existing is None and not network.nat_gateway and route_plan(site.definition) is None:
            text = "network.nat_gateway is off, so nodes need another route to the internet to install their packages"
            yield self.problem(("network", "nat_gateway"), text)


_HOST = re.compile(
    r"(?=.{1,253}$)[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?(?:\.[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?)*"
)


def host_fault(text: str) -> str | None:
    """What is wrong with a host name or IPv4 address; None when it is one."""
    if re.fullmatch(r"[0-9.]+", text):
        octets = text.split(".")
        good = len(octets) == 4 and all(octet.isdecimal() and len(octet) <= 3 and int(octet) <= 255 for octet in octets)
        return None if good else "is not an IPv4 address"
    if len(text) <= 253 and _HOST.fullmatch(text):
        return None
    if "/" in text or "://" in text:
        return "is not a host name or IPv4 address; give it alone, without scheme, path or prefix length"
    return "is not a host name or IPv4 address"


_EXISTING: Path = ("network", "existing")
_SUBNETS: Path = (*_EXISTING, "subnets")
NO_DELEGATION = "none"


def _path(site: Site, role: SubnetRole) -> Path:
    existing, name = site.definition.network.existing, compute_name(role)
    if existing is None or name is None:
        return (*_SUBNETS, role)
    return (*_EXISTING, "compute_subnets", [each.name for each in existing.compute_subnets].index(name))


class NetworkElsewhere(DefinitionRule):
    id = "E0349"
    summary = "The existing network is in another subscription or region."
    why = (
        "Network cards and private endpoints, and with them server, nodes and file systems, must be in the "
        "subscription and the region of their network. Only a peering may cross both."
    )
    fix = "Deploy into the network's subscription and region, or peer a new network with it: access hub."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-network-interface"

    def check(self, site: Site) -> Iterator[Problem]:
        network, own = site.definition.network.existing, site.definition.azure.subscription_id
        if network is None:
            return
        malformed = resource_id_fault(network.vnet_id, "Microsoft.Network", "virtualNetworks")
        if not malformed and own is not None and network.vnet_id.split("/")[2].lower() != own.lower():
            text = f"the network is in subscription {network.vnet_id.split('/')[2]}, the deployment in {own}"
            yield self.problem((*_EXISTING, "vnet_id"), text)
        place = "".join((network.location or site.definition.location).lower().split())
        if place != site.definition.location.lower():
            text = f"the network is in {network.location}, the deployment in {site.definition.location}"
            yield self.problem((*_EXISTING, "location"), text)


class _AboutSubnets(DefinitionRule):
    def _is_named(self, site: Site, role: str) -> bool:
        """False for the endpoint in the server's subnet, which is reported as the server's."""
        existing = site.definition.network.existing
        if existing is None or compute_name(role) is not None:
            return existing is not None
        return getattr(existing.subnets, role) is not None


class Delegation(_AboutSubnets):
    id = "E0359"
    summary = "An existing subnet has not the delegation that its use needs."
    why = "NetApp Files and MySQL take a subnet that is delegated to them, and nothing else can be in such a subnet."
    fix = "Have the subnet delegated as the message says, or use another one."
    source = "https://learn.microsoft.com/azure/virtual-network/subnet-delegation-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        subnets = existing_subnets(site.definition)
        for role, subnet in subnets.items():
            wanted, said = kind_of_role(role).delegation, subnet.delegation
            if said is not None and said.lower() != (wanted or NO_DELEGATION).lower() and self._is_named(site, role):
                need = f"must be delegated to {wanted}" if wanted else "must not be delegated"
                text = f"the {role} subnet {quoted(subnet.name)} {need}; the definition says {quoted(said)}"
                yield self.problem((*_path(site, role), "delegation"), text)
        for (one, first), (two, second) in combinations(subnets.items(), 2):
            own = next((role for role in (two, one) if kind_of_role(role).delegation), None)
            if first.name.lower() == second.name.lower() and own is not None and one != two:
                other = one if own == two else two
                text = (
                    f"{quoted(first.name)} cannot be the {own} and the {other} subnet: it is delegated to one service"
                )
                yield self.problem(_path(site, own), text, on_key=True)


class ExistingTooSmall(DefinitionRule):
    id = "E0360"
    summary = "An existing subnet has too few free addresses."
    why = "A node, a file system or an endpoint that gets no address is not created; the deployment fails late."
    fix = "Use a larger subnet, or lower max_nodes."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"

    def check(self, site: Site) -> Iterator[Problem]:
        lengths, needs = prefix_lengths(site.definition), needed_addresses(site.definition)
        subnets = existing_subnets(site.definition)
        shares = "endpoints" in subnets and subnets.get("server") == subnets["endpoints"]
        for role, subnet in subnets.items():
            known = prefix(subnet.prefix) if subnet.prefix is not None else None
            if known is None or (role == "endpoints" and shares):
                continue
            path: Path = (*_path(site, role), "prefix")
            need = needs.get(role)
            if need is None:
                longest = smallest_subnet(site.definition, role, lengths.get(role))
                if known.prefixlen > longest:
                    yield self.problem(
                        path, f"the {role} subnet {known} is smaller than /{longest}, which it must have"
                    )
                continue
            need += 1 if role == "server" and shares else 0
            free = max(0, usable_addresses(known) - subnet.addresses_in_use)
            if free < need:
                used = f", {subnet.addresses_in_use} of them in use" if subnet.addresses_in_use else ""
                has = f"{counted(usable_addresses(known), 'address')}{used}"
                text = f"the {role} subnet {known} has {has}; the deployment may need {need}"
                yield self.problem(path, text)


class ExistingOverlap(_AboutSubnets):
    id = "E0369"
    summary = "Two existing subnets are said to have overlapping prefixes."
    why = "Azure has no such subnets, so at least one prefix is wrong, and with it what was checked by it."
    fix = "Copy the prefixes from `az network vnet subnet list`."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-networks-faq"

    def check(self, site: Site) -> Iterator[Problem]:
        known = {
            role: (subnet.name, place)
            for role, subnet in existing_subnets(site.definition).items()
            if subnet.prefix is not None and (place := prefix(subnet.prefix)) is not None
        }
        for (one, (first_name, first)), (two, (name, place)) in combinations(known.items(), 2):
            if first_name != name and first.overlaps(place) and self._is_named(site, one):
                text = f"the {two} subnet {place} overlaps the {one} subnet {first}"
                yield self.problem((*_path(site, two), "prefix"), text)
