"""What of a plan Azure bills by the hour, and what nobody can know before; `cycleforge cost` puts prices to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .billing import Billed, disk, one, vms
from .file_systems.base import FileSystem
from .types import NodeArrayPlan, Plan, ServerPlan, SlurmPlan

NOT_COUNTED = (
    "disks that come with an image, and those of nodes",
    "network traffic, requests to storage, the content of the locker and of blob containers",
    "logs and metrics, licences, support, taxes, and the discounts of your agreement",
)


def billed(plan: Plan) -> tuple[Billed, ...]:
    """Everything, in the order in which a cluster comes up."""
    return (*_deployment(plan), *(_cluster(plan.slurm) if plan.slurm else ()))


def partition_title(array: NodeArrayPlan) -> str:
    """What the nodes of a partition are called among the things that are billed."""
    return f"partition {array.partition}"


def _deployment(plan: Plan) -> Iterator[Billed]:
    if plan.server is not None:
        yield from _server(plan.server)
        if plan.access.is_public:
            yield one("server's address", "public IPv4 address", "public_address")
    if plan.network.nat_gateway:
        yield one("NAT gateway", "gateway", "nat_gateway")
        yield one("NAT gateway's address", "public IPv4 address", "public_address")
    if plan.access.creates_bastion:
        yield one("Bastion", "Standard", "bastion")
        yield one("Bastion's address", "public IPv4 address", "public_address")
    if plan.locker.is_new:
        yield one("locker's endpoint", "private endpoint", "private_endpoint")
    for name in sorted({name for mount in plan.all_mounts for name in mount.endpoints}):
        yield one(name, "private endpoint", "private_endpoint")
    for mount in plan.all_mounts:
        yield from (replace(each, meter=None) for each in mount.billed) if _is_own_disk(plan, mount) else mount.billed
    if plan.slurm is not None and plan.slurm.accounting is not None and plan.slurm.accounting.sku:
        sku = plan.slurm.accounting.sku
        yield Billed("accounting's database", sku, 1, "mysql", (("size", sku.removeprefix("Standard_")),), "deployed")


def _is_own_disk(plan: Plan, mount: FileSystem) -> bool:
    """Whether the definition says itself what kind of disk the scheduler gets for a file system."""
    if not mount.is_scheduler_disk or plan.slurm is None:
        return False
    return bool(plan.slurm.scheduler.vm_attributes.volume(mount.path.strip("/")))


def _server(server: ServerPlan) -> Iterator[Billed]:
    yield vms("CycleCloud server", server.vm_size, 1, "deployed")
    for title, size_gib in (("server's system disk", server.os_disk_gb), ("server's data disk", server.data_disk_gb)):
        if size_gib is not None and (found := disk(title, size_gib, "deployed")) is not None:
            yield found
    if server.jumpbox is not None:
        yield vms("jumpbox", server.jumpbox.vm_size, 1, "deployed", meter="vm_windows")


def _cluster(slurm: SlurmPlan) -> Iterator[Billed]:
    yield vms("scheduler", slurm.scheduler.hardware.name, 2 if slurm.scheduler.high_availability else 1, "started")
    login = slurm.login
    if login.count:
        yield vms("login nodes", login.hardware.name, login.count, "started")
    if login.max_count > login.count:
        yield vms("more login nodes", login.hardware.name, login.max_count - login.count, "full")
    for array in slurm.node_arrays:
        for each in array.of_each_size:
            meter = "vm_spot" if array.spot else "vm"
            yield vms(partition_title(each), each.vm_size, each.max_nodes, "full", meter=meter)
