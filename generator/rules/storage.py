"""File systems: sizes, steps, addresses, zones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from .. import catalog
from ..definition.model.storage import BuiltinNfs, Existing, LustreMount, NetApp
from ..problems.problem import Problem, Related
from .base import DefinitionRule, Path, Site
from .figures import figures
from .images import image_facts
from .network import host_fault
from .places import partitions
from .roles import RoleNode, image_users, partition_label
from .wording import quoted

_LUSTRE = "https://learn.microsoft.com/azure/azure-managed-lustre/amlfs-prerequisites"


def file_systems(site: Site) -> Iterator[tuple[Path, str, Any]]:
    """Every file system: its path in the definition, its mount point, its section."""
    storage = site.definition.storage
    yield ("storage", "sched"), "/sched", storage.sched
    yield ("storage", "home"), "/shared", storage.home
    for index, mount in enumerate(storage.mounts):
        yield ("storage", "mounts", index), mount.path, mount


class LustreSize(DefinitionRule):
    id = "E0601"
    summary = "Managed Lustre does not come in this size."
    why = "The capacity of a tier is a multiple of its step, between a minimum and a maximum."
    fix = "Choose a size that the hint names."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        for path, point, each in file_systems(site):
            if not isinstance(each, LustreMount):
                continue
            tier = catalog.file_systems()["amlfs"]["tiers"][f"AMLFS-Durable-Premium-{each.tier}"]
            step, least, most, size = tier["step_tib"], tier["min_tib"], tier["max_tib"], each.size_tib
            if least <= size <= most and size % step == 0:
                continue
            lower = min(max(size // step * step, least), most)
            upper = min(max(-(-size // step) * step, least), most)
            text = (
                f"mount {quoted(point)}: tier {each.tier} has {least} to {most} TiB in steps of {step} TiB, not "
                f"{size} TiB"
            )
            yield self.problem(
                (*path, "size_tib"), text, f"size_tib: {upper}" if lower == upper else f"size_tib: {lower} or {upper}"
            )


class NetAppSize(DefinitionRule):
    id = "E0602"
    summary = "A NetApp Files volume does not come in this size."
    why = "A regular volume has at most 100 TiB."
    fix = "Choose a smaller size, several volumes, or Managed Lustre."
    source = "https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-resource-limits"

    def check(self, site: Site) -> Iterator[Problem]:
        most = catalog.file_systems()["netapp"]["volume"]["max_gib"] // 1024
        for path, point, each in file_systems(site):
            if isinstance(each, NetApp) and each.size_tib > most:
                yield self.problem(
                    (*path, "size_tib"),
                    f"the NetApp Files volume {quoted(point)} may have {most} TiB at most, not {each.size_tib} TiB",
                )


class BuiltinSize(DefinitionRule):
    id = "E0603"
    summary = "A built-in NFS disk has a size that the cluster template refuses."
    why = "The template accepts 10 to 10240 GB, and the size cannot be changed after the first start."
    fix = "Choose 10 to 10240 GB, or NetApp Files for more."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/templates/slurm.txt"

    def check(self, site: Site) -> Iterator[Problem]:
        rule = catalog.file_systems()["nfs"]["template"]
        for path, point, each in file_systems(site):
            if isinstance(each, BuiltinNfs) and not rule["min_gb"] <= each.size_gb <= rule["max_gb"]:
                text = (
                    f"the built-in NFS disk of {point} has {rule['min_gb']} to {rule['max_gb']} GB, not "
                    f"{each.size_gb} GB"
                )
                yield self.problem((*path, "size_gb"), text)


class SecondLustre(DefinitionRule):
    id = "E0608"
    summary = "More than one new Managed Lustre file system is asked for."
    why = "Each needs a subnet of its own; a deployment has one."
    fix = "Make one larger file system, or mount the second one as existing."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        found = [(path, point) for path, point, each in file_systems(site) if isinstance(each, LustreMount)]
        for path, point in found[1:]:
            problem = self.problem(
                (*path, "type"), f"mount {quoted(point)} is a second new Managed Lustre file system; one is possible"
            )
            yield replace(problem, related=(Related("the first one", (*found[0][0], "type")),))


class BusyBuiltinNfs(DefinitionRule):
    id = "I0609"
    summary = "Many nodes share home directories on one disk of the scheduler."
    why = "The scheduler's network card and disk serve all of them, beside slurmctld itself."
    fix = "Use NetApp Files for storage.home, or keep data and containers on another mount."
    source = "https://learn.microsoft.com/azure/cyclecloud/slurm-4"

    def check(self, site: Site) -> Iterator[Problem]:
        total, many = (
            sum(partition.max_nodes for _, partition in partitions(site)),
            figures()["builtin_nfs_nodes"]["value"],
        )
        if isinstance(site.definition.storage.home, BuiltinNfs) and total > many:
            text = f"/shared is one disk of the scheduler, and up to {total} nodes use it"
            yield self.problem(("storage", "home"), text, "home: {type: anf, size_tib: 4}", on_key=True)


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
        lustre = [point for _, point, each in file_systems(site) if _is_lustre(each)]
        if not lustre:
            return
        for node in image_users(site):
            facts = image_facts(node.image)
            if facts is not None and facts.os not in self._supported(node):
                text = (
                    f"{node.label}: no Lustre client exists for the image {quoted(node.image)}, and "
                    f"{quoted(lustre[0])} is Lustre"
                )
                yield self.problem(node.image_path, text)

    def _supported(self, node: RoleNode) -> tuple[str, ...]:
        arm = catalog.vm_size(node.vm_size).arch == "aarch64"
        return tuple(figures()["lustre"]["client_os_arm64" if arm else "client_os"])


def _is_lustre(each: object) -> bool:
    return isinstance(each, LustreMount) or (isinstance(each, Existing) and each.protocol == "lustre")


class OtherZone(DefinitionRule):
    id = "I0612"
    summary = "A partition and a file system lie in different zones."
    why = "Every access crosses zones, which costs latency and, for some services, transfer."
    fix = "Put both into one zone where capacity allows it."
    source = "https://learn.microsoft.com/azure/reliability/availability-zones-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        zoned = [
            (point, each.zone)
            for _, point, each in file_systems(site)
            if isinstance(each, NetApp | LustreMount) and each.zone
        ]
        for path, partition in partitions(site):
            other = next(((point, zone) for point, zone in zoned if partition.zone and zone != partition.zone), None)
            if other:
                text = (
                    f"{partition_label(partition)} is in zone {partition.zone}, the file system {quoted(other[0])} in "
                    f"zone {other[1]}"
                )
                yield self.problem((*path, "zone"), text)


class ServerAddress(DefinitionRule):
    id = "E0613"
    summary = "The address of a file server is not a host name or IPv4 address."
    why = "It goes into the mount command as it is; the exported path is a key of its own."
    fix = "Write the host alone, and the path in export_path."
    source = "https://man7.org/linux/man-pages/man5/nfs.5.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, point, each in file_systems(site):
            fault = host_fault(each.address) if isinstance(each, Existing) else None
            if fault:
                yield self.problem(
                    (*path, "address"), f"file system {quoted(point)}: the address {quoted(each.address)} {fault}"
                )


_OPTIONS = re.compile(r"[\w.:/@%+=-]+(?:,[\w.:/@%+=-]+)*", re.ASCII)
_EXPORT = re.compile(r"/|(?:/[\w.@%+=~-]+)+/?", re.ASCII)


class MountOptions(DefinitionRule):
    id = "E0614"
    summary = "Mount options are not a list of options joined by commas."
    why = "They go into one field of /etc/fstab, which a blank or line break ends."
    fix = "Write option,option=value without blanks."
    source = "https://man7.org/linux/man-pages/man5/fstab.5.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, point, each in file_systems(site):
            options = getattr(each, "mount_options", None)
            if options is not None and not (len(options) <= 1024 and _OPTIONS.fullmatch(options)):
                text = (
                    f"file system {quoted(point)}: the mount options {quoted(options)} are not a list joined by commas"
                )
                yield self.problem((*path, "mount_options"), text, "for example rw,hard,vers=3,tcp,_netdev")


class ExportPath(DefinitionRule):
    id = "E0615"
    summary = "An exported path is not an absolute path."
    why = "NFS and Lustre clients mount absolute paths without blanks."
    fix = "Write the path from the server's root, for example /export/home."
    source = "https://man7.org/linux/man-pages/man5/exports.5.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, point, each in file_systems(site):
            if isinstance(each, Existing) and not (
                len(each.export_path) <= 1024 and _EXPORT.fullmatch(each.export_path)
            ):
                text = (
                    f"file system {quoted(point)}: the exported path {quoted(each.export_path)} is not an absolute "
                    "path without blanks"
                )
                yield self.problem((*path, "export_path"), text)


class LargeLustre(DefinitionRule):
    id = "W0616"
    summary = "Managed Lustre of this size needs a feature of the subscription."
    why = "More than 128 TiB are refused until the subscription has the feature Large Cluster."
    fix = "Ask Azure support for the feature, then silence this rule with the reason."
    source = _LUSTRE

    def check(self, site: Site) -> Iterator[Problem]:
        most = figures()["lustre"]["large_tib"]
        for path, point, each in file_systems(site):
            if isinstance(each, LustreMount) and each.size_tib > most:
                text = (
                    f"mount {quoted(point)}: {each.size_tib} TiB need the subscription feature Large Cluster; up to "
                    f"{most} TiB do not"
                )
                yield self.problem((*path, "size_tib"), text)
