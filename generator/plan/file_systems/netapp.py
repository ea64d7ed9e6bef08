"""A volume of Azure NetApp Files that the deployment creates, in a capacity pool of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from ... import catalog
from ...catalog.azure_facts import LargeVolume, Volume
from ...definition.model.storage import NetApp
from .. import names
from ..bicep_modules import BicepModule, Expression, given
from ..billing import Billed, capacity
from ..flow import ANY, NFS_PORTS, NODES, Flow
from ..subnet_kinds import SubnetKind
from .base import GIB_PER_TIB, MIB, FileSystem, Place, azure_resource_name, default_mount_options

_ACCOUNT = "netapp"
_FLEXIBLE = (
    "While the service level Flexible is a preview in the subscription, its feature must be registered: "
    "`az feature register --namespace Microsoft.NetApp --name ANFFlexibleServiceLevel`."
)
"""Source: https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-set-up-capacity-pool"""


class NetAppVolume(FileSystem, frozen=True, kw_only=True):
    """`anf`: NFSv3 from the address of a mount target that Azure chooses in the delegated subnet."""

    kind: Literal["anf"] = "anf"
    protocol: Literal["nfs"] = "nfs"
    size_gib: int
    service_level: str
    throughput_mibps: int | None = None
    """Of pool and volume; only with the service level Flexible, the others follow their size."""
    large_volume: bool = False
    zone: str | None = None
    account_name: str
    resource_name: str
    """Name of the pool and of its volume."""

    service: ClassVar[str] = "NetApp Files"
    # A second volume is refused with "Another volume creation is in progress", as the service works through the volumes
    # of a subscription one by one. Source: https://github.com/NetApp/trident/issues/279
    one_by_one: ClassVar[bool] = True
    resource_types: ClassVar[tuple[str, ...]] = (
        "Microsoft.NetApp/netAppAccounts",
        "Microsoft.NetApp/netAppAccounts/capacityPools",
        "Microsoft.NetApp/netAppAccounts/capacityPools/volumes",
    )
    can_shrink: ClassVar[bool] = True
    subnet: ClassVar[SubnetKind] = SubnetKind(
        role="netapp",
        name="netapp",
        service=service,
        offset=128,
        prefix_length=26,
        delegation="Microsoft.Netapp/volumes",
        smallest="netapp_subnet_prefix",
    )

    @classmethod
    def planned(cls, place: Place, section: NetApp) -> NetAppVolume:
        """A volume as large as its pool."""
        prefix = names.prefix(place.definition)
        return cls(
            name=place.name,
            path=place.path,
            size_gib=section.size_tib * GIB_PER_TIB,
            address_fact=names.address_fact(place.name),
            export_path=f"/{names.netapp_export(place.definition, place.name)}",
            mount_options=section.mount_options or default_mount_options("nfs"),
            service_level=section.service_level,
            throughput_mibps=section.throughput_mibps,
            large_volume=section.large_volume,
            zone=section.zone,
            account_name=f"{prefix}-netapp",
            resource_name=azure_resource_name(place.name),
        )

    @property
    def label(self) -> str:
        return f"NetApp Files{', large volume' if self.large_volume else ''}, {self._level}"

    @property
    def description(self) -> str:
        size = f"{self.size_gib} GiB{' in a large volume' if self.large_volume else ''}"
        return f"Azure NetApp Files, {size}, {self._level}"

    @property
    def _level(self) -> str:
        own = f", {self.throughput_mibps} MiB/s" if self.throughput_mibps is not None else ""
        return f"{self.service_level}{own}"

    @property
    def origin(self) -> str:
        return "created by the deployment"

    @property
    def pool_tib(self) -> int:
        """Size of its capacity pool, in TiB: pools come in whole ones."""
        return -(-self.size_gib // GIB_PER_TIB)

    @property
    def billed(self) -> tuple[Billed, ...]:
        """By the whole pool, which the deployment creates for it alone."""
        what = f"NetApp Files {self.service_level}, {self.pool_tib} TiB"
        return (capacity(self.path, what, self.pool_tib * GIB_PER_TIB, "netapp", level=self.service_level),)

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Callbacks of NFSv3 locks go to ports that the client's port mapper assigns."""
        role = self.subnet.role
        return (
            Flow("nodes-netapp", NODES, role, "*", NFS_PORTS, "nodes mount NetApp volumes"),
            Flow("netapp-nodes", role, NODES, "*", ANY, "NetApp calls nodes back about locks"),
            Flow("netapp-own", role, role, "*", ANY, "NetApp Files itself"),
        )

    @classmethod
    def shared_modules(cls, mounts: Sequence[NetAppVolume]) -> tuple[BicepModule, ...]:
        """The account that holds all pools."""
        return (BicepModule(_ACCOUNT, "modules/netapp-account.bicep", given(name=mounts[0].account_name)),)

    def module(self, index: int) -> BicepModule:
        return BicepModule(
            f"volume{index}",
            "modules/netapp-volume.bicep",
            given(
                accountName=self.account_name,
                name=self.resource_name,
                serviceLevel=self.service_level,
                poolSizeTib=self.pool_tib,
                volumeSizeGib=self.size_gib,
                throughputMibps=self.throughput_mibps,
                largeVolume=self.large_volume,
                exportName=(self.export_path or "").strip("/"),
                subnetId=Expression(f"network.outputs.subnetIds.{self.subnet.role}"),
                allowedClients=Expression("network.outputs.computePrefixes"),
                zone=self.zone,
            ),
        )

    @property
    def created_names(self) -> tuple[tuple[str, str], ...]:
        account = "Microsoft.NetApp/netAppAccounts"
        pool = f"{account}/capacityPools"
        return (
            (account, self.account_name),
            (pool, self.resource_name),
            (f"{pool}/volumes", self.resource_name),
        )

    @property
    def own_names(self) -> tuple[str, ...]:
        """Pool and volume, and the export, whose name is unique in the subnet."""
        return f"pool {self.resource_name}", f"export {self.export_path}"

    @property
    def tier_arithmetic(self) -> tuple[float, str] | None:
        """Reads and writes together."""
        promised = self.bandwidth_gb_per_s
        size = f"{self.size_gib} GiB of {self.service_level}"
        how = f"{self.throughput_mibps} MiB/s as assigned" if self.throughput_mibps else f"the share of {size}"
        return (round(promised * 1000, 1), how) if promised else None

    @property
    def bandwidth_gb_per_s(self) -> float | None:
        """Reads and writes together: as assigned, or what the level gives its size, up to what one volume reaches."""
        per_tib = catalog.file_systems().netapp.service_levels[self.service_level].mib_per_s_per_tib
        mib_per_s = self.throughput_mibps or (per_tib and per_tib * self.size_gib / GIB_PER_TIB)
        return min(mib_per_s, self.limits.max_mib_per_s) * MIB / 1e9 if mib_per_s else None

    @property
    def limits(self) -> LargeVolume | Volume:
        """Of one volume of this kind."""
        facts = catalog.file_systems().netapp
        return facts.large_volume if self.large_volume else facts.volume

    @classmethod
    def requirements(cls, mounts: Sequence[NetAppVolume]) -> tuple[str, ...]:
        """The quota of the region, the feature of a level, and the zones."""
        default = catalog.file_systems().netapp.regional_quota.tib
        pools = sum(mount.pool_tib for mount in mounts)
        texts = [
            f"The capacity pools of NetApp Files take {pools} TiB of the subscription's quota in the region; the "
            f"default is {default} TiB, and a support request (Quotas, Azure NetApp Files limits) raises it."
        ]
        if any(mount.service_level == "Flexible" for mount in mounts):
            texts.append(_FLEXIBLE)
        zones = sorted({mount.zone for mount in mounts if mount.zone})
        if zones:
            texts.append(
                f"NetApp Files must have capacity left in zone {' and '.join(zones)}. If Azure refuses a volume "
                "because it lacks capacity, remove `zone` from the definition, and Azure chooses one."
            )
        return tuple(texts)
