"""What of a plan Azure bills by the hour, and what nobody can know before; `cycleforge cost` puts prices to it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from .billing import Billed, disk, one
from .deployment import Plan
from .file_systems.base import FileSystem
from .server import ServerPlan

NOT_COUNTED = (
    "disks that come with an image, and those of nodes",
    "network traffic, requests to storage, the content of the locker and of blob containers",
    "logs and metrics, licences, support, taxes, and the discounts of your agreement",
)


def billed(plan: Plan) -> tuple[Billed, ...]:
    """Everything, in the order in which a cluster comes up."""
    return (*_deployment(plan), *_vms(plan, "scheduler", "login", "partition"))


def _deployment(plan: Plan) -> Iterator[Billed]:
    if plan.server is not None:
        yield from _vms(plan, "server")
        yield from _disks(plan.server)
        yield from _vms(plan, "jumpbox")
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


def _disks(server: ServerPlan) -> Iterator[Billed]:
    for title, size_gib in (("server's system disk", server.os_disk_gb), ("server's data disk", server.data_disk_gb)):
        if size_gib is not None and (found := disk(title, size_gib, "deployed")) is not None:
            yield found


def _vms(plan: Plan, *roles: str) -> Iterator[Billed]:
    """Those that always run, then those that jobs or users may add."""
    for each in plan.fleet:
        if each.role not in roles:
            continue
        meter = "vm_windows" if each.role == "jumpbox" else "vm_spot" if each.spot else "vm"
        of = Billed(each.title, each.vm_size, each.count, meter, (("size", each.vm_size),), each.since, each)
        if each.count:
            yield of
        if each.most > each.count:
            title = each.title if each.since == "full" else f"more {each.title}"
            yield replace(of, title=title, quantity=each.most - each.count, since="full")
