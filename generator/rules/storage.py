"""File systems: what concerns any kind, NFS, containers, Managed Lustre, and the redundancy of storage accounts."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import catalog
from ..definition.model.storage import BlobMount
from ..plan.file_systems.blob_container import BlobContainer
from ..plan.file_systems.builtin_nfs import BuiltinNfs
from ..plan.file_systems.existing_server import ExistingServer
from ..plan.file_systems.managed_lustre import ManagedLustre
from ..plan.file_systems.registry import of_kind, wanted_by
from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site, first_given, given, partitions, quoted
from .network import host_fault
from .roles import image_users, partition_label
from .vm_images import image_facts

_OPTIONS = re.compile(r"[\w.:/@%+=-]+(?:,[\w.:/@%+=-]+)*", re.ASCII)


class LustreClient(DefinitionRule):
    id = "E0611"
    summary = "There is no Lustre client for the image of a role."
    why = (
        "Every node mounts every file system; Microsoft builds the client for Ubuntu, EL 8 and 9 and Azure Linux, "
        "for arm64 only on Ubuntu 24.04."
    )
    fix = "Choose another image, or another file system."
    source = "https://learn.microsoft.com/azure/azure-managed-lustre/client-install-plan"

    def check(self, site: Site) -> Iterator[Problem]:
        mounts = (each.file_system for each in wanted_by(site.definition))
        lustre = [mount.path for mount in mounts if mount.protocol == "lustre"]
        if not lustre:
            return
        for node in image_users(site):
            facts = image_facts(node.image)
            figures = catalog.rule_figures().lustre
            is_arm = site.vm_size(node.vm_size).arch == "aarch64"
            if facts is not None and facts.os not in (figures.client_os_arm64 if is_arm else figures.client_os):
                text = (
                    f"{node.label}: no Lustre client exists for the image {quoted(node.image)}, and "
                    f"{quoted(lustre[0])} is Lustre"
                )
                yield self.problem(node.image_path, text)


class OtherZone(DefinitionRule):
    id = "I0612"
    summary = "A partition and a file system are in different zones."
    why = "Every access crosses zones, which costs latency and, for some services, transfer."
    fix = "Put both into one zone where capacity allows it."
    source = "https://learn.microsoft.com/azure/reliability/availability-zones-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        zoned = [(each.file_system.path, each.zone) for each in wanted_by(site.definition) if each.zone]
        for path, partition in partitions(site):
            other = next(((point, zone) for point, zone in zoned if partition.zone and zone != partition.zone), None)
            if other:
                text = (
                    f"{partition_label(partition)} is in zone {partition.zone}, the file system {quoted(other[0])} in "
                    f"zone {other[1]}"
                )
                yield self.problem((*path, "zone"), text)


class MountOptions(DefinitionRule):
    id = "E0614"
    summary = "Mount options are not a list of options joined by commas."
    why = "They go into one field of /etc/fstab, which a space or line break ends."
    fix = "Write option,option=value without spaces."
    source = "https://man7.org/linux/man-pages/man5/fstab.5.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for asked in wanted_by(site.definition):
            options, point = asked.own_mount_options, asked.file_system.path
            if options is not None and not (len(options) <= 1024 and _OPTIONS.fullmatch(options)):
                text = (
                    f"file system {quoted(point)}: the mount options {quoted(options)} are not a list joined by commas"
                )
                yield self.problem(
                    (*asked.definition_path, "mount_options"), text, "for example rw,hard,vers=3,tcp,_netdev"
                )


class BuiltinSize(DefinitionRule):
    id = "E0603"
    summary = "A built-in NFS disk has a size that the cluster template refuses."
    why = "The template accepts 10 to 10240 GB, and the size cannot be changed after the first start."
    fix = "Choose 10 to 10240 GB, or NetApp Files for more."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/templates/slurm.txt"

    def check(self, site: Site) -> Iterator[Problem]:
        rule = catalog.file_systems().nfs.template
        for asked, disk in of_kind(site.definition, BuiltinNfs):
            if not rule.min_gb <= disk.size_gib <= rule.max_gb:
                text = (
                    f"the built-in NFS disk of {disk.path} has {rule.min_gb} to {rule.max_gb} GB, not "
                    f"{disk.size_gib} GB"
                )
                yield self.problem((*asked.definition_path, "size_gb"), text)


class BusyBuiltinNfs(DefinitionRule):
    id = "I0609"
    summary = "Many nodes share home directories on one disk of the scheduler."
    why = "The scheduler's network card and disk serve all of them, beside slurmctld itself."
    fix = "Use NetApp Files for storage.home, or keep data and containers on another mount."
    source = "https://learn.microsoft.com/azure/cyclecloud/slurm-4"

    def check(self, site: Site) -> Iterator[Problem]:
        total = sum(partition.most_nodes for _, partition in partitions(site))
        many = catalog.rule_figures().builtin_nfs_nodes.value
        home = [disk for _, disk in of_kind(site.definition, BuiltinNfs) if disk.name == "home"]
        if home and total > many:
            text = f"/shared is one disk of the scheduler, and up to {total} nodes use it"
            yield self.problem(("storage", "home"), text, "home: {type: anf, size_tib: 4}", on_key=True)


_EXPORT = re.compile(r"/|(?:/[\w.@%+=~-]+)+/?", re.ASCII)


class ServerAddress(DefinitionRule):
    id = "E0613"
    summary = "The address of a file server is not a host name or IPv4 address."
    why = "It goes into the mount command unchanged; the exported path is a key of its own."
    fix = "Write the host alone, and the path in export_path."
    source = "https://man7.org/linux/man-pages/man5/nfs.5.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for asked, server in of_kind(site.definition, ExistingServer):
            fault = host_fault(server.address)
            if fault:
                text = f"file system {quoted(server.path)}: the address {quoted(server.address)} {fault}"
                yield self.problem((*asked.definition_path, "address"), text)


class ExportPath(DefinitionRule):
    id = "E0615"
    summary = "An exported path is not an absolute path."
    why = "NFS and Lustre clients mount absolute paths without spaces."
    fix = "Write the path from the server's root, for example /export/home."
    source = "https://man7.org/linux/man-pages/man5/exports.5.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for asked, server in of_kind(site.definition, ExistingServer):
            path = asked.section.export_path
            if not (len(path) <= 1024 and _EXPORT.fullmatch(path)):
                text = (
                    f"file system {quoted(server.path)}: the exported path {quoted(path)} is not an absolute "
                    "path without spaces"
                )
                yield self.problem((*asked.definition_path, "export_path"), text)


_OF_ACCOUNT = ("create", "private_endpoint", "redundancy")
_ONLY_CREATED = ("private_endpoint", "redundancy")


class ContainersOfOneAccount(DefinitionRule):
    id = "E0628"
    summary = "What is said of the storage account of a blob container contradicts something else."
    why = (
        "All containers of a created account share its endpoint and its redundancy; an account of someone else has its "
        "own, and the locker's holds projects alone."
    )
    fix = "Say the same in all mounts of an account, or choose another account."
    source = "https://learn.microsoft.com/azure/storage/common/storage-account-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        first: dict[str, BlobMount] = {}
        locker = site.definition.storage.locker.account_name
        for wanted, mount in of_kind(site.definition, BlobContainer):
            section, path = wanted.section, wanted.definition_path
            other = first.setdefault(mount.storage_account, section)
            differing = next((key for key in _OF_ACCOUNT if getattr(other, key) != getattr(section, key)), None)
            if differing is not None:
                text = (
                    f"the mounts {quoted(other.path)} and {quoted(section.path)} of the storage account "
                    f"{quoted(mount.storage_account)} differ in {differing}"
                )
                yield self.problem(first_given(site, (*path, differing), path), text)
            elif not section.create:
                yield from self._without_effect(site, path, section)
            elif mount.storage_account == locker:
                text = f"the storage account {quoted(mount.storage_account)} of {quoted(mount.path)} is the locker's"
                yield self.problem((*path, "storage_account"), text)

    def _without_effect(self, site: Site, path: Path, section: BlobMount) -> Iterator[Problem]:
        for key in _ONLY_CREATED:
            if given(site, (*path, key)):
                text = f"{key} of {quoted(section.path)} is for an account that the deployment creates"
                yield self.problem((*path, key), text, "create: true", on_key=True)


class ContainerWithoutName(DefinitionRule):
    id = "E0629"
    summary = "Nobody registers the name of the endpoint of a created blob container."
    why = (
        "With an existing server the deployment makes no DNS zone, because the network may have one already. Without a "
        "name the nodes use the public address of the account, which is shut."
    )
    fix = "Name the zone in network.blob_dns_zone, or none where a policy registers the endpoint."
    source = "https://learn.microsoft.com/azure/private-link/private-endpoint-dns"

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.definition.network
        if site.definition.server.existing is None or network.blob_dns_zone != "new":
            return
        for wanted, mount in of_kind(site.definition, BlobContainer):
            if mount.endpoints:
                text = f"the endpoint of the container of {quoted(mount.path)} gets no name"
                yield self.problem(wanted.definition_path, text, "network: {blob_dns_zone: …}")


_LUSTRE = "https://learn.microsoft.com/azure/azure-managed-lustre/amlfs-prerequisites"
_SUBNET: Path = ("network", "subnets", ManagedLustre.subnet.role)


class LustreSize(DefinitionRule):
    id = "E0601"
    summary = "Managed Lustre is not available in this size."
    why = "The capacity of a tier is a multiple of its step, between a minimum and a maximum."
    fix = "Choose a size that the hint names."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        for asked, lustre in of_kind(site.definition, ManagedLustre):
            tier = catalog.file_systems().amlfs.tiers[lustre.sku]
            step, least, most, size = tier.step_tib, tier.min_tib, tier.max_tib, lustre.size_tib
            if least <= size <= most and size % step == 0:
                continue
            lower = min(max(size // step * step, least), most)
            upper = min(max(-(-size // step) * step, least), most)
            text = (
                f"mount {quoted(lustre.path)}: tier {lustre.tier_mb_per_s_per_tib} has {least} to {most} TiB in steps "
                f"of {step} TiB, not {size} TiB"
            )
            hint = f"size_tib: {upper}" if lower == upper else f"size_tib: {lower} or {upper}"
            yield self.problem((*asked.definition_path, "size_tib"), text, hint)


class SecondLustre(DefinitionRule):
    id = "E0608"
    summary = "More than one new Managed Lustre file system is asked for."
    why = "Each needs a subnet of its own; a deployment has one."
    fix = "Create one larger file system, or mount the second one as existing."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        found = [(asked.definition_path, lustre.path) for asked, lustre in of_kind(site.definition, ManagedLustre)]
        for path, point in found[1:]:
            text = f"mount {quoted(point)} is a second new Managed Lustre file system; only one is possible"
            yield self.second((*path, "type"), text, (*found[0][0], "type"))


class LargeLustre(DefinitionRule):
    id = "W0616"
    summary = "Managed Lustre of this size needs a feature of the subscription."
    why = "More than 128 TiB are refused until the subscription has the feature Large Cluster."
    fix = "Ask Azure support for the feature, then silence this rule with the reason."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        most = catalog.rule_figures().lustre.large_tib
        for asked, lustre in of_kind(site.definition, ManagedLustre):
            if lustre.size_tib > most:
                text = (
                    f"mount {quoted(lustre.path)}: {lustre.size_tib} TiB need the subscription feature Large Cluster; "
                    f"up to {most} TiB do not"
                )
                yield self.problem((*asked.definition_path, "size_tib"), text)


def _capacity_tib(site: Site) -> int:
    """Capacity of the new Managed Lustre file systems together."""
    return sum(lustre.size_tib for _, lustre in of_kind(site.definition, ManagedLustre))


class LustreSubnetTooSmall(DefinitionRule):
    id = "E0309"
    summary = "The Lustre subnet is too small for the capacity."
    why = "Managed Lustre takes addresses in proportion to its capacity and cannot move to another subnet later."
    fix = "Leave the subnet out and let CycleForge plan it, or choose the prefix that the message names."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.layout.subnets.get(ManagedLustre.subnet.role) if site.layout else None
        size = _capacity_tib(site)
        rows = catalog.file_systems().amlfs_subnet_prefix.rows
        row = next((row for row in rows if size <= row.max_tib), None)
        if network is None or row is None or not given(site, _SUBNET):
            return
        if ManagedLustre.subnet.longest_prefix >= network.prefixlen > row.prefix:
            text = f"the lustre subnet {network} is too small for {size} TiB, which need /{row.prefix}"
            yield self.problem(_SUBNET, text)


class LustreSubnetUnknown(DefinitionRule):
    id = "W0310"
    summary = "It is not published how large the Lustre subnet must be for this capacity."
    why = "Microsoft's table ends at 400 TiB; the subnet cannot be changed later."
    fix = (
        "Ask the service for the size (az amlfs get-subnets-size), give network.subnets.lustre, and silence this rule."
    )
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        size = _capacity_tib(site)
        last = catalog.file_systems().amlfs_subnet_prefix.rows[-1].max_tib
        if size > last:
            asked, _ = next(of_kind(site.definition, ManagedLustre))
            text = f"no figure is published for the subnet of {size} TiB Managed Lustre; the table ends at {last} TiB"
            yield self.problem((*asked.definition_path, "size_tib"), text)


_PATH: Path = ("storage", "locker", "redundancy")
_SOURCE = "https://learn.microsoft.com/azure/storage/common/storage-redundancy"


def accounts(site: Site) -> Iterator[tuple[Path, str, str]]:
    """(place of the redundancy, what it is of, redundancy) of every storage account that the deployment creates."""
    if site.definition.server.existing is None:
        yield _PATH, "the locker's account", site.definition.storage.locker.redundancy
    seen = set()
    for wanted in wanted_by(site.definition):
        for name, redundancy in wanted.file_system.created_accounts:
            if name not in seen:
                seen.add(name)
                yield (*wanted.definition_path, "redundancy"), f"the account {quoted(name)}", redundancy


def _needs(redundancy: str) -> Iterator[tuple[str, str]]:
    """(fact of the region, what it is called) that a redundancy needs: GZRS needs both."""
    if redundancy.endswith("ZRS"):
        yield "zones", "availability zones"
    if redundancy.rpartition("_")[2] in ("GRS", "RAGRS", "GZRS", "RAGZRS"):
        yield "pair", "a paired region"


def _looked_up(site: Site, *, known: bool | None) -> Iterator[tuple[Path, str, str]]:
    """(place, redundancy, what it needs) where the catalogue says `known` of that in the region."""
    row = catalog.regions().regions.get(site.definition.location)
    for path, _, redundancy in accounts(site):
        yield from ((path, redundancy, what) for fact, what in _needs(redundancy) if getattr(row, fact, None) is known)


class RedundancyNotThere(DefinitionRule):
    id = "E0624"
    summary = "The region does not have what the redundancy of a storage account needs."
    why = "Azure refuses zone-redundant storage in a region without zones, geo-redundant storage in one without a pair."
    fix = "Choose Standard_LRS, another redundancy, or another region; a locker's content can be uploaded again."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        for path, redundancy, what in _looked_up(site, known=False):
            text = f"the region {quoted(site.definition.location)} does not have {what}, which {redundancy} needs"
            yield self.problem(path, text, "redundancy: Standard_LRS")


class RedundancyNotKnown(DefinitionRule):
    id = "I0625"
    summary = "It is not known whether the region has what the redundancy of a storage account needs."
    why = "Microsoft's lists say nothing about it; Azure refuses the storage account if the region lacks it."
    fix = "Look the region up, or choose Standard_LRS."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        for path, redundancy, what in _looked_up(site, known=None):
            region = quoted(site.definition.location)
            yield self.problem(path, f"whether the region {region} has {what}, which {redundancy} needs, is not known")
