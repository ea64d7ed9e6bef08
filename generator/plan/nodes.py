"""The nodes of a cluster: scheduler, login nodes and node arrays, with their images and VM sizes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from .. import catalog
from ..catalog.sizes import VmSize
from ..definition.model.definition import Definition
from ..definition.model.slurm import NodeProjects, Partition, Slurm
from . import names
from .assignment import HEALTH, POLICY, SpecRef, specs_of
from .attributes import node_attributes
from .custom_sizes import size_of
from .mig import MigPlan, mig_plan
from .network import node_subnet
from .policy import policy_attributes, policy_plan
from .real_memory import real_memory_mib, withheld_percent
from .storage import FileSystems
from .vm_attributes import VmAttributes, vm_attributes


def image_of(slurm: Slurm, node: NodeProjects, hardware: VmSize) -> str:
    """Image of a role: its own, else the cluster's, else the default for its VM size."""
    return node.image or slurm.image or default_image(hardware)


def is_default(slurm: Slurm, partition: Partition) -> bool:
    return partition.default or len(slurm.partitions) == 1


def sizes_of(definition: Definition, partition: Partition) -> tuple[VmSize, ...]:
    """The VM sizes of a partition, the preferred one first."""
    return tuple(size_of(definition, name) for name in partition.sizes)


def deciding_size(sizes: tuple[VmSize, ...]) -> VmSize:
    """Of several VM sizes the one whose image and projects fit all: the first with GPUs, else with InfiniBand."""
    with_gpus = (size for size in sizes if size.gpu_count)
    with_infiniband = (size for size in sizes if size.infiniband)
    return next(chain(with_gpus, with_infiniband, sizes), VmSize(""))


def is_hpc(partition: Partition, sizes: tuple[VmSize, ...]) -> bool:
    """One placement group: as the definition says, else where the size has InfiniBand; never with several sizes.

    azslurm finds the bucket of a dynamic node only outside of placement groups.
    Source: https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm/slurmcc/partition.py
    """
    if partition.hpc is not None:
        return partition.hpc
    return len(sizes) == 1 and sizes[0].infiniband


def scale_set_size(partition: Partition, sizes: tuple[VmSize, ...]) -> int:
    """VMs per scale set: tightly coupled nodes are in one, so it must hold all of them."""
    if partition.max_scale_set_size is not None:
        return partition.max_scale_set_size
    default = int(catalog.limits().scale_set_with_infiniband.value)
    return max(default, partition.max_nodes) if is_hpc(partition, sizes) else default


def scheduler_plan(
    definition: Definition,
    slurm: Slurm,
    cluster_name: str,
    versions: Mapping[str, str],
    shared: FileSystems,
    *,
    checked: bool,
) -> SchedulerPlan:
    scheduler = slurm.scheduler
    hardware = size_of(definition, scheduler.vm_size)
    policy = policy_plan(slurm)
    needed = (POLICY,) if policy else ()
    specs = specs_of("scheduler", scheduler, hardware, versions, nodes_are_checked=checked, needed=needed)
    attributes = dict(node_attributes("scheduler", scheduler, (hardware,), specs, shared))
    hours = hand_back_h(slurm, specs)
    if hours is not None:
        attributes.setdefault(HAND_BACK, hours)
    attributes = without_checks(slurm, specs) | attributes
    return SchedulerPlan(
        hardware=hardware,
        image=image_of(slurm, scheduler, hardware),
        host_name=slurm.host_names.scheduler or names.scheduler_name(cluster_name),
        high_availability=scheduler.high_availability,
        zone=scheduler.zone,
        backup_zone=scheduler.backup_zone,
        os_disk_gb=scheduler.os_disk_gb,
        specs=specs,
        attributes=tuple(sorted((policy_attributes(policy) | attributes).items())),
        vm_attributes=vm_attributes(scheduler, names.tags_of(definition)),
        subnet=node_subnet(definition, scheduler),
    )


def login_plan(
    definition: Definition, slurm: Slurm, versions: Mapping[str, str], shared: FileSystems, *, checked: bool
) -> LoginPlan:
    login = slurm.login
    hardware = size_of(definition, login.vm_size)
    specs = specs_of("login", login, hardware, versions, nodes_are_checked=checked)
    return LoginPlan(
        hardware=hardware,
        image=image_of(slurm, login, hardware),
        count=login.count,
        max_count=login.most,
        os_disk_gb=login.os_disk_gb,
        specs=specs,
        attributes=node_attributes("login", login, (hardware,), specs, shared),
        vm_attributes=vm_attributes(login, names.tags_of(definition)),
        subnet=node_subnet(definition, login),
    )


