"""What the policies of a landing zone would refuse, each demand of `landing_zone` by one rule.

Names and ids of the policies are in docs/landing-zones.md, with the key and what the deployment does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ..catalog.node_images import ImagePlan, image_plan
from ..definition.model.landing_zone import LandingZone
from ..definition.model.slurm import Value
from ..plan.created_types import PUBLIC_ADDRESS, ROLE, Purpose, created_types
from ..plan.names import creates_resource_group, tags_of
from ..plan.network import route_plan
from ..plan.vm_attributes import own_key
from ..problems.problem import Problem
from .azure_names import GUID
from .base import DefinitionRule, Path, Site, first_given, quoted
from .roles import machines, roles
from .storage import accounts

_ZONE = "landing_zone"
_BUILT_IN = "https://learn.microsoft.com/azure/governance/policy/samples/built-in-policies"


class _Demand(DefinitionRule):
    """A rule about one demand of the landing zone."""

    key: str
    why = "A policy of the subscription refuses it while the deployment runs, when part of it is there already."
    source = "https://github.com/Azure/Azure-Landing-Zones-Library/tree/main/platform/alz"

    def check(self, site: Site) -> Iterator[Problem]:
        """The breaches, where the demand is made."""
        zone = site.definition.landing_zone
        if zone is not None and getattr(zone, self.key):
            yield from self.check_demand(site, zone)

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        raise NotImplementedError

    def breach(self, site: Site, path: Path, text: str, hint: str | None = None) -> Problem:
        """What is wrong at a key, or at the demand where nobody wrote the key; the text says which demand it is."""
        return self.problem(first_given(site, path, (_ZONE, self.key)), f"{text} ({_ZONE}.{self.key})", hint)

    def public_nodes(self, site: Site) -> Iterator[Problem]:
        slurm = site.definition.slurm
        if slurm is not None and slurm.public_addresses != "none":
            yield self.breach(site, ("slurm", "public_addresses"), "nodes get public addresses")

    def undone(self, site: Site, attribute: str, demanded: Value, text: str) -> Iterator[Problem]:
        """The roles whose own `node_attributes` say something else than what is demanded of all VMs."""
        for node in roles(site):
            key = own_key(node.settings, attribute)
            if key is not None and node.settings.node_attributes[key] != demanded:
                yield self.breach(site, (*node.path, "node_attributes", key), text.format(node.label))


def _has(word: str, allowed: Sequence[str]) -> bool:
    """Azure compares regions, sizes, types and ids without case, and regions without spaces."""
    plain = word.replace(" ", "").casefold()
    return any(plain == each.replace(" ", "").casefold() for each in allowed)


class LocationNotAllowed(_Demand):
    id = "E2511"
    key = "allowed_locations"
    summary = "The region is not one that the landing zone allows."
    fix = "Choose one of landing_zone.allowed_locations, or ask for an exemption."
    source = _BUILT_IN

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        location = site.definition.location
        if not _has(location, zone.allowed_locations):
            text = f"the region {quoted(location)} is not allowed"
            yield self.breach(site, ("location",), text, f"allowed: {', '.join(zone.allowed_locations[:8])}")


class SizeNotAllowed(_Demand):
    id = "E2512"
    key = "allowed_vm_sizes"
    summary = "A VM size is not one that the landing zone allows."
    why = "Azure refuses the VM: the server while the deployment runs, a node when a job already waits for it."
    fix = "Choose one of landing_zone.allowed_vm_sizes, or ask for an exemption."
    source = _BUILT_IN

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        for machine in machines(site):
            if not _has(machine.vm_size, zone.allowed_vm_sizes):
                yield self.breach(site, machine.size_path, f"{machine.vm_size} of {machine.label} is not allowed")


class TagMissing(_Demand):
    id = "E2513"
    key = "required_tags"
    summary = "A tag that the landing zone requires is missing."
    why = "A policy refuses every resource without it, disks and network interfaces of nodes included."
    fix = "Add the tag to `tags`: it reaches resource group, resources and nodes."
    source = _BUILT_IN

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        there = {name.casefold() for name, _ in tags_of(site.definition)}
        for name in zone.required_tags:
            if name.casefold() not in there:
                yield self.breach(site, ("tags",), f"the tag {quoted(name)} is missing")


class PublicAddress(_Demand):
    id = "E2514"
    key = "no_public_ip"
    summary = "The deployment creates a public address, which the landing zone denies."
    fix = (
        "Use `access: hub`, or the Bastion of an existing network, and leave through the hub: `next_hop`, or "
        "`nat_gateway: false` where another route exists."
    )

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        for each in created_types(site.definition):
            if each.type == PUBLIC_ADDRESS:
                yield self.breach(site, each.path, f"{each.title} gets a public address")
        yield from self.public_nodes(site)


class PublicAddressOnVm(_Demand):
    id = "E2515"
    key = "no_public_ip_on_vms"
    summary = "The server gets a public address on its network interface, which the landing zone denies."
    fix = "Use `access: hub` or `access: bastion`."

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        for each in created_types(site.definition):
            if each.type == PUBLIC_ADDRESS and each.purpose is Purpose.PUBLIC_SERVER:
                yield self.breach(site, each.path, "the server gets a public address on its network interface")
        yield from self.public_nodes(site)


class TypeDenied(_Demand):
    id = "E2516"
    key = "denied_resource_types"
    summary = "The deployment creates a type of resource that the landing zone denies."
    fix = "Use what exists in place of it (`existing`, an id), or ask for an exemption."
    source = _BUILT_IN

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        for each in created_types(site.definition):
            if _has(each.type, zone.denied_resource_types):
                yield self.breach(site, each.path, f"{each.title} is a {each.type}, which is denied")


class StorageSkuNotAllowed(_Demand):
    id = "E2517"
    key = "allowed_storage_skus"
    summary = "The redundancy of a storage account is not one that the landing zone allows."
    fix = "Choose one of landing_zone.allowed_storage_skus for its redundancy."
    source = _BUILT_IN

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        for path, what, sku in accounts(site):
            if not _has(sku, zone.allowed_storage_skus):
                best = f"redundancy: {zone.allowed_storage_skus[0]}"
                hint = f"storage: {{locker: {{{best}}}}}" if path[1] == "locker" else best
                yield self.breach(site, path, f"{what} would be {sku}", hint)


class NetworkNotAllowed(_Demand):
    id = "E2518"
    key = "allowed_networks"
    summary = "VMs would be in a network that the landing zone does not allow."
    fix = "Name one of landing_zone.allowed_networks in network.existing."
    source = _BUILT_IN

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        existing = site.definition.network.existing
        if existing is None:
            text = "VMs would be in a new network, which no list can name yet"
            yield self.breach(site, ("network",), text, "network: {existing: {vnet_id: …}}")
        elif not _has(existing.vnet_id, zone.allowed_networks):
            yield self.breach(site, ("network", "existing", "vnet_id"), "VMs would be in a network that is not allowed")


class PeeringAcrossSubscriptions(_Demand):
    id = "E2519"
    key = "no_peering_across_subscriptions"
    summary = "The network would be peered with one of another subscription, which the landing zone denies."
    fix = "Use a hub in the deployment's subscription, or the landing zone that may be peered."

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        network, own = site.definition.network, site.definition.azure.subscription_id
        if network.existing is not None or network.hub is None or not isinstance(network.hub.vnet_id, str):
            return
        path: Path = ("network", "hub", "vnet_id")
        found = re.match(rf"/subscriptions/({GUID})/", network.hub.vnet_id)
        if own is None:
            text = "it is unknown whether the hub is in another subscription"
            yield self.breach(site, path, text, "write azure.subscription_id")
        elif found is not None and found[1].casefold() != own.casefold():
            yield self.breach(site, path, f"the hub is in the subscription {found[1]}, the deployment in {own}")


class NewDnsZone(_Demand):
    id = "E2520"
    key = "no_new_dns_zones"
    summary = "The deployment creates a privatelink zone, which the landing zone denies."
    why = "Zones for private endpoints are central there, and a policy refuses a second one, or reports it."
    fix = "Write the id of the central zone, or `none` where a policy registers the endpoint."

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        definition = site.definition
        if definition.server.existing is None and definition.network.blob_dns_zone == "new":
            yield self.breach(
                site,
                ("network", "blob_dns_zone"),
                "the zone of the locker's endpoint is new",
                "network: {blob_dns_zone: none}, or the id of the central zone",
            )


class DnsByPolicy(_Demand):
    id = "E2521"
    key = "dns_by_policy"
    summary = "The deployment registers its private endpoint, which a policy of the landing zone does."
    why = "Two registrations of one endpoint change each other, and the name may lead to a zone that nobody resolves."
    fix = "Write `blob_dns_zone: none`: the first boot waits until the policy has registered the name."
    source = "https://learn.microsoft.com/azure/cloud-adoption-framework/ready/azure-best-practices/private-link-and-dns-integration-at-scale"

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        definition = site.definition
        if definition.server.existing is None and definition.network.blob_dns_zone != "none":
            path: Path = ("network", "blob_dns_zone")
            yield self.breach(
                site, path, "the deployment would register the locker's endpoint", "network: {blob_dns_zone: none}"
            )


class NoRouteTable(_Demand):
    id = "E2522"
    key = "subnets_need_route_table"
    summary = "Subnets have no route table, which the landing zone demands."
    fix = "Write network.next_hop, the address of the firewall, or network.route_table, the id of a table."

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        if site.definition.network.existing is None and route_plan(site.definition) is None:
            yield self.breach(
                site,
                ("network",),
                "the subnets have no route table",
                "network: {next_hop: 10.0.1.4}, with the address of your firewall",
            )


class HostEncryptionMissing(_Demand):
    id = "E2523"
    key = "encryption_at_host"
    summary = "VMs are without encryption at host, which the landing zone demands."
    why = "Azure refuses the VM: the server while the deployment runs, a node when a job already waits for it."
    fix = "Write `security: {encryption_at_host: true}`; the subscription needs the feature."

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        if not site.definition.security.encryption_at_host:
            path: Path = ("security", "encryption_at_host")
            yield self.breach(
                site, path, "the hosts of server and nodes would not encrypt", "security: {encryption_at_host: true}"
            )
        yield from self.undone(site, "EncryptionAtHost", True, "the hosts of {} would not encrypt")


class OwnKeyMissing(_Demand):
    id = "E2524"
    key = "customer_managed_keys"
    summary = "Disks are encrypted with keys of the platform; the landing zone demands your own."
    why = "Azure refuses the VM: the server while the deployment runs, a node when a job already waits for it."
    fix = "Write the id of a disk encryption set in security.disk_encryption_set_id."

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        if site.definition.security.disk_encryption_set_id is None:
            path: Path = ("security", "disk_encryption_set_id")
            yield self.breach(site, path, "disks of server and nodes would have keys of the platform")


class InfrastructureEncryptionMissing(_Demand):
    id = "E2525"
    key = "infrastructure_encryption"
    summary = "The locker's account encrypts once; the landing zone demands it twice."
    why = "A policy refuses the account, and an account that exists cannot be changed."
    fix = "Write `security: {infrastructure_encryption: true}`."

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        if site.definition.server.existing is None and not site.definition.security.infrastructure_encryption:
            path: Path = ("security", "infrastructure_encryption")
            yield self.breach(
                site, path, "the locker's account would encrypt once", "security: {infrastructure_encryption: true}"
            )


class TrustedLaunchMissing(_Demand):
    id = "E2526"
    key = "trusted_launch"
    summary = "VMs are without Trusted Launch, which the landing zone demands."
    why = "Azure refuses the VM, or a report lists it; the CycleCloud image does not say that it supports it."
    fix = (
        "Write `security: {trusted_launch: true}` for the nodes; for the server ask for an exemption, or use one that "
        "exists."
    )
    source = "https://learn.microsoft.com/azure/virtual-machines/trusted-launch"

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        definition = site.definition
        if definition.server.existing is None:
            yield self.breach(site, ("server",), "the server would not have Trusted Launch")
        if definition.slurm is not None and not definition.security.trusted_launch:
            path: Path = ("security", "trusted_launch")
            yield self.breach(site, path, "the nodes would not have Trusted Launch", "security: {trusted_launch: true}")
        yield from self.undone(site, "SecurityType", "TrustedLaunch", "{} would not have Trusted Launch")


class DiagnosticsMissing(_Demand):
    id = "E2527"
    key = "diagnostics"
    summary = "Logs go nowhere; the landing zone demands diagnostic settings."
    fix = "Write the id of the Log Analytics workspace in security.diagnostics_workspace_id."
    source = "https://learn.microsoft.com/azure/azure-monitor/platform/diagnostic-settings"

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        if site.definition.security.diagnostics_workspace_id is None:
            yield self.breach(site, ("security", "diagnostics_workspace_id"), "no workspace gets the logs")


class MarketplacePlan(_Demand):
    id = "E2528"
    key = "no_marketplace_plans"
    summary = "An image has a plan of the marketplace, which the landing zone denies."
    why = "Nobody can accept its terms where purchases are blocked, and Azure refuses the VM without them."
    fix = "Use an image of your own gallery (server.image_id, image), or ask for the offer to be admitted."
    source = "https://learn.microsoft.com/marketplace/create-manage-private-azure-marketplace-new"

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        server = site.definition.server
        if server.existing is None and server.image_id is None:
            yield self.breach(
                site, ("server", "image_id"), "the CycleCloud server is made from a marketplace image with a plan"
            )
        for node in roles(site):
            if isinstance(image_plan(node.image), ImagePlan):
                yield self.breach(site, node.image_path, f"the image {quoted(node.image)} of {node.label} has a plan")


class ForeignImage(_Demand):
    id = "E2529"
    key = "only_own_images"
    summary = "An image is not from a gallery of your own, which the landing zone demands."
    why = "Azure refuses the VM: the server while the deployment runs, a node when a job already waits for it."
    fix = "Write the resource id of an image: server.image_id, slurm.image."
    source = _BUILT_IN

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        server = site.definition.server
        if server.existing is None and server.image_id is None:
            yield self.breach(site, ("server", "image_id"), "the CycleCloud server is made from a marketplace image")
        if server.jumpbox is not None:
            yield self.breach(site, ("server", "jumpbox"), "the jumpbox is made from a marketplace image")
        for node in roles(site):
            if not node.image.startswith("/"):
                yield self.breach(
                    site, node.image_path, f"the image {quoted(node.image)} of {node.label} is not your own"
                )


class NewResourceGroup(_Demand):
    id = "E2530"
    key = "existing_resource_group"
    summary = "The deployment creates a resource group, which the landing zone leaves to the platform team."
    why = "Whoever has no right to create groups is refused at the first resource."
    fix = "Ask for a group, and write `azure: {resource_group: {existing: NAME}}`."
    source = "https://learn.microsoft.com/azure/cloud-adoption-framework/ready/landing-zone/"

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        if creates_resource_group(site.definition):
            path: Path = ("azure", "resource_group")
            yield self.breach(
                site, path, "the resource group would be new", "azure: {resource_group: {existing: NAME}}"
            )


class RoleAssignment(_Demand):
    id = "E2531"
    key = "no_role_assignments"
    summary = "The deployment assigns roles, which the landing zone denies."
    fix = (
        "Ask for an exemption for these roles; or use an existing server, whose roles the README "
        "lets their owner assign (leave principal_id out, `assign_locker_role: false`)."
    )
    source = "https://learn.microsoft.com/azure/role-based-access-control/delegate-role-assignments-overview"

    def check_demand(self, site: Site, zone: LandingZone) -> Iterator[Problem]:
        for each in created_types(site.definition):
            if each.type == ROLE:
                yield self.breach(site, each.path, f"the deployment assigns {each.title}")
