"""Names and ids that Azure checks: accounts, administrator, reserved words, tags, region, resource ids, SSH key."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from .. import catalog
from ..definition.model.slurm import NewDatabase, Slurm
from ..plan import names
from ..plan.file_systems.registry import wanted_by
from ..plan.resources import resource_names
from ..problems.problem import Problem
from .base import ClusterRule, DefinitionRule, Path, Site, choose_from, meant, quoted, value_at

_NAMES_URL = "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"
ID_FORM = "copy the id from the portal (JSON view) or from `az … show --query id`"


class StorageAccountName(DefinitionRule):
    id = "E0208"
    summary = "A storage account name is not valid in Azure."
    why = "Names of storage accounts are host names, unique in the whole cloud: 3 to 24 characters a-z and 0-9."
    fix = "Use 3 to 24 lower-case letters and digits, nothing else."
    source = _NAMES_URL

    def check(self, site: Site) -> Iterator[Problem]:
        pattern = catalog.limits().names.storage_account.pattern
        for path, name in self._accounts(site):
            if not re.fullmatch(pattern, name):
                text = f"the storage account name {quoted(name)} must be 3 to 24 characters a-z and 0-9"
                plain = re.sub(r"[^a-z0-9]", "", name[:100].lower())[:24]
                yield self.problem(path, text, f"for example '{plain}'" if len(plain) >= 3 else None)

    def _accounts(self, site: Site) -> Iterator[tuple[Path, str]]:
        storage = site.definition.storage
        if storage.locker.account_name is not None:
            yield ("storage", "locker", "account_name"), storage.locker.account_name
        yield from _names_of(site, "storage_account")


def _names_of(site: Site, kind: str) -> Iterator[tuple[Path, str]]:
    """The names of one kind of Azure resource that file systems give, for example `container`."""
    for each in wanted_by(site.definition):
        for key, named in each.file_system.azure_names.items():
            if named == kind:
                yield (*each.definition_path, key), getattr(each.section, key)


class ContainerName(DefinitionRule):
    id = "E0209"
    summary = "A container name is not valid in Azure."
    why = "Containers have 3 to 63 characters a-z, 0-9 and single hyphens between letters or digits."
    fix = "Use 3 to 63 characters a-z and 0-9, with single hyphens between them."
    source = _NAMES_URL

    def check(self, site: Site) -> Iterator[Problem]:
        storage = site.definition.storage
        names: list[tuple[Path, str]] = [(("storage", "locker", "container"), storage.locker.container)]
        existing = site.definition.server.existing
        if existing is not None:
            names.append((("server", "existing", "locker_container"), existing.locker_container))
        names += _names_of(site, "container")
        rule = catalog.limits().names.container
        for path, name in names:
            if not (rule.min <= len(name) <= rule.value and re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", name)):
                text = (
                    f"the container name {quoted(name)} is not {rule.min} to {rule.value} characters a-z, 0-9 "
                    "and single hyphens"
                )
                yield self.problem(path, text)


class AdminName(DefinitionRule):
    id = "E0210"
    summary = "The administrator's name is not valid for CycleCloud or the VMs."
    why = "The same name is a user of the CycleCloud site, of the server VM, of the nodes and of the jumpbox."
    fix = "Use 6 to 20 letters, digits and underscores, beginning with a letter."
    source = "https://github.com/Azure/cyclecloud-slurm-workspace/blob/2026.07.02/uidefinitions/createUiDefinition.json"

    def check(self, site: Site) -> Iterator[Problem]:
        name, rule = site.definition.admin.username, catalog.rule_figures().admin_user_name
        if _is_reserved(name) or site.definition.server.existing is not None:
            return
        if not (rule.min <= len(name) <= rule.max and re.fullmatch(rule.pattern, name)):
            text = (
                f"the administrator's name {quoted(name)} is not {rule.min} to {rule.max} letters, digits and "
                "underscores, beginning with a letter"
            )
            yield self.problem(("admin", "username"), text)


def _is_reserved(name: str) -> bool:
    all_figures = catalog.rule_figures()
    return name.lower() in (
        *all_figures.admin_user_names_refused_by_azure.values,
        *all_figures.admin_user_names_of_services.values,
    )


class AdminNameReserved(DefinitionRule):
    id = "E0211"
    summary = "The administrator's name is reserved."
    why = "Azure refuses common names such as admin and root; others belong to services on the server and the nodes."
    fix = "Choose another name, for example ccadmin."
    source = "https://learn.microsoft.com/javascript/api/@azure/arm-compute/osprofile"

    def check(self, site: Site) -> Iterator[Problem]:
        name = site.definition.admin.username
        if _is_reserved(name) and site.definition.server.existing is None:
            by_azure = name.lower() in catalog.rule_figures().admin_user_names_refused_by_azure.values
            owner = "Azure refuses it" if by_azure else "a service of the server or the nodes has it"
            yield self.problem(
                ("admin", "username"),
                f"the administrator's name {quoted(name)} is reserved: {owner}",
                "for example 'ccadmin'",
            )


class UnknownRegion(DefinitionRule):
    id = "E0213"
    summary = "The region is not known."
    why = "Azure rejects a misspelt region only after the deployment has begun."
    fix = (
        "Write the region's short name in lower case without spaces; a region that is newer than this list can be "
        "silenced."
    )
    source = "https://learn.microsoft.com/azure/reliability/regions-list"

    def check(self, site: Site) -> Iterator[Problem]:
        name, known = site.definition.location, catalog.regions().regions
        if name in known:
            return
        plain = re.sub(r"[\s_-]", "", name[:80].lower())
        hint = f"did you mean '{plain}'?" if plain in known else meant(name, tuple(known))
        yield self.problem(("location",), f"the region {quoted(name)} is not known", hint)


class RegionOfOtherCloud(DefinitionRule):
    id = "E0214"
    summary = "The region belongs to another Azure cloud."
    why = "Each cloud has its own regions, endpoints and sign-in."
    fix = "Set azure.cloud to the region's cloud, or choose a region of this cloud."
    source = "https://learn.microsoft.com/azure/reliability/regions-list"

    def check(self, site: Site) -> Iterator[Problem]:
        row = catalog.regions().regions.get(site.definition.location)
        cloud = site.definition.azure.cloud
        if row is not None and row.cloud != cloud:
            text = (
                f"the region {quoted(site.definition.location)} belongs to the cloud '{row.cloud}', azure.cloud is "
                f"'{cloud}'"
            )
            yield self.problem(("location",), text, f"azure: {{cloud: {row.cloud}}}")


_IDS: tuple[tuple[Path, str, str], ...] = (
    (("server", "image_id"), "Microsoft.Compute", "images"),
    (("server", "existing", "vm_id"), "Microsoft.Compute", "virtualMachines"),
    (("server", "existing", "locker_account_id"), "Microsoft.Storage", "storageAccounts"),
    (("network", "existing", "vnet_id"), "Microsoft.Network", "virtualNetworks"),
    (("network", "hub", "vnet_id"), "Microsoft.Network", "virtualNetworks"),
    (("security", "disk_encryption_set_id"), "Microsoft.Compute", "diskEncryptionSets"),
    (("security", "diagnostics_workspace_id"), "Microsoft.OperationalInsights", "workspaces"),
)
"""Keys that hold the id of a resource of one type; those of `monitoring` are E1401's."""


