"""An NFS or Lustre server that someone else runs."""

from __future__ import annotations

from typing import Literal

from ...definition.model.storage import Existing
from ...records import named_record
from .base import FileSystem, Place, default_mount_options

_WORDS = {"nfs": "NFS", "lustre": "Lustre"}


@named_record
class ExistingServer(FileSystem):
    """`existing`: mounted from the address that the definition gives."""

    kind: Literal["existing"] = "existing"
    protocol: Literal["nfs", "lustre"]
    address: str

    @classmethod
    def planned(cls, place: Place, section: Existing) -> ExistingServer:
        """The cluster template writes `tcp:/lustrefs` in front of a Lustre path, so the root is empty there."""
        is_root = section.protocol == "lustre" and section.export_path == "/"
        return cls(
            name=place.name,
            path=place.path,
            protocol=section.protocol,
            address=section.address,
            export_path="" if is_root else section.export_path,
            mount_options=section.mount_options or default_mount_options(section.protocol),
        )

    @property
    def label(self) -> str:
        """For `cycleforge plan`."""
        return f"existing {_WORDS[self.protocol]}"

    @property
    def description(self) -> str:
        """For the README."""
        return f"existing {_WORDS[self.protocol]} at {self.address}"

    @property
    def origin(self) -> str:
        """For `cycleforge plan`."""
        return f"{self.address}:{self.export_path}" if self.export_path else self.address

    @property
    def left_behind(self) -> str:
        """It belongs to someone else."""
        return f"the existing file system of `{self.path}`"
