"""The locker and the file systems as every node sees them."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from msgspec.structs import replace

from ..definition.model.definition import Definition
from . import names
from .file_systems.base import FileSystem
from .file_systems.registry import wanted_by

CYCLECLOUD_ACCOUNT = "azure"
"""Name of the account record on every server that a deployment creates."""

_DEFAULT_MOUNT_ORDER = 1000
"""Source: https://learn.microsoft.com/azure/cyclecloud/cluster-references/configuration-reference"""


class LockerPlan(Struct, frozen=True):
    """Storage that nodes and server share; CycleCloud calls it `<account>-storage`, here `azure-storage`."""

    account_name: str | None
    """None: the deployment derives a unique name from subscription and resource group."""
    account_id: str | None
    """Resource id of the account of an existing server's locker; None: the deployment creates the locker."""
    assigns_role: bool
    """Whether the deployment lets the nodes read the locker; False: someone does it by hand."""
    container: str
    redundancy: str | None
    """Storage SKU of a new account, for example `Standard_LRS`."""
    locker_name: str
    cyclecloud_account: str
    """Name of the account record in CycleCloud, from which the locker has its name."""
    blob_suffix: str | None
    """End of blob endpoints outside the public cloud."""

    @property
    def is_new(self) -> bool:
        return self.account_id is None


def locker_plan(definition: Definition) -> LockerPlan:
    """The locker, which CycleCloud names after its account record: a new one, or that of an existing server."""
    locker, existing = definition.storage.locker, definition.server.existing
    if existing is not None:
        return LockerPlan(
            account_name=existing.locker_account_id.rstrip("/").rsplit("/", 1)[-1],
            account_id=existing.locker_account_id,
            assigns_role=existing.assign_locker_role,
            container=existing.locker_container,
            redundancy=None,
            locker_name=f"{existing.account}-storage",
            cyclecloud_account=existing.account,
            blob_suffix=names.blob_suffix(definition.azure.cloud),
        )
    return LockerPlan(
        account_name=locker.account_name,
        account_id=None,
        assigns_role=True,
        container=locker.container,
        redundancy=locker.redundancy,
        locker_name=f"{CYCLECLOUD_ACCOUNT}-storage",
        cyclecloud_account=CYCLECLOUD_ACCOUNT,
        blob_suffix=names.blob_suffix(definition.azure.cloud),
    )


class FileSystems(Struct, frozen=True):
    sched: FileSystem
    home: FileSystem
    mounts: tuple[FileSystem, ...]

    @property
    def all(self) -> tuple[FileSystem, ...]:
        """/sched, /shared and the definition's own mounts, in that order."""
        return (self.sched, self.home, *self.mounts)

    @property
    def working(self) -> FileSystem:
        """Where jobs keep images, data and checkpoints: the best of the definition's own mounts, else /shared."""
        return min(self.mounts, key=lambda mount: mount.data_rank, default=self.home)

    @property
    def checked_mount_points(self) -> tuple[str, ...]:
        """Mount points that the nodes' health checks expect to be mounted and writable."""
        return (self.sched.path, self.home.path, *(mount.path for mount in self.mounts if mount.is_health_checked))

    def holding(self, path: str) -> FileSystem | None:
        """The file system that a path is on: the deepest mount point above it; None for a node's own disks."""
        above = [mount for mount in self.all if f"{path}/".startswith(f"{mount.path}/")]
        return max(above, key=lambda mount: len(mount.path), default=None)


def file_systems(definition: Definition) -> FileSystems:
    sched, home, *mounts = requested(definition)
    return in_mount_order(FileSystems(sched, home, tuple(mounts)))


def requested(definition: Definition) -> tuple[FileSystem, ...]:
    """What the definition asks for, also without a cluster."""
    return tuple(each.file_system for each in wanted_by(definition))


def in_mount_order(shared: FileSystems) -> FileSystems:
    """The same, those that CycleCloud mounts below others after them."""
    paths = Counter(each.path.rstrip("/") for each in shared.all if each.mounted_by is None)

    def placed(each: FileSystem) -> FileSystem:
        above = sum(paths[each.path[:index]] for index, letter in enumerate(each.path) if letter == "/")
        if not above or each.mounted_by is not None:
            return each
        return replace(each, mount_order=_DEFAULT_MOUNT_ORDER + above)

    return FileSystems(placed(shared.sched), placed(shared.home), tuple(map(placed, shared.mounts)))
