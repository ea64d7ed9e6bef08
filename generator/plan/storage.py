"""The locker and the file systems as every node sees them."""

from __future__ import annotations

from dataclasses import dataclass

from .. import catalog
from ..definition.model.definition import Definition
from ..definition.model.storage import BlobMount, BuiltinNfs, Existing, ExistingMount, LustreMount, NetApp, NetAppMount
from . import names
from .types import LockerPlan, MountPlan

_GIB_PER_TIB = 1024
_EMPTY = dict.fromkeys(
    (
        "size_gib",
        "address",
        "address_fact",
        "export_path",
        "mount_options",
        "service_level",
        "throughput_mibps",
        "tier_mb_per_s_per_tib",
        "storage_account",
        "container",
        "zone",
    )
)


def locker_plan(definition: Definition) -> LockerPlan:
    """The locker; CycleCloud names it after the account record, which is always `azure`."""
    locker = definition.storage.locker
    return LockerPlan(
        account_name=locker.account_name,
        container=locker.container,
        redundancy=locker.redundancy,
        locker_name="azure-storage",
        blob_suffix=names.BLOB_SUFFIXES.get(definition.azure.cloud),
    )


def home_plan(definition: Definition) -> MountPlan:
    """The file system of /shared."""
    return _file_system("home", "/shared", definition.storage.home, definition)


def sched_plan(definition: Definition) -> MountPlan:
    """The file system of /sched."""
    return _file_system("sched", "/sched", definition.storage.sched, definition)


def mount_plans(definition: Definition) -> tuple[MountPlan, ...]:
    """The definition's own mounts, in its order."""
    return tuple(_mount(mount, definition) for mount in definition.storage.mounts)


@dataclass(frozen=True)
class FileSystems:
    """The shared file systems of the cluster."""

    sched: MountPlan
    home: MountPlan
    mounts: tuple[MountPlan, ...]

    @property
    def working(self) -> MountPlan:
        """Where jobs keep images, data and checkpoints: Lustre, else another file system, else blob, else /shared."""
        return min(
            self.mounts,
            key=lambda mount: (mount.protocol != "lustre", mount.protocol == "blobfuse"),
            default=self.home,
        )

    def holding(self, path: str) -> MountPlan | None:
        """The file system that a path lies on: the deepest mount point above it; None for a node's own disks."""
        above = [mount for mount in (self.sched, self.home, *self.mounts) if f"{path}/".startswith(f"{mount.path}/")]
        return max(above, key=lambda mount: len(mount.path), default=None)


def default_mount_options(protocol: str) -> str | None:
    """Recommended options of a protocol, from the catalogue."""
    options: str | None = catalog.mount_options().get(protocol, {}).get("value")
    return options


def _mount(mount: LustreMount | NetAppMount | ExistingMount | BlobMount, definition: Definition) -> MountPlan:
    name = names.mount_name(mount.path)
    if isinstance(mount, LustreMount):
        return _plan(
            name,
            mount.path,
            "amlfs",
            "lustre",
            size_gib=mount.size_tib * _GIB_PER_TIB,
            address_fact=names.address_fact(name),
            export_path="",
            mount_options=default_mount_options("lustre"),
            tier_mb_per_s_per_tib=mount.tier,
            zone=mount.zone or _first_zone(definition.location),
        )
    if isinstance(mount, BlobMount):
        return _plan(
            name, mount.path, "blob", "blobfuse", storage_account=mount.storage_account, container=mount.container
        )
    return _file_system(name, mount.path, mount, definition)


def _file_system(
    name: str, path: str, file_system: BuiltinNfs | NetApp | Existing, definition: Definition
) -> MountPlan:
    if isinstance(file_system, BuiltinNfs):
        return _plan(name, path, "nfs", "nfs", size_gib=file_system.size_gb, export_path=path)
    if isinstance(file_system, NetApp):
        return _plan(
            name,
            path,
            "anf",
            "nfs",
            size_gib=file_system.size_tib * _GIB_PER_TIB,
            address_fact=names.address_fact(name),
            export_path=f"/{names.netapp_export(definition, name)}",
            mount_options=file_system.mount_options or default_mount_options("nfs"),
            service_level=file_system.service_level,
            zone=file_system.zone,
        )
    return _plan(
        name,
        path,
        "existing",
        file_system.protocol,
        address=file_system.address,
        export_path=_lustre_path(file_system.export_path)
        if file_system.protocol == "lustre"
        else file_system.export_path,
        mount_options=file_system.mount_options or default_mount_options(file_system.protocol),
    )


def _plan(name: str, path: str, kind: str, protocol: str, **values: object) -> MountPlan:
    return MountPlan(name=name, path=path, kind=kind, protocol=protocol, **(_EMPTY | values))  # type: ignore[arg-type]


def _lustre_path(export_path: str) -> str:
    """The part behind `tcp:/lustrefs`; the root is empty."""
    return "" if export_path == "/" else export_path


def _first_zone(location: str) -> str | None:
    """Managed Lustre must name a zone where the region has zones."""
    region = catalog.regions().get(location)
    return "1" if region and region.get("zones") else None
