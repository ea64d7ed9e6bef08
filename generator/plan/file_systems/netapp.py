"""A volume of Azure NetApp Files that the deployment creates, in a capacity pool of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from ... import catalog
from ...definition.model.storage import NetApp
from ...records import named_record
from .. import names
from ..bicep_modules import BicepModule, Expression, given
from ..subnet_kinds import SubnetKind
from .base import GIB_PER_TIB, MIB, FileSystem, Place, azure_resource_name, default_mount_options

_ACCOUNT = "netapp"


@named_record
class NetAppVolume(FileSystem):
    """`anf`: NFSv3 from the address of a mount target that Azure chooses in the delegated subnet."""

    kind: Literal["anf"] = "anf"
    protocol: Literal["nfs"] = "nfs"
    size_gib: int
    service_level: str
    throughput_mibps: int | None = None
    """Of pool and volume; only with the service level Flexible, the others follow their size."""
    zone: str | None = None
    account_name: str
    resource_name: str
    """Name of the pool and of its volume."""

    service: ClassVar[str] = "NetApp Files"
    provider: ClassVar[str] = "Microsoft.NetApp"
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
            zone=section.zone,
            account_name=f"{prefix}-netapp",
            resource_name=azure_resource_name(place.name),
        )

    @property
    def label(self) -> str:
        """For `cycleforge plan`."""
        return f"NetApp Files, {self._level}"

    @property
    def description(self) -> str:
        """For the README."""
        return f"Azure NetApp Files, {self.size_gib} GiB, {self._level}"

    @property
    def _level(self) -> str:
        own = f", {self.throughput_mibps} MiB/s" if self.throughput_mibps is not None else ""
        return f"{self.service_level}{own}"

    @property
    def origin(self) -> str:
        """For `cycleforge plan`."""
        return "created by the deployment"

    @classmethod
    def shared_modules(cls, mounts: Sequence[NetAppVolume]) -> tuple[BicepModule, ...]:
        """The account that holds all pools."""
        return (BicepModule(_ACCOUNT, "modules/netapp-account.bicep", given(name=mounts[0].account_name)),)

    def module(self, index: int) -> BicepModule:
        """Pool and volume."""
        return BicepModule(
            f"volume{index}",
            "modules/netapp-volume.bicep",
            given(
                accountName=Expression(f"{_ACCOUNT}.outputs.name"),
                name=self.resource_name,
                serviceLevel=self.service_level,
                poolSizeTib=-(-self.size_gib // GIB_PER_TIB),  # pools come in whole TiB
                volumeSizeGib=self.size_gib,
                throughputMibps=self.throughput_mibps,
                exportName=(self.export_path or "").strip("/"),
                subnetId=Expression(f"network.outputs.subnetIds.{self.subnet.role}"),
                allowedClients=Expression("network.outputs.computePrefixes"),
                zone=self.zone,
            ),
        )

    @property
    def bandwidth_gb_per_s(self) -> float | None:
        """Reads and writes together: as assigned, or what the level gives its size, up to what one volume reaches."""
        facts: dict[str, Any] = catalog.file_systems()["netapp"]
        per_tib = facts["service_levels"][self.service_level]["mib_per_s_per_tib"]
        mib_per_s = self.throughput_mibps or (per_tib and per_tib * self.size_gib / GIB_PER_TIB)
        return min(mib_per_s, facts["volume"]["max_mib_per_s"]) * MIB / 1e9 if mib_per_s else None
