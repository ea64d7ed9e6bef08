"""`storage:` the locker and the shared file systems."""

from typing import Literal

from .fields import Section, setting

ServiceLevel = Literal["Standard", "Premium", "Ultra", "Flexible"]
Zone = Literal["1", "2", "3"]


class Locker(Section):
    """Storage account from which nodes load their projects."""

    account_name: str | None = setting(
        None,
        text="Name of the storage account; default: derived from subscription and resource group.",
        change="recreate",
        example="reflocker0001",
        active=False,
    )
    container: str = setting("cyclecloud", text="Container.", change="recreate", example="cyclecloud")
    redundancy: Literal["Standard_LRS", "Standard_ZRS", "Standard_GRS"] = setting(
        "Standard_LRS", text="Redundancy of the account.", example="Standard_LRS"
    )


class BuiltinNfs(Section):
    """A disk of the scheduler that it exports to all nodes."""

    type: Literal["nfs"] = setting(text="Built-in NFS.", change="recreate", example="nfs")
    size_gb: int = setting(100, text="Size of the disk.", change="recreate", unit="GB", ge=1, example=1024)


class NetApp(Section):
    """A new NetApp Files volume."""

    type: Literal["anf"] = setting(text="NetApp Files, created by the deployment.", change="recreate", example="anf")
    size_tib: int = setting(text="Size of pool and volume.", change="in place", unit="TiB", ge=1, example=4)
    service_level: ServiceLevel = setting(
        "Premium",
        text="Service level; it sets the throughput per TiB, or with Flexible throughput_mibps sets it.",
        change="recreate",
        example="Premium",
    )
    throughput_mibps: int | None = setting(
        None,
        text="Throughput; with the service level Flexible, and only with it.",
        unit="MiB/s",
        ge=1,
        example=256,
        active=False,
    )
    large_volume: bool = setting(
        False,
        text="A large volume: 50 TiB or more, and up to 12,800 MiB/s. A regular volume never becomes one.",
        change="recreate",
        example=False,
    )
    zone: Zone | None = setting(
        None,
        text="Availability zone, where something must be in the same one; Azure refuses the volume if NetApp Files has "
        "no capacity left there. Default: Azure chooses.",
        change="recreate",
        example="1",
        active=False,
    )
    mount_options: str | None = setting(
        None,
        text="Mount options instead of the recommended ones.",
        change="node restart",
        example="rw,hard,vers=3,tcp,_netdev",
        active=False,
    )


class Existing(Section):
    """A file system that already exists."""

    type: Literal["existing"] = setting(text="An existing NFS or Lustre server.", change="recreate", example="existing")
    address: str = setting(
        text="Host name or IP address of the server (Lustre: of the MGS).", change="node restart", example="10.0.0.5"
    )
    export_path: str = setting(
        "/",
        text="Exported path; for Lustre the path below the file system's root.",
        change="node restart",
        example="/export",
    )
    protocol: Literal["nfs", "lustre"] = setting("nfs", text="Protocol.", change="node restart", example="nfs")
    mount_options: str | None = setting(
        None,
        text="Mount options instead of the recommended ones.",
        change="node restart",
        example="rw,hard,vers=3,tcp,_netdev",
    )


class _Mounted(Section):
    path: str = setting(text="Mount point on every node.", change="node restart", example="/data")


class LustreMount(_Mounted):
    """A new Azure Managed Lustre file system."""

    type: Literal["amlfs"] = setting(
        text="Managed Lustre, created by the deployment.", change="recreate", example="amlfs"
    )
    tier: Literal[40, 125, 250, 500] = setting(
        text="Throughput tier AMLFS-Durable-Premium-<tier>.", change="recreate", unit="MB/s per TiB", example=250
    )
    size_tib: int = setting(
        text="Capacity; a multiple of the tier's step.", change="recreate", unit="TiB", ge=1, example=128
    )
    zone: Zone | None = setting(
        None, text="Availability zone; default: 1 where the region has zones.", change="recreate", example="1"
    )


class NetAppMount(NetApp, _Mounted):
    """A new NetApp Files volume."""


class ExistingMount(Existing, _Mounted):
    """A file system that already exists."""


class BlobMount(_Mounted):
    """A container of a storage account, mounted by blobfuse with the nodes' identity."""

    type: Literal["blob"] = setting(text="Blob container.", change="recreate", example="blob")
    storage_account: str = setting(text="Name of the storage account.", change="node restart", example="datasets0001")
    container: str = setting(text="Container.", change="node restart", example="data")
    create: bool = setting(
        False,
        text="Whether the deployment creates account and container, without keys, and lets the nodes read and write "
        "the container. False: they belong to someone else.",
        change="recreate",
        example=False,
    )
    private_endpoint: bool = setting(
        True,
        text="Whether a created account is reached by a private endpoint alone. False: by its public address, which "
        "anybody can reach and nobody without a role uses.",
        example=True,
    )
    redundancy: Literal["Standard_LRS", "Standard_ZRS", "Standard_GRS"] = setting(
        "Standard_LRS", text="Redundancy of a created account.", example="Standard_LRS"
    )


HomeFileSystem = BuiltinNfs | NetApp | Existing
Mount = LustreMount | NetAppMount | ExistingMount | BlobMount


class Storage(Section):
    """Locker and shared file systems."""

    locker: Locker = setting(Locker, text="Storage account of the projects.", change="recreate", example={})
    home: HomeFileSystem = setting(
        BuiltinNfs(type="nfs", size_gb=100),
        text="File system of /shared, which holds the home directories.",
        change="recreate",
        example={"type": "anf", "size_tib": 4},
    )
    sched: HomeFileSystem = setting(
        BuiltinNfs(type="nfs", size_gb=30),
        text="File system of /sched, which holds Slurm's configuration and state.",
        change="recreate",
        example={"type": "nfs", "size_gb": 30},
    )
    mounts: list[Mount] = setting(
        list,
        text="Further file systems that every node mounts.",
        change="node restart",
        example=[{"type": "amlfs", "path": "/data", "tier": 250, "size_tib": 128}],
    )
