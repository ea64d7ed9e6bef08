"""Shared file systems as every node sees them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

FileSystemKind = Literal["nfs", "anf", "amlfs", "existing", "blob"]


@dataclass(frozen=True)
class MountPlan:
    """One shared file system as every node sees it.

    Kinds: `nfs` = disk of the scheduler, exported by CycleCloud; `existing` = somebody's NFS or Lustre server;
    `anf` and `amlfs` = created by this deployment, so the address is known only afterwards; `blob` = container of a
    storage account, mounted by blobfuse.
    """

    name: str
    """`home` (/shared), `sched` (/sched) or a name derived from the mount point, unique, [a-z0-9-]."""
    path: str
    kind: FileSystemKind
    protocol: Literal["nfs", "lustre", "blobfuse"]
    size_gib: int | None
    address: str | None
    """None for built-in NFS and where the address is an output of the deployment (`address_fact`)."""
    address_fact: str | None
    """Key in the server's `facts.json` that holds the address, for example `homeAddress`."""
    export_path: str | None
    mount_options: str | None
    # NetApp Files
    service_level: str | None
    throughput_mibps: int | None
    # Managed Lustre
    tier_mb_per_s_per_tib: int | None
    """40, 125, 250 or 500; the SKU is `AMLFS-Durable-Premium-<tier>`."""
    # blobfuse
    storage_account: str | None
    container: str | None
    zone: str | None
