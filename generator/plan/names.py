"""Names derived from the definition, each within the limits of what it names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from .. import catalog

if TYPE_CHECKING:
    from ..definition.model.definition import Definition


OWNER_TAG = "cycleforge"
"""Its value is the deployment to which a resource, or the resource group that it was created in, belongs."""


class ResourceNames(Struct, frozen=True):
    """Names that are nowhere else in the plan, each within Azure's limit.

    A stem is completed by the deployment: 13 characters of subscription and resource group make it unique.
    """

    bastion: str
    locker_endpoint: str
    node_identity: str
    dns_link: str
    """Link of a DNS zone of this deployment to its network."""
    shared_dns_link_stem: str
    """The same of an existing zone, beside the links of others."""
    hub_peering_stem: str
    """The hub's side of the peering, beside those of others."""
    locker_account_stem: str
    """Used where the definition names no storage account."""
    database_server_stem: str
    """Used where the definition names no database server."""
    database_zone: str
    """Private DNS zone of a new database server."""


def tags_of(definition: Definition) -> tuple[tuple[str, str], ...]:
    """Tags of all resources, sorted; the one by which a deployment is deleted is no one else's to set.

    The definition's own win also where they differ in case, which Azure does not tell apart.
    """
    given = {name.lower() for name in definition.tags}
    usual = (("created-by", "cycleforge"), ("deployment", definition.name))
    tags = {name: value for name, value in usual if name not in given}
    return tuple(sorted((tags | definition.tags | {OWNER_TAG: definition.name}).items()))


def prefix(definition: Definition) -> str:
    """What the names of Azure resources begin with."""
    return definition.azure.prefix or definition.name


def resource_group(definition: Definition) -> str:
    """Resource group of the deployment, created or existing."""
    wanted = definition.azure.resource_group
    if isinstance(wanted, str):
        return wanted
    return wanted.existing if wanted else f"{prefix(definition)}-rg"


def creates_resource_group(definition: Definition) -> bool:
    wanted = definition.azure.resource_group
    return wanted is None or isinstance(wanted, str)


def blob_suffix(cloud: str) -> str | None:
    """End of blob endpoints; None in the public cloud, whose end every program knows."""
    return None if cloud == "public" else catalog.cloud(cloud).blob_endpoint


def cli_cloud(cloud: str) -> str | None:
    """Name for `az cloud set`; None for the public cloud, in which the Azure CLI begins."""
    return None if cloud == "public" else catalog.cloud(cloud).az_cli


def deployment_name(name: str, location: str) -> str:
    """Name of the subscription deployment: at most 64 characters, with the region to which Azure ties a name."""
    return f"{name[: 63 - len(location)].rstrip('-')}-{location}"


def slurm_config_name(cluster_name: str) -> str:
    """The cluster name as cyclecloud-slurm writes it below /sched: lower case, every other character becomes `-`.

    Source: https://github.com/Azure/cyclecloud-slurm (azure-slurm-install/install.py at 4.0.9)
    """
    return re.sub(r"[^a-z0-9-]", "-", cluster_name.lower())


def node_stem(cluster_name: str, node_prefix: str | None, array: str) -> str:
    """What an array's nodes are called before `-<number>`; the prefix None is the cluster's name and a hyphen."""
    return f"{f'{slurm_config_name(cluster_name)}-' if node_prefix is None else node_prefix}{array}"


def scheduler_name(cluster_name: str) -> str:
    """Host name of the scheduler where the definition gives none."""
    return f"{slurm_config_name(cluster_name)}-scheduler"


def host_list(stem: str, max_nodes: int) -> str:
    """All nodes of an array as Slurm writes them; `stem` as `node_stem` makes it."""
    return f"{stem}-1" if max_nodes == 1 else f"{stem}-[1-{max_nodes}]"


def size_part(vm_size: str) -> str:
    """`Standard_ND96isr_H100_v5` → `nd96isr-h100-v5`: the VM size in names of nodes of a partition with several."""
    return re.sub(r"[^a-z0-9]+", "-", vm_size.lower().removeprefix("standard_")).strip("-")


def dynamic_feature(partition: str) -> str:
    """The Slurm feature that makes a node one of a partition with several VM sizes.

    Not the partition's own name: azslurm gives every other node the feature `cloud`, which may be one, too.
    """
    return f"dyn-{partition}"


def mount_name(path: str) -> str:
    """`/data/sets` → `data-sets`: the mount's name in template, facts and resource names."""
    return re.sub(r"[^a-z0-9]+", "-", path.lower()).strip("-") or "root"


def address_fact(name: str) -> str:
    """`data-sets` → `dataSetsAddress`: key of the server's facts that holds a created file system's address."""
    head, *rest = name.split("-")
    # The name of a property in Bicep begins with a letter.
    letter = "x" if head[:1].isdigit() else ""
    return letter + head + "".join(part.capitalize() for part in rest) + "Address"


def netapp_export(definition: Definition, name: str) -> str:
    """Last part of a NetApp Files export: a letter first, at most 80 characters, unique in the delegated subnet.

    The subnet of an existing network may hold the volumes of several deployments, so theirs begin with their names.
    Source: https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-create-volumes
    """
    return f"{prefix(definition)}-{name}"[:80].rstrip("-")


def database_name(cluster_name: str) -> str:
    """cyclecloud-slurm's default accounting database: the sanitised cluster name, `-` becomes `_`."""
    return f"{slurm_config_name(cluster_name).replace('-', '_')}_acct_db"


def computer_name(name: str) -> str:
    """A Windows computer name: at most 15 characters, not ending with a hyphen."""
    return f"{name[:12].rstrip('-')}-jb"


def vnet_parts(vnet_id: str) -> tuple[str, str]:
    """(resource group, name) of a virtual network's resource id; empty strings where the id is malformed."""
    found = re.search(r"/resourceGroups/([^/]+)/.*/virtualNetworks/([^/]+)$", vnet_id, re.IGNORECASE)
    return (found[1], found[2]) if found else ("", "")
