"""An NFS or Lustre server that someone else runs."""

from __future__ import annotations

from typing import Literal

from ...definition.model.storage import Existing
from ..flow import ANY, LUSTRE_PORTS, NFS_PORTS, NODES, PEERS, Flow, host_prefix
from .base import FileSystem, Place, default_mount_options

_SERVER_PORTS = (*NFS_PORTS, "20048")
"""20048 is where Linux servers mount from. Source: IANA, Service Name and Port Number Registry, `mountd`."""
_WORDS = {"nfs": "NFS", "lustre": "Lustre"}


class ExistingServer(FileSystem, frozen=True, kw_only=True):
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
        return f"existing {_WORDS[self.protocol]}"

    @property
    def description(self) -> str:
        return f"existing {_WORDS[self.protocol]} at {self.address}"

    @property
    def origin(self) -> str:
        return f"{self.address}:{self.export_path}" if self.export_path else self.address

    @property
    def flows(self) -> tuple[Flow, ...]:
        """From its address on all ports, because NFSv3 mounts and locks use ports that each server chooses.

        A host name says no address, and only the management server's address is known of Lustre.
        """
        mount = "nodes mount from an existing NFS server"
        if self.protocol == "lustre":
            return (
                Flow("nodes-existing-lustre", NODES, PEERS, "Tcp", LUSTRE_PORTS, "nodes mount existing Lustre"),
                Flow("existing-lustre-nodes", PEERS, NODES, "Tcp", LUSTRE_PORTS, "Lustre servers connect to clients"),
            )
        address = host_prefix(self.address)
        if address is None:
            return (Flow("nodes-nfs", NODES, PEERS, "*", _SERVER_PORTS, mount),)
        return (
            Flow(f"nodes-nfs-{self.address}", NODES, address, "*", ANY, mount),
            Flow(f"nfs-{self.address}-nodes", address, NODES, "*", ANY, "an NFS server calls nodes back about locks"),
        )

    @property
    def left_behind(self) -> str:
        return f"the existing file system of `{self.path}`"
