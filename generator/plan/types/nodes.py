"""The nodes of a cluster: scheduler, login nodes and node arrays."""

from __future__ import annotations

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
class NodeArrayPlan:
    """One Slurm partition: one CycleCloud node array of one VM size."""

    name: str
    partition: str
    hardware: VmSize
    image: str
    max_nodes: int
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
    node_health_checks: bool
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]
    """`[[[configuration]]]` keys beyond the Slurm ones, sorted: what our projects read, then the user's own."""
    vm_attributes: VmAttributes
    generation: str = ""
    """`<node array>.<digest>`: names everything that a node keeps from its start to its end."""

    @property
    def vm_size(self) -> str:
        """VM size of every node."""
        return self.hardware.name


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
