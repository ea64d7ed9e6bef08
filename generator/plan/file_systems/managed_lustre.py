"""An Azure Managed Lustre file system that the deployment creates."""

from __future__ import annotations

from typing import ClassVar, Literal

from ... import catalog
from ...catalog.azure_facts import TierSizes
from ...definition.model.storage import LustreMount
from .. import names
from ..bicep_modules import BicepModule, Expression, given
from ..billing import Billed, capacity
from ..flow import ANY, LUSTRE_PORTS, NODES, Flow
from ..subnet_kinds import SubnetKind
from .base import GIB_PER_TIB, FileSystem, Place, Tier, azure_resource_name, default_mount_options


class ManagedLustre(FileSystem, frozen=True, kw_only=True):
    """`amlfs`: mounted from the management server, whose address Azure chooses in a subnet of its own."""

    kind: Literal["amlfs"] = "amlfs"
    protocol: Literal["lustre"] = "lustre"
    size_gib: int
    tier_mb_per_s_per_tib: int
    """40, 125, 250 or 500; the SKU is `AMLFS-Durable-Premium-<tier>`."""
    zone: str | None
    resource_name: str

    service: ClassVar[str] = "Managed Lustre"
    slow_part: ClassVar[str] = "Azure Managed Lustre"
    resource_types: ClassVar[tuple[str, ...]] = ("Microsoft.StorageCache/amlFilesystems",)
    # Its hosts call Azure services on 443, for which a private subnet needs outbound access.
    # https://learn.microsoft.com/azure/azure-managed-lustre/configure-network-security-group
    subnet: ClassVar[SubnetKind] = SubnetKind(
        role="lustre", name="lustre", service=service, uses_nat=True, smallest="lustre_subnet_prefix"
    )
    troubles: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            "`Permission denied` on the Lustre mount",
            'its root belongs to root: create your folder with `sudo install -d -o "$USER" FOLDER`',
        ),
    )

    @classmethod
    def planned(cls, place: Place, section: LustreMount) -> ManagedLustre:
        """Exported path `""`: the root of the file system."""
        prefix = names.prefix(place.definition)
        return cls(
            name=place.name,
            path=place.path,
            size_gib=section.size_tib * GIB_PER_TIB,
            address_fact=names.address_fact(place.name),
            export_path="",
            mount_options=default_mount_options("lustre"),
            tier_mb_per_s_per_tib=section.tier,
            zone=section.zone or _first_zone(place.definition.location),
            resource_name=f"{prefix}-{azure_resource_name(place.name)}"[:80].rstrip("-"),
        )

    @property
    def billed(self) -> tuple[Billed, ...]:
        """By the capacity of its tier, full or empty."""
        tier = str(self.tier_mb_per_s_per_tib)
        what = f"Managed Lustre, {self.size_tib} TiB, {tier} MB/s per TiB"
        return (capacity(self.path, what, self.size_gib, "lustre", tier=tier),)

    @property
    def created_names(self) -> tuple[tuple[str, str], ...]:
        return (("Microsoft.StorageCache/amlFilesystems", self.resource_name),)

    @property
    def own_names(self) -> tuple[str, ...]:
        return (f"file system {self.resource_name}",)

    @property
    def label(self) -> str:
        return f"Managed Lustre, {self.tier_mb_per_s_per_tib} MB/s per TiB"

    @property
    def description(self) -> str:
        return f"Azure Managed Lustre, {self.size_tib} TiB, {self.tier_mb_per_s_per_tib} MB/s per TiB"

    @property
    def origin(self) -> str:
        return "created by the deployment"

    @property
    def size_tib(self) -> int:
        return self.size_gib // GIB_PER_TIB

    @property
    def sku(self) -> str:
        """Name of the SKU, a key of the catalogue's tiers."""
        return f"AMLFS-Durable-Premium-{self.tier_mb_per_s_per_tib}"

    @property
    def flows(self) -> tuple[Flow, ...]:
        """https://learn.microsoft.com/azure/azure-managed-lustre/configure-network-security-group"""
        role = self.subnet.role
        return (
            Flow("nodes-lustre", NODES, role, "Tcp", LUSTRE_PORTS, "nodes mount Managed Lustre"),
            Flow("lustre-nodes", role, NODES, "Tcp", LUSTRE_PORTS, "Lustre servers connect to their clients"),
            Flow("lustre-own", role, role, "*", ANY, "Managed Lustre itself"),
            Flow("lustre-monitor", "AzureMonitor", role, "Tcp", ANY, "Azure watches Managed Lustre"),
        )

    @property
    def subnet_prefix_length(self) -> int:
        """As the documentation estimates it; one bit more beyond its table."""
        rows = catalog.file_systems().amlfs_subnet_prefix.rows
        return int(next((row.prefix for row in rows if self.size_tib <= row.max_tib), rows[-1].prefix - 1))

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """All tiers, each with its own step: the same capacity in a slower one may have to be larger."""
        rows = catalog.file_systems().amlfs.tiers
        found = (self._as_tier(int(sku.rsplit("-", 1)[1]), row) for sku, row in rows.items())
        return tuple(sorted(found, key=lambda tier: tier.mb_per_s_per_tib))

    def _as_tier(self, rate: int, row: TierSizes) -> Tier:
        size = max(-(-self.size_tib // row.step_tib) * row.step_tib, row.min_tib)
        fits = size <= row.max_tib
        return Tier(
            mb_per_s_per_tib=rate,
            step_tib=row.step_tib,
            size_tib=size if fits else None,
            gb_per_s=rate * size / 1000 if fits else None,
            is_chosen=rate == self.tier_mb_per_s_per_tib,
        )

    def module(self, index: int) -> BicepModule:
        return BicepModule(
            f"lustre{index}",
            "modules/lustre.bicep",
            given(
                name=self.resource_name,
                skuName=self.sku,
                capacityTib=self.size_tib,
                zone=self.zone,
                subnetId=Expression(f"network.outputs.subnetIds.{self.subnet.role}"),
            ),
        )

    @property
    def tier_arithmetic(self) -> tuple[float, str]:
        """Reads and writes each, where all servers take part."""
        formula = f"{self.tier_mb_per_s_per_tib} MB/s per TiB x {self.size_tib} TiB"
        return self.bandwidth_gb_per_s * 1000, formula

    @property
    def bandwidth_gb_per_s(self) -> float:
        """Tier (MB/s per TiB) × TiB."""
        return self.tier_mb_per_s_per_tib * (self.size_gib / GIB_PER_TIB) / 1000


def _first_zone(location: str) -> str | None:
    """Managed Lustre must name a zone where the region has zones."""
    region = catalog.regions().regions.get(location)
    return "1" if region and region.zones else None
