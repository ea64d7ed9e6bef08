"""Whether VM sizes, images and keys fit the hardening that the definition asks for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import catalog
from ..definition.model.slurm import NodeProjects
from ..plan.file_systems.registry import wanted_by
from ..plan.vm_attributes import effective, own_key
from ..problems.problem import Problem
from .azure_names import GUID, ID_FORM
from .base import DefinitionRule, Path, Site
from .roles import RoleNode, known_sizes, machines, role_sizes, roles

_HOST_ENCRYPTION = "https://learn.microsoft.com/azure/virtual-machines/disk-encryption"
_SECURE_BOOT: Path = ("security", "secure_boot")


class NoTrustedLaunch(DefinitionRule):
    id = "E2501"
    summary = "The VM size of a role does not support Trusted Launch."
    why = "Azure refuses every VM of the role, and jobs wait for nodes that never come."
    fix = "Remove security.trusted_launch, or choose a size that supports it."
    source = "https://learn.microsoft.com/azure/virtual-machines/trusted-launch#virtual-machines-sizes"

    def check(self, site: Site) -> Iterator[Problem]:
        without = re.compile("|".join(catalog.rule_figures().trusted_launch.sizes_without), re.IGNORECASE)
        for node in role_sizes(site):
            asked = effective(site.definition.security, node.settings, "SecurityType") == "TrustedLaunch"
            if asked and without.fullmatch(node.vm_size):
                who = "security" if site.definition.security.trusted_launch else "node_attributes"
                text = f"{node.vm_size} of {node.label} does not support Trusted Launch, which {who} asks for"
                yield self.problem(node.size_path, text)


class NoHostEncryption(DefinitionRule):
    id = "E2502"
    summary = "A VM size does not support encryption at host."
    why = "Azure refuses every VM of that size when encryption at host is asked for."
    fix = "Choose another size, or remove security.encryption_at_host."
    source = _HOST_ENCRYPTION

    def check(self, site: Site) -> Iterator[Problem]:
        security = site.definition.security
        for machine in machines(site):
            settings = machine.settings if isinstance(machine, RoleNode) else NodeProjects()
            if not effective(security, settings, "EncryptionAtHost"):
                continue
            if site.vm_size(machine.vm_size).encryption_at_host is False:
                text = f"{machine.vm_size} of {machine.label} does not support encryption at host, says custom_vm_sizes"
                yield self.problem(machine.size_path, text)


class SecureBootAndDrivers(DefinitionRule):
    id = "E2503"
    summary = "Secure Boot is asked for where nodes need drivers that it does not load."
    why = (
        "The drivers of GPUs, InfiniBand and Lustre are built on the image or on the node and are not signed, so they "
        "do not load under Secure Boot, and nodes start without them."
    )
    fix = "Remove security.secure_boot: a virtual TPM without Secure Boot is what these nodes can have."
    source = "https://github.com/Azure/azhpc-images/issues/298"

    def check(self, site: Site) -> Iterator[Problem]:
        asked, reported = site.definition.security.secure_boot, False
        for node in roles(site):
            sizes, own = known_sizes(site, node), own_key(node.settings, "EnableSecureBoot")
            on = asked if own is None else node.settings.node_attributes[own] is True
            if not on or not any(size.gpu_count or size.infiniband for size in sizes) or (own is None and reported):
                continue
            what = "GPUs" if any(size.gpu_count for size in sizes) else "InfiniBand"
            text = f"{node.label} has {what}, whose drivers do not load under Secure Boot"
            yield self.problem(_SECURE_BOOT if own is None else (*node.path, "node_attributes", own), text)
            reported = reported or own is None
        if any(each.file_system.protocol == "lustre" for each in wanted_by(site.definition)):
            yield from self._with_lustre(site, is_reported=reported)

    def _with_lustre(self, site: Site, *, is_reported: bool) -> Iterator[Problem]:
        text = "mount Lustre, whose client does not load under Secure Boot"
        if site.definition.security.secure_boot and not is_reported:
            yield self.problem(_SECURE_BOOT, f"the nodes {text}")
        for node in roles(site):
            own = own_key(node.settings, "EnableSecureBoot")
            has_drivers = any(size.gpu_count or size.infiniband for size in known_sizes(site, node))
            if own is not None and node.settings.node_attributes[own] is True and not has_drivers:
                yield self.problem((*node.path, "node_attributes", own), f"{node.label}: the nodes {text}")


class SecureBootAlone(DefinitionRule):
    id = "E2504"
    summary = "Secure Boot is asked for without Trusted Launch."
    why = "CycleCloud ignores it for VMs of the usual security type, and Secure Boot would be off without a word."
    fix = "Add security.trusted_launch, or remove security.secure_boot."
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/vm-security"

    def check(self, site: Site) -> Iterator[Problem]:
        security = site.definition.security
        if security.secure_boot and not security.trusted_launch:
            yield self.problem(_SECURE_BOOT, "secure_boot needs trusted_launch", "trusted_launch: true")


class KeyOfAnotherSubscription(DefinitionRule):
    id = "E2505"
    summary = "The disk encryption set belongs to another subscription."
    why = "Azure takes a set only for disks and VMs of its own subscription and region."
    fix = "Name a disk encryption set of the deployment's subscription; its key vault may be in another one."
    source = "https://learn.microsoft.com/azure/virtual-machines/disk-encryption#customer-managed-key-restrictions"

    def check(self, site: Site) -> Iterator[Problem]:
        own, given = site.definition.azure.subscription_id, site.definition.security.disk_encryption_set_id
        found = re.match(rf"/subscriptions/({GUID})/", given or "")
        if own is not None and found is not None and found[1].lower() != own.lower():
            text = f"the disk encryption set is in the subscription {found[1]}, the deployment in {own}"
            yield self.problem(("security", "disk_encryption_set_id"), text, ID_FORM)