def node_array_plan(
    definition: Definition,
    slurm: Slurm,
    cluster_name: str,
    partition: Partition,
    versions: Mapping[str, str],
    shared: FileSystems,
    *,
    checked: bool,
) -> NodeArrayPlan:
    sizes = sizes_of(definition, partition)
    hardware = deciding_size(sizes)
    specs = specs_of("execute", partition, hardware, versions, nodes_are_checked=checked)
    hpc = is_hpc(partition, sizes)
    stem = names.node_stem(cluster_name, slurm.host_names.node_prefix, partition.name)
    of_sizes = _of_sizes(stem, partition, sizes)
    mig = mig_plan(partition, hardware) if partition.vm_sizes is None else None
    of_node = dict(node_attributes("execute", partition, sizes, specs, shared, mig))
    return NodeArrayPlan(
        name=partition.name,
        partition=partition.name,
        hardware=sizes[0],
        sizes=of_sizes,
        dynamic_feature=names.dynamic_feature(partition.name) if of_sizes else None,
        constraint=None,
        image=image_of(slurm, partition, hardware),
        max_nodes=partition.most_nodes,
        host_list=",".join(size.host_list for size in of_sizes) or names.host_list(stem, partition.max_nodes),
        is_default=is_default(slurm, partition),
        is_hpc=hpc,
        max_scale_set_size=scale_set_size(partition, sizes),
        use_physical_cpus=partition.use_physical_cpus if partition.use_physical_cpus is not None else hpc,
        spot=partition.spot,
        spot_max_price_usd_per_hour=partition.spot_max_price_usd_per_hour,
        zones=(partition.zone,) if partition.zone else (),
        os_disk_gb=partition.os_disk_gb,
        dampen_memory_percent=(
            withheld_percent(hardware)
            if partition.dampen_memory_percent is None and not of_sizes
            else partition.dampen_memory_percent
        ),
        mig=mig,
        node_health_checks=partition.node_health_checks,
        specs=specs,
        attributes=tuple(sorted((without_checks(slurm, specs) | of_node).items())),
        vm_attributes=vm_attributes(partition, names.tags_of(definition)),
        subnet=node_subnet(definition, partition),
    )


def _memory_mib(size: VmSize, withheld: int | None) -> int | None:
    """What Slurm is told of the memory of a node that is created by hand; None where nobody has stated any."""
    if size.memory_gib is None:
        return None
    return real_memory_mib(size.memory_gib, withheld_percent(size) if withheld is None else withheld)


def _of_sizes(stem: str, partition: Partition, sizes: tuple[VmSize, ...]) -> tuple[SizeNodes, ...]:
    """The nodes of each size; empty for a partition of one size, whose nodes azslurm names."""
    if partition.vm_sizes is None:
        return ()
    return tuple(
        SizeNodes(
            hardware=size,
            host_list=names.host_list(f"{stem}-{names.size_part(size.name)}", partition.max_nodes),
            max_nodes=partition.max_nodes,
            memory_mib=_memory_mib(size, partition.dampen_memory_percent),
            weight=weight,
        )
        for weight, size in enumerate(sizes, start=1)
    )


def default_image(size: VmSize) -> str:
    """The catalogue's default image, or the size's own one where only a special variant carries its driver.

    V100 needs the v100 images, MI300X the ROCm ones. Source: https://github.com/Azure/azhpc-images README.
    """
    variants = catalog.images().hpc_marketplace
    special = size.images and all(urn not in variants or variants[urn].gpu != "nvidia" for urn in size.images)
    return size.images[0] if special and size.gpu_count else catalog.images().default


HAND_BACK = "cycleforge.health.hand_back_h"
"""Attribute of the scheduler, whose program of slurm_nhc hands the VMs back."""


CHECKS = "cycleforge.health.enabled"
"""Attribute of scheduler and nodes: whether slurm_nhc does anything there."""


def without_checks(slurm: Slurm, specs: Iterable[SpecRef]) -> dict[str, str | int | bool]:
    """The attribute of a role that takes checks and hooks of slurm_nhc away; the definition's own wins over it.

    The project stays attached, so that it removes what an earlier converge has put there.
    """
    if slurm.slurm_nhc or not any(spec.project == HEALTH for spec in specs):
        return {}
    return {CHECKS: False}


def hand_back_h(slurm: Slurm, scheduler_specs: Iterable[SpecRef]) -> int | None:
    """Hours after which the scheduler hands a drained VM back; 0: only a person does; None: nothing there could.

    In a static pool nobody but a person: it is chosen so that nothing stops a VM by itself, because Azure may have none
    to give in its place.
    """
    if not slurm.slurm_nhc or not any(spec.project == HEALTH for spec in scheduler_specs):
        return None
    return slurm.hand_back_after_h if slurm.autoscale else 0


