"""A container, of someone's storage account or of a new one, mounted by blobfuse with the identity of the nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

from msgspec import Struct

from ... import catalog
from ...cctemplate.writing import Verbatim, Writable
from ...definition.model.storage import BlobMount
from .. import names
from ..bicep_modules import BicepModule, Expression, given
from ..flow import ENDPOINTS, NODES, PEERS, Flow
from .base import FileSystem, Grant, NodeSettings, Place

_KEYS = "cycleforge.blobfuse"


class CreatedAccount(Struct, frozen=True):
    """How the deployment creates a storage account."""

    is_private: bool
    """True: a private endpoint is the only way to it."""
    redundancy: str
    dns_zone: str
    """Of the endpoint: `new` (that of the locker's), `none`, or the id of an existing one."""
    infrastructure_encryption: bool
    workspace_id: str | None
    """Log Analytics workspace that gets the logs."""


class BlobContainer(FileSystem, frozen=True, kw_only=True):
    """`blob`: mounted by a script of our own.

    CycleCloud 8.8 has a mount type for blobfuse2, but its keys are not documented.
    """

    kind: Literal["blob"] = "blob"
    protocol: Literal["blobfuse"] = "blobfuse"
    storage_account: str
    container: str
    endpoint: str | None = None
    """URL of the account outside the public cloud, where blobfuse does not find it by itself."""
    created: CreatedAccount | None = None
    """None: it belongs to someone else."""

    assigned_roles: ClassVar[tuple[str, ...]] = ("Storage Blob Data Contributor",)
    azure_names: ClassVar[Mapping[str, str]] = {"storage_account": "storage_account", "container": "container"}
    mounted_by: ClassVar[str] = "misc_ubuntu"

    @classmethod
    def planned(cls, place: Place, section: BlobMount) -> BlobContainer:
        """The address of the account follows from its name and the cloud."""
        suffix = names.blob_suffix(place.definition.azure.cloud)
        security, zone = place.definition.security, place.definition.network.blob_dns_zone
        created = CreatedAccount(
            is_private=section.private_endpoint,
            redundancy=section.redundancy,
            dns_zone=zone,
            infrastructure_encryption=security.infrastructure_encryption,
            workspace_id=security.diagnostics_workspace_id,
        )
        return cls(
            name=place.name,
            path=place.path,
            storage_account=section.storage_account,
            container=section.container,
            endpoint=f"https://{section.storage_account}.{suffix}" if suffix else None,
            created=created if section.create else None,
        )

    @classmethod
    def is_created(cls, section: BlobMount) -> bool:
        return section.create

    @property
    def label(self) -> str:
        return "blob by blobfuse"

    @property
    def description(self) -> str:
        new = "the new account " if self.created else ""
        return f"blob container `{self.container}` of {new}`{self.storage_account}` by blobfuse"

    @property
    def origin(self) -> str:
        return f"{self.storage_account}/{self.container}{', created by the deployment' if self.created else ''}"

    @property
    def left_behind(self) -> str | None:
        return None if self.created else f"the storage account `{self.storage_account}`"

    @property
    def service(self) -> str | None:  # type: ignore[override]
        return "Blob Storage" if self.created else None

    @property
    def resource_types(self) -> tuple[str, ...]:  # type: ignore[override]
        """Of a new account, its container, the role of the nodes and the endpoint."""
        if self.created is None:
            return ()
        account, endpoint = "Microsoft.Storage/storageAccounts", "Microsoft.Network/privateEndpoints"
        services = (account, f"{account}/blobServices", f"{account}/blobServices/containers")
        named = (f"{endpoint}/privateDnsZoneGroups",) if self.created.dns_zone != "none" else ()
        private = (endpoint, *named) if self.created.is_private else ()
        return (*services, "Microsoft.Authorization/roleAssignments", *private)

    @property
    def created_accounts(self) -> tuple[tuple[str, str], ...]:
        """One for all its containers."""
        return ((self.storage_account, self.created.redundancy),) if self.created else ()

    @property
    def endpoints(self) -> tuple[str, ...]:
        """One for all containers of the account."""
        return (f"{self.storage_account}-endpoint",) if self.created and self.created.is_private else ()

    @property
    def own_names(self) -> tuple[str, ...]:
        """The container; another one of the same account may be mounted, too."""
        return (f"container {self.storage_account}/{self.container}",) if self.created else ()

    @classmethod
    def shared_modules(cls, mounts: Sequence[BlobContainer]) -> tuple[BicepModule, ...]:
        """Each new account with all its containers and the role of the nodes on them, and its endpoint."""
        accounts: dict[str, list[BlobContainer]] = {}
        for mount in mounts:
            if mount.created is not None:
                accounts.setdefault(mount.storage_account, []).append(mount)
        return tuple(
            module for index, same in enumerate(accounts.values()) for module in _of_account(f"containers{index}", same)
        )

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Over the internet, unless the account has a private endpoint that this network resolves."""
        if self.endpoints:
            return (Flow("nodes-endpoints", NODES, ENDPOINTS, "Tcp", ("443",), "nodes mount new blob containers"),)
        return (Flow("nodes-containers", NODES, PEERS, "Tcp", ("443",), "nodes mount blob containers"),)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """Reading and writing on the container; on a new one the deployment gives them."""
        if self.created is not None:
            return ()
        return (
            Grant(
                what="blob containers",
                role="Storage Blob Data Contributor",
                reader_role="Storage Blob Data Reader",
                storage_account=self.storage_account,
                scope=f"blobServices/default/containers/{self.container}",
            ),
        )

    @property
    def is_health_checked(self) -> bool:
        """Never: blobfuse comes up late."""
        return False

    @property
    def data_rank(self) -> int:
        """No file system for many small files."""
        return 2

    @property
    def bandwidth_gb_per_s(self) -> float:
        """What the account takes in before it answers 503; blobfuse then waits and sends again."""
        return catalog.training().storage[self.protocol].write_gb_per_s or 0

    @classmethod
    def node_settings(cls, mounts: Sequence[BlobContainer]) -> NodeSettings:
        """`cycleforge.blobfuse.mounts` lists names, `cycleforge.blobfuse.<name>.…` describes each."""
        identity = Verbatim("$configuration_identity_client_id")
        return NodeSettings(
            f"Containers: the project {cls.mounted_by} mounts them with the identity of the nodes.",
            (
                *((f"{mount._start}.identity_client_id", identity) for mount in mounts),
                (f"{_KEYS}.mounts", " ".join(mount._key for mount in mounts)),
                *(entry for mount in mounts for entry in mount._entries()),
            ),
        )

    @property
    def _key(self) -> str:
        """The mount's name, and another one for /mounts: `cycleforge.blobfuse.mounts` is the list."""
        return "mounts-" if self.name == "mounts" else self.name

    @property
    def _start(self) -> str:
        return f"{_KEYS}.{self._key}"

    def _entries(self) -> Iterator[tuple[str, Writable]]:
        values = {
            "path": self.path,
            "storage_account": self.storage_account,
            "container": self.container,
            "options": self.mount_options,
            "endpoint": self.endpoint,
        }
        return ((f"{self._start}.{key}", value) for key, value in values.items() if value is not None)


def _of_account(symbol: str, mounts: list[BlobContainer]) -> Iterator[BicepModule]:
    """The modules of one new account; a rule sees to it that its mounts agree."""
    first, created = mounts[0], mounts[0].created
    if created is None:
        return
    containers = Expression("[{}]".format(", ".join(f"'{mount.container}'" for mount in mounts)))
    yield BicepModule(
        symbol,
        "modules/blob-containers.bicep",
        given(
            accountName=first.storage_account,
            redundancy=created.redundancy,
            containerNames=containers,
            isPrivate=_yes(created.is_private),
            infrastructureEncryption=_yes(created.infrastructure_encryption),
            workspaceId=created.workspace_id,
        ),
    )
    # Apart from the account: what-if knows no outputs, and leaves out what is in a module with a role for one.
    for index, mount in enumerate(mounts):
        yield BicepModule(
            f"{symbol}Role{index}",
            "modules/roles-container.bicep",
            given(
                accountName=mount.storage_account,
                containerName=mount.container,
                nodePrincipalId=Expression("nodeIdentity.outputs.principalId"),
            ),
            after=(symbol,),
            has_place=False,
        )
    for name in first.endpoints:
        yield BicepModule(
            f"{symbol}Endpoint",
            "modules/private-endpoint.bicep",
            given(
                name=name,
                subnetId=Expression("network.outputs.subnetIds.endpoints"),
                storageAccountId=Expression(f"{symbol}.outputs.id"),
                dnsZoneId=_zone_id(created.dns_zone),
            ),
            after=("blobZone",) if created.dns_zone == "new" else (),
        )


def _yes(value: bool) -> Expression:
    return Expression("true" if value else "false")


def _zone_id(zone: str) -> Expression | None:
    """Id of the zone that the locker's endpoint is in, too; its name follows from the cloud."""
    if zone == "none":
        return None
    group = "subscription().subscriptionId, resourceGroupName"
    if zone != "new":
        # /subscriptions/<id>/resourceGroups/<name>/…: a rule refuses every other form.
        _, _, subscription, _, resource_group, *_ = zone.split("/")
        group = f"'{subscription}', '{resource_group}'"
    name = "'privatelink.blob.${environment().suffixes.storage}'"
    return Expression(f"resourceId({group}, 'Microsoft.Network/privateDnsZones', {name})")
