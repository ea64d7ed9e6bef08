"""One VM size as the whole generator knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from .files import Figure, Row

Arch = Literal["x86_64", "aarch64"]
Pairs = tuple[tuple[str, str], ...]
Figures = Mapping[str, Any]
_AZNHC = "Azure/azurehpc-health-checks:conf/"


class NcclFigure(Row, frozen=True, kw_only=True):
    """A published bandwidth of NCCL's all-reduce, by which a run may be judged (GB/s of 10^9 bytes)."""

    nodes: int
    message_size: str
    """As NCCL's tests take it, for example `8G`."""
    metric: Literal["avg busbw", "busbw"]
    fail: Figure | None = None
    expected: Figure | None = None
    warn: Figure | None = None
    or_more: bool = False
    """Whether the source says that it holds for more nodes, too."""
    algorithms: tuple[str, ...] = ()
    """One of them must have been used for the figure to count, as NCCL's log names them; empty where none is named."""
    fabric: str | None = None
    """What must have connected the nodes, `mnnvl` or `infiniband`; None where it makes no difference."""


class NcclTypical(Row, frozen=True, kw_only=True):
    """A bandwidth of NCCL's all-reduce that someone measured (GB/s of 10^9 bytes): no floor, but one is derived."""

    nodes: int
    message_size: str
    gb_per_s: Figure
    algorithms: tuple[str, ...] = ()
    """As those of a figure."""
    fabric: str | None = None
    elsewhere: bool = False
    """Measured on the same hardware, but not on Azure."""


class VmSize(Struct, frozen=True):
    """Published figures of a VM size; None = nobody published it. A size that is not known has a name and no figure."""

    name: str
    known: bool = False
    custom: bool = False
    """The figures are those that the definition gives."""
    vcpus: int | None = None
    memory_gib: float | None = None
    """As documented, or as the guest sees it where no page states it."""
    guest_memory_mib: int | None = None
    """Lowest published `MemTotal` of a guest beyond that of the health checks; what `slurmd -C` calls RealMemory."""
    arch: Arch = "x86_64"
    premium_storage: bool | None = None
    """Whether premium disks can be attached."""
    encryption_at_host: bool | None = None
    """Azure publishes it only in the list of a subscription, so the catalogue has it of no size."""
    gpu_count: int = 0
    gpu_vendor: str | None = None
    gpu_model: str | None = None
    gpu_memory_gb: int | None = None
    """Per GPU, as marketed."""
    infiniband_nics: int = 0
    infiniband_gbps_per_nic: int | None = None
    nvme_count: int | None = None
    """Local NVMe disks."""
    needs: str | None = None
    """What its VMs need beyond an image, a template and the projects, for a sentence `it needs …`."""
    images: tuple[str, ...] = ()
    """Marketplace images whose driver fits, the preferred one first; empty where any image will do."""
    fabric_manager: str | None = None
    """The service without which CUDA does not start; where the image has none, the size needs none."""
    fabric_registration: str | None = None
    """What its GPUs join before CUDA starts: the NVLink fabric of the `node`, or that of a `rack`."""
    nccl_topo_file: str | None = None
    nccl_topo_link: str | None = None
    """Where newer images put the topology file."""
    nccl_graph_file: str | None = None
    nccl_conf: Pairs = ()
    """What `/etc/nccl.conf` holds on a node of the size."""
    nccl_env: Pairs = ()
    """Variables that every NCCL job needs on the machine, in containers, too; sorted, as the next three."""
    nccl_benchmark_env: Pairs = ()
    """What benchmarks add."""
    nccl_training_env: Pairs = ()
    """What training adds."""
    nccl_sharp_env: Pairs = ()
    """What CollNet and SHARP need: part of every benchmark, and of training that asks for them."""
    nccl: tuple[NcclFigure, ...] = ()
    nccl_typical: tuple[NcclTypical, ...] = ()
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    cpu_masks: tuple[str, ...] = ()
    """One per task, for `--cpu-bind=mask_cpu`."""
    health: Mapping[str, Figures] = field(default_factory=dict)
    """By check: what a healthy node shows, beyond the figures above, and the `source` that asks for it."""
    unpublished: tuple[str, ...] = ()
    """Checks for which no health source has a figure of this size; what its page documents is all there is."""
    quota_family: str | None = None
    retirement: str | None = None
    """ISO date on which Azure stops the series."""
    page: str | None = None
    """Address of the size's documentation."""
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Keys of the sources by group of figures (`gpu`, `memory`, …)."""

    @property
    def infiniband(self) -> bool:
        """Whether its nodes are connected by InfiniBand."""
        return self.infiniband_nics > 0

    @property
    def aznhc(self) -> bool:
        """Whether Azure's node health checks have a configuration for the size."""
        return str(self.health.get("cpu", {}).get("source")).startswith(_AZNHC)

    @property
    def lowest_guest_memory_mib(self) -> int | None:
        """Lowest published memory of a guest; None = nobody published one."""
        healthy = self.guest_memory_kib
        figures = (self.guest_memory_mib, healthy // 1024 if healthy is not None else None)
        return min((mib for mib in figures if mib is not None), default=None)

    @property
    def guest_memory_kib(self) -> int | None:
        """`MemTotal` of a healthy node."""
        kib: int | None = self.health.get("memory", {}).get("expected_kib")
        return kib

    @property
    def guest_memory_tolerance_percent(self) -> int | None:
        """By how much `MemTotal` may differ."""
        percent: int | None = self.health.get("memory", {}).get("tolerance_percent")
        return percent