class ResourceId(DefinitionRule):
    id = "E0215"
    summary = "A resource id is malformed or names another kind of resource."
    why = "Bicep passes the id on unchanged; Azure answers with an error that names no key of this file."
    fix = "Copy the id from the portal (JSON view) or from `az … show --query id`."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/templates/template-functions-resource#resourceid"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, provider, kind in _IDS:
            value = value_at(site, path)
            if isinstance(value, str) and not (kind == "images" and is_gallery_image(value)):
                fault = resource_id_fault(value, provider, kind)
                if fault:
                    yield self.problem(path, f"{path[-1]} {quoted(value)} {fault}", ID_FORM)


def is_gallery_image(text: str) -> bool:
    """Whether the id names an image definition or version of a compute gallery."""
    return re.fullmatch(
        rf"/subscriptions/{GUID}/resourceGroups/[\w.()-]{{1,90}}/providers/Microsoft\.Compute/galleries/[\w.]{{1,80}}"
        r"/images/[\w.-]{1,80}(?:/versions/(?:latest|\d+\.\d+\.\d+))?",
        text,
        re.IGNORECASE | re.ASCII,
    ) is not None  # fmt: skip


class SubscriptionId(DefinitionRule):
    id = "E0218"
    summary = "The subscription id is not a valid id."
    why = "The commands of the README pass it to az."
    fix = "Write the id that `az account show --query id` prints."
    source = "https://learn.microsoft.com/azure/azure-portal/get-subscription-tenant-id"

    def check(self, site: Site) -> Iterator[Problem]:
        value = site.definition.azure.subscription_id
        if value is not None and not re.fullmatch(GUID, value):
            text = f"the subscription {quoted(value)} is not an id like 00000000-0000-0000-0000-000000000000"
            yield self.problem(("azure", "subscription_id"), text, "az account show --query id")


