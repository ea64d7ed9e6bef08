"""The VMs of a plan: where the definition asks for them, how many there may be, how many must be possible at least."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.types import NodeArrayPlan, Plan, SlurmPlan
from ...problems.problem import KeyPath
from ...records import record


@record
class Machines:
    """VMs of one size and purpose."""

    title: str
    path: KeyPath
    """Of the VM size."""
    vm_size: str
    vcpus: int | None
    """Of one VM; None: the plan does not know."""
    most: int
    """With every partition at its limit."""
    least: int
    """Without so many the deployment, the start of the cluster or the largest planned job has to wait."""
    spot: bool = False
    zones: tuple[tuple[str, KeyPath], ...] = ()
    """Zones that the definition names, with their places."""
    starts_alone: bool = True
    """Whether they run all the time; jobs run one after the other, so of nodes only the largest need counts."""
    is_essential: bool = False
    """Without them the deployment or the start of the cluster fails; without others only jobs wait."""


def machines(plan: Plan) -> Iterator[Machines]:
    """All of them, in the order in which they come up."""
    if plan.server is not None:
        yield _infrastructure(plan, "the CycleCloud server", ("server", "vm_size"), plan.server.vm_size)
        if plan.server.jumpbox is not None:
            yield _infrastructure(plan, "the jumpbox", ("server", "jumpbox", "vm_size"), plan.server.jumpbox.vm_size)
    if plan.slurm is not None:
        yield from _cluster(plan, plan.slurm)


def _infrastructure(plan: Plan, title: str, path: KeyPath, vm_size: str) -> Machines:
    vcpus = next((use.vcpus for use in plan.quota.uses if use.vm_size == vm_size and use.vms == 1), None)
    return Machines(title, path, vm_size, vcpus, 1, 1, is_essential=True)


def _cluster(plan: Plan, slurm: SlurmPlan) -> Iterator[Machines]:
    scheduler, login, here = slurm.scheduler, slurm.login, ("slurm", "scheduler")
    count = 2 if scheduler.high_availability else 1
    zones = tuple(
        (zone, (*here, key))
        for key, zone in (("zone", scheduler.zone), ("backup_zone", scheduler.backup_zone))
        if zone is not None
    )
    size = scheduler.hardware
    yield Machines(
        "the scheduler", (*here, "vm_size"), size.name, size.vcpus, count, count, zones=zones, is_essential=True
    )
    if most := max(login.count, login.max_count):
        size = login.hardware
        yield Machines("the login nodes", ("slurm", "login", "vm_size"), size.name, size.vcpus, most, login.count)
    for array in slurm.node_arrays:
        for each in array.of_each_size:
            yield _nodes(plan, array, each)


def _nodes(plan: Plan, array: NodeArrayPlan, each: NodeArrayPlan) -> Machines:
    here = partition_path(plan, array.partition)
    jobs = (job.nodes for job in plan.jobs if job.node_array == array.name and job.vm_size == each.vm_size)
    return Machines(
        f"partition {array.partition}",
        (*here, "vm_sizes" if array.sizes else "vm_size"),
        each.vm_size,
        each.hardware.vcpus,
        each.max_nodes,
        max(jobs, default=1),
        each.spot,
        tuple((zone, (*here, "zone")) for zone in each.zones),
        starts_alone=False,
    )


def partition_path(plan: Plan, name: str) -> KeyPath:
    """Where a partition stands in the definition."""
    slurm = plan.resolved.get("slurm")
    partitions = slurm.get("partitions") if isinstance(slurm, dict) else None
    for index, partition in enumerate(partitions or ()):
        if isinstance(partition, dict) and partition.get("name") == name:
            return ("slurm", "partitions", index)
    return ("slurm", "partitions")


def mount_path(plan: Plan, path: str) -> KeyPath:
    """Where a file system stands in the definition, by its mount point."""
    if plan.slurm is not None and path in (plan.slurm.sched.path, plan.slurm.home.path):
        return ("storage", "sched" if path == plan.slurm.sched.path else "home")
    storage = plan.resolved.get("storage")
    mounts = storage.get("mounts") if isinstance(storage, dict) else None
    for index, mount in enumerate(mounts or ()):
        if isinstance(mount, dict) and mount.get("path") == path:
            return ("storage", "mounts", index)
    return ("storage", "mounts")
