"""The nodes of a cluster: scheduler, login nodes and node arrays."""

from __future__ import annotations

import re
from dataclasses import replace

from ...catalog.sizes import VmSize
from ...records import record


@record
class SpecRef:
    """One cluster-init spec of a role, in template order."""

    project: str
    spec: str
    version: str
    order: int
    """CycleCloud's Order; own specs start at 10000 and rise by 100."""

    @property
    def key(self) -> str:
        """`project:spec:version`, as CycleCloud writes it."""
        return f"{self.project}:{self.spec}:{self.version}"


@record
class VmAttributes:
    """What a definition says of the VMs of a role to CycleCloud, in the spelling of its reference, sorted by name.

    They are attributes of the role's own section, where they win over those of `[[node defaults]]`.
    """

    values: tuple[tuple[str, str | int | bool], ...]
    volumes: tuple[tuple[str, tuple[tuple[str, str | int | bool], ...]], ...]
    """Volume → its attributes."""
    tags: tuple[tuple[str, str], ...]
    """All tags of the VMs, those of the deployment included; empty: only those."""

    def volume(self, name: str) -> tuple[tuple[str, str | int | bool], ...]:
        """The attributes of one volume; empty where the definition says nothing of it."""
        return dict(self.volumes).get(name, ())


@record
class MigPlan:
    """GPUs divided into slices (MIG instances), all of one profile."""

    profile: str
    per_gpu: int
    """Slices of one GPU."""
    slices: int
    """Slices of one node, which Slurm counts as its GPUs."""
    devices: str
    """Their device files, as `slurm.gpu_device_config` has them."""


@record
class SizeNodes:
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


@record
class NodeArrayPlan:
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


@record
class SchedulerPlan:
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


@record
class LoginPlan:
    """Login nodes."""

    hardware: VmSize
    image: str
    count: int
    max_count: int
    os_disk_gb: int | None
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]
    vm_attributes: VmAttributes
    subnet: str | None
