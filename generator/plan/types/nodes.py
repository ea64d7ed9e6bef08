"""VM sizes and the nodes of a cluster: scheduler, login nodes and node arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class NodeHardware:
    """Catalogue figures of a VM size that templates, node attributes and jobs need; None = nobody published it."""

    vm_size: str
    known: bool
    vcpus: int | None
    memory_gib: float | None
    arch: Literal["x86_64", "aarch64"]
    gpu_count: int
    gpu_vendor: str | None
    gpu_model: str | None
    gpu_memory_gb: int | None
    infiniband_nics: int
    infiniband_gbps_per_nic: int | None
    nvme_count: int | None
    numa_nodes: int | None
    nccl_topo_file: str | None
    nccl_graph_file: str | None
    nccl_env: tuple[tuple[str, str], ...]
    tasks_per_node: int | None
    cpus_per_task: int | None
    cpu_masks: tuple[str, ...]
    quota_family: str | None


@dataclass(frozen=True)
class NodeArrayPlan:
    """One Slurm partition: one CycleCloud node array of one VM size."""

    name: str
    partition: str
    hardware: NodeHardware
    image: str
    max_nodes: int
    is_default: bool
    is_hpc: bool
    """True: one placement group, InfiniBand. Written explicitly, because a missing value breaks `azslurm scale`."""
    max_scale_set_size: int
    use_physical_cpus: bool
    spot: bool
    spot_max_price_usd_per_hour: float | None
    """None = pay up to the on-demand price."""
    zone: str | None
    os_disk_gb: int | None
    dampen_memory_percent: int | None
    node_health_checks: bool
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]
    """`[[[configuration]]]` keys beyond the Slurm ones, sorted: what our projects read, then the user's own."""

    @property
    def vm_size(self) -> str:
        """VM size of every node."""
        return self.hardware.vm_size


@dataclass(frozen=True)
class SchedulerPlan:
    """The scheduler VM and, with high availability, its second one."""

    hardware: NodeHardware
    image: str
    host_name: str
    high_availability: bool
    zone: str | None
    backup_zone: str | None
    os_disk_gb: int | None
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]


@dataclass(frozen=True)
class LoginPlan:
    """Login nodes."""

    hardware: NodeHardware
    image: str
    count: int
    max_count: int
    os_disk_gb: int | None
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]