class SizeNodes(Struct, frozen=True):
    """The nodes of one VM size in a partition that has several; they are created in Slurm by hand."""

    hardware: VmSize
    host_list: str
    """As Slurm writes them, for example `lab-mixed-d64ds-v5-[1-4]`: a name says for good which size its node has."""
    max_nodes: int
    memory_mib: int | None
    """What Slurm offers to jobs; None = the memory of the size is not known."""
    weight: int
    """Slurm starts nodes of a lower weight first, for jobs that do not name a size."""

    def created_with(self, feature: str) -> str:
        """What `scontrol create` needs beside a name: azslurm finds the VM size of a node among its features.

        Sources: https://github.com/Azure/cyclecloud-slurm/tree/4.0.9#dynamic-partitions, and its partition.py
        """
        size = self.hardware
        given = {
            "Feature": f"{feature},{size.name}",
            "State": "CLOUD",
            "CPUs": size.vcpus,
            "RealMemory": self.memory_mib,
            "Gres": f"gpu:{size.gpu_count}" if size.gpu_count else None,
            "Weight": self.weight,
        }
        return " ".join(f"{name}={value}" for name, value in given.items() if value is not None)

    @property
    def gres_row(self) -> str:
        """The row of gres.conf, letter for letter what azslurm writes once the nodes exist."""
        return f"Nodename={self.host_list} Name=gpu Count={self.hardware.gpu_count} File={self.gpu_devices}"

    @property
    def name_start(self) -> str:
        """What all names of these nodes begin with, and no others do."""
        return re.sub(r"(\[1-[0-9]+\]|1)$", "", self.host_list)

    @property
    def gpu_devices(self) -> str:
        """Device files of a node's GPUs as azslurm writes them into gres.conf.

        Source: https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm/slurmcc/cli.py (_generate_gpu_devices)
        """
        count = self.hardware.gpu_count
        if self.hardware.gpu_vendor == "AMD":
            numbers = ",".join(str(128 + 8 * index) for index in range(count))
            return f"/dev/dri/renderD{numbers}" if count == 1 else f"/dev/dri/renderD[{numbers}]"
        return "/dev/nvidia0" if count == 1 else f"/dev/nvidia[0-{count - 1}]"


class NodeArrayPlan(Struct, frozen=True):
    """One Slurm partition: one CycleCloud node array."""

    name: str
    partition: str
    hardware: VmSize
    """The VM size; the preferred one where there are several."""
    sizes: tuple[SizeNodes, ...]
    """The nodes of each VM size of a partition that has several, the preferred one first; empty for a single size."""
    dynamic_feature: str | None
    """The Slurm feature of the nodes of a partition with several sizes."""
    constraint: str | None
    """What a job must ask for to get `hardware`, in what `of_each_size` gives; None = nothing."""
    image: str
    max_nodes: int
    """Of all sizes together."""
    host_list: str
    """All its nodes as Slurm writes them, for example `lab-hpc-[1-4]`."""
    is_default: bool
    is_hpc: bool
    """True: one placement group, InfiniBand. Written explicitly, because a missing value breaks `azslurm scale`."""
    max_scale_set_size: int
    use_physical_cpus: bool
    spot: bool
    spot_max_price_usd_per_hour: float | None
    """None = pay up to the on-demand price."""
    zones: tuple[str, ...]
    """Availability zones that nodes may be in; empty = Azure chooses."""
    os_disk_gb: int | None
    dampen_memory_percent: int | None
    """Of the nominal memory, withheld from jobs; None = azslurm's own max(1 GiB, 5 %)."""
    mig: MigPlan | None
    node_health_checks: bool
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]
    """`[[[configuration]]]` keys beyond the Slurm ones, sorted: what our projects read, then the user's own."""
    vm_attributes: VmAttributes
    subnet: str | None
    """`resource group/network/subnet` of its nodes; None: the subnet of the cluster."""
    generation: str = ""
    """`<node array>.<digest>`: names everything that a node keeps from its start to its end."""

    @property
    def has_whole_gpus(self) -> bool:
        """Whether jobs get whole GPUs here, as NCCL and training need them."""
        return self.hardware.gpu_count > 0 and self.mig is None

    @property
    def vm_size(self) -> str:
        """VM size of every node; the preferred one where there are several."""
        return self.hardware.name

    @property
    def vm_sizes(self) -> tuple[str, ...]:
        """All VM sizes, the preferred one first."""
        return tuple(size.hardware.name for size in self.of_each_size)

    @property
    def of_each_size(self) -> tuple[NodeArrayPlan, ...]:
        """The array as a job sees it that asks for one of its sizes; itself where there is only one."""
        if not self.sizes:
            return (self,)
        return tuple(
            replace(
                self,
                hardware=size.hardware,
                sizes=(),
                constraint=size.hardware.name,
                max_nodes=size.max_nodes,
                host_list=size.host_list,
            )
            for size in self.sizes
        )


class SchedulerPlan(Struct, frozen=True):
    """The scheduler VM and, with high availability, its second one."""

    hardware: VmSize
    image: str
    host_name: str
    high_availability: bool
    zone: str | None
    backup_zone: str | None
    os_disk_gb: int | None
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]
    vm_attributes: VmAttributes
    subnet: str | None


class LoginPlan(Struct, frozen=True):
    hardware: VmSize
    image: str
    count: int
    max_count: int
    os_disk_gb: int | None
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]
    vm_attributes: VmAttributes
    subnet: str | None