class DatabaseServerName(ClusterRule):
    id = "E0217"
    summary = "The name of the database server is not valid in Azure."
    why = "It is a host name, unique in the whole cloud: 3 to 63 characters a-z, 0-9 and -."
    fix = "Use 3 to 63 characters a-z, 0-9 and -, not beginning or ending with -, or leave the key out."
    source = _NAMES_URL

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        accounting = slurm.accounting
        if not isinstance(accounting, NewDatabase) or accounting.server_name is None:
            return
        name, rule = accounting.server_name, catalog.limits().names.mysql_server
        if not (rule.min <= len(name) <= rule.value and re.fullmatch(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?", name)):
            text = (
                f"the database server name {quoted(name)} is not {rule.min} to {rule.value} characters a-z, 0-9 and -"
            )
            yield self.problem(("slurm", "accounting", "server_name"), text)


class SubnetName(DefinitionRule):
    id = "E0219"
    summary = "The name of an existing subnet is not valid in Azure."
    why = (
        "Azure's subnet names have 1 to 80 letters, digits, underscores, periods and hyphens, beginning with a "
        "letter or digit."
    )
    fix = "Write the subnet's name (not its id or prefix)."
    source = _NAMES_URL

    def check(self, site: Site) -> Iterator[Problem]:
        existing = site.definition.network.existing
        if existing is None:
            return
        longest = catalog.limits().names.subnet.value
        named = {("subnets", role): getattr(existing.subnets, role) for role in existing.subnets.declared_keys}
        more = {("compute_subnets", index): each for index, each in enumerate(existing.compute_subnets)}
        for place, subnet in (named | more).items():
            role = "compute" if place in more else place[1]
            name = "" if subnet is None else subnet.name
            if subnet is not None and not (
                len(name) <= longest and re.fullmatch(r"[A-Za-z0-9](?:[\w.-]*\w)?", name, re.ASCII)
            ):
                yield self.problem(
                    ("network", "existing", *place),
                    f"the {role} subnet cannot have the name {quoted(name)}",
                    "write its name, not its id or prefix",
                )


class SshPublicKey(DefinitionRule):
    id = "E0216"
    summary = "The SSH public key is damaged or of a type that Azure does not accept."
    why = "It is the only way to sign in to the server; Azure accepts RSA keys of 2048 bits or more and ed25519 keys."
    fix = "Paste the whole line of a .pub file; `ssh-keygen -t ed25519` creates one."
    source = "https://learn.microsoft.com/azure/virtual-machines/linux/mac-create-ssh-keys"

    def check(self, site: Site) -> Iterator[Problem]:
        key = site.definition.admin.ssh_public_key
        if not isinstance(key, str) or "PRIVATE KEY" in key:
            return
        fault, hint = ssh_key_fault(key)
        if fault:
            yield self.problem(("admin", "ssh_public_key"), f"the SSH public key {fault}", hint)


_MAKE_KEY = "ssh-keygen -t ed25519"


def ssh_key_fault(key: str) -> tuple[str | None, str | None]:
    """What is wrong with a public key line, and what to do; (None, None) when it is well-formed."""
    rule = catalog.rule_figures().ssh_keys
    if "\n" in key.strip() or "\r" in key.strip():
        return "has more than one line", "paste the line of one .pub file"
    parts = key.split(maxsplit=2)
    if len(parts) < 2:
        return "is not of the form '<type> <base64> [comment]'", _MAKE_KEY
    kind, encoded = parts[0], parts[1]
    if kind not in rule.known_types:
        return f"has the unknown type {quoted(kind)}", choose_from(kind, rule.azure_types)
    if kind not in rule.azure_types:
        return f"is of the type '{kind}', which Azure VMs do not accept", _MAKE_KEY
    try:
        blob = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return "is damaged: its second part is not base64", "paste the whole line of the .pub file"
    fields = _ssh_fields(blob)
    if not fields or fields[0] != kind.encode():
        return f"is damaged: its content is not a key of the type '{kind}'", "paste the whole line of the .pub file"
    if kind == "ssh-ed25519" and (len(fields) != 2 or len(fields[1]) != 32):
        return "is damaged: an ed25519 key holds 32 bytes", "paste the whole line of the .pub file"
    if kind == "ssh-rsa":
        bits = int.from_bytes(fields[2], "big").bit_length() if len(fields) == 3 else 0
        if bits < rule.min_rsa_bits:
            return f"has {bits} bits; Azure accepts RSA keys of {rule.min_rsa_bits} bits or more", _MAKE_KEY
    return None, None


def _ssh_fields(blob: bytes) -> list[bytes]:
    """The length-prefixed fields of a key blob; empty when the lengths do not add up."""
    fields: list[bytes] = []
    at = 0
    while at < len(blob) and len(fields) < 8:
        length = int.from_bytes(blob[at : at + 4], "big")
        if at + 4 + length > len(blob):
            return []
        fields.append(blob[at + 4 : at + 4 + length])
        at += 4 + length
    return fields


class ReservedName(DefinitionRule):
    id = "E0224"
    summary = "A name that becomes global in Azure has a reserved word."
    why = (
        "Storage accounts and database servers have host names, in which Azure refuses 'microsoft' and 'windows' "
        "anywhere, 'login' at the start, and some product names as a whole (ReservedResourceName). Names that "
        "CycleForge makes begin with yours."
    )
    fix = "Choose another name, or give the resource a name of its own."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-reserved-resource-name"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, name, what, key in self._global_names(site):
            word = _reserved_word(name)
            if word is None:
                continue
            if path[-1] == key:
                yield self.problem(path, f"{what} cannot have the name {quoted(name)}: Azure reserves {quoted(word)}")
            else:
                text = f"{what} would get a name that begins with {quoted(name)}: Azure reserves {quoted(word)}"
                yield self.problem(path, text, f"give it a name of its own: {key}")

    def _global_names(self, site: Site) -> Iterator[tuple[Path, str, str, str]]:
        """(where, name or its beginning, whose it is, key that gives it another) of what the deployment creates."""
        definition = site.definition
        prefix = names.prefix(definition)
        stems = resource_names(prefix, definition.name, "", definition.azure.cloud)
        if definition.server.existing is None:
            account = definition.storage.locker.account_name
            path: Path = ("name",) if account is None else ("storage", "locker", "account_name")
            yield path, account or stems.locker_account_stem, "the storage account of the locker", "account_name"
        accounting = definition.slurm.accounting if definition.slurm else None
        if isinstance(accounting, NewDatabase):
            given = ("azure", "prefix") if definition.azure.prefix else ("name",)
            path = given if accounting.server_name is None else ("slurm", "accounting", "server_name")
            yield path, accounting.server_name or stems.database_server_stem, "the database server", "server_name"


def _reserved_word(name: str) -> str | None:
    """The reserved word that makes Azure refuse a name; None where there is none."""
    words, lower = catalog.rule_figures().reserved_resource_names, name.lower()
    inside = next((word for word in words.anywhere if word in lower), None)
    at_start = next((word for word in words.at_the_start if lower.startswith(word)), None)
    return inside or at_start or (lower if lower in words.as_a_whole else None)


GUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"


def resource_id_fault(text: str, provider: str, kind: str) -> str | None:
    """What is wrong with a resource id that should name a `provider/kind`; None when it is well-formed."""
    parts = text.split("/")
    if len(parts) != 9 or parts[0] or parts[1].lower() != "subscriptions" or parts[3].lower() != "resourcegroups":
        return "is not of the form /subscriptions/…/resourceGroups/…/providers/…/…/…"
    if not re.fullmatch(GUID, parts[2]):
        return (
            f"names the subscription {quoted(parts[2])}, which is not an id like 00000000-0000-0000-0000-000000000000"
        )
    if not re.fullmatch(r"[\w.()-]{1,90}", parts[4]):
        return f"names the resource group {quoted(parts[4])}, which cannot exist"
    if parts[5].lower() != "providers" or (parts[6].lower(), parts[7].lower()) != (provider.lower(), kind.lower()):
        return f"names a {quoted(parts[6] + '/' + parts[7])}, not a {provider}/{kind}"
    if not re.fullmatch(r"[\w.-]{1,260}", parts[8], re.ASCII):
        return "ends without a valid name"
    return None
