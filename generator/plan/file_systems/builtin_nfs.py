"""A disk of the scheduler that CycleCloud exports to all nodes."""

from __future__ import annotations

from typing import ClassVar, Literal

from ... import catalog
from ...definition.model import storage
from ..billing import Billed, disk
from .base import FileSystem, Place


class BuiltinNfs(FileSystem, frozen=True, kw_only=True):
    """`nfs`: gone with the scheduler, so of no use to a second one."""

    kind: Literal["nfs"] = "nfs"
    protocol: Literal["nfs"] = "nfs"
    size_gib: int

    is_scheduler_disk: ClassVar[bool] = True

    @classmethod
    def planned(cls, place: Place, section: storage.BuiltinNfs) -> BuiltinNfs:
        return cls(name=place.name, path=place.path, size_gib=section.size_gb, export_path=place.path)

    @property
    def tier_arithmetic(self) -> tuple[float, str] | None:
        """What a premium disk of the size reaches; the scheduler's own limits may be lower."""
        rows = catalog.file_systems().nfs.disk.rows
        row = next((row for row in rows if self.size_gib <= row.max_gib), None)
        return (row.mb_per_s, f"a premium SSD of {self.size_gib} GiB") if row else None

    @property
    def billed(self) -> tuple[Billed, ...]:
        """The disk, which outlives the scheduler: the cluster template has `Persistent = true`."""
        found = disk(self.path, self.size_gib, "deployed")
        return (found,) if found is not None else ()

    @property
    def label(self) -> str:
        return "NFS from the scheduler"

    @property
    def description(self) -> str:
        return f"NFS disk of the scheduler, {self.size_gib} GiB"

    @property
    def origin(self) -> str:
        return "disk of the scheduler"
