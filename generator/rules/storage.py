"""What concerns file systems of any kind: the Lustre client, zones, mount options."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..plan.file_systems.registry import wanted_by
from ..problems.problem import Problem
from .base import DefinitionRule, Site
from .figures import figures
from .roles import RoleNode, image_users, partition_label
from .vm_images import image_facts
from .wording import partitions, quoted

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
            if facts is not None and facts.os not in self._supported(site, node):
                text = (
                    f"{node.label}: no Lustre client exists for the image {quoted(node.image)}, and "
                    f"{quoted(lustre[0])} is Lustre"
                )
                yield self.problem(node.image_path, text)

    def _supported(self, site: Site, node: RoleNode) -> tuple[str, ...]:
        arm = site.vm_size(node.vm_size).arch == "aarch64"
        return figures().lustre.client_os_arm64 if arm else figures().lustre.client_os


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
