"""One VM size as the whole generator knows it, and how it is read from the catalogue's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Arch = Literal["x86_64", "aarch64"]
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class VmSize:
    """Published figures of a VM size; None = nobody published it. A size that is not known has a name and no figure."""

    name: str
    known: bool = False
    vcpus: int | None = None
    memory_gib: float | None = None
    """As documented, or as the guest sees it where no page states it."""
    guest_memory_kib: int | None = None
    """`MemTotal` of a healthy node."""
    guest_memory_tolerance_percent: int | None = None
    arch: Arch = "x86_64"
    premium_storage: bool | None = None
    """Whether premium disks can be attached."""
    gpu_count: int = 0
    gpu_vendor: str | None = None
    gpu_model: str | None = None
    gpu_memory_gb: int | None = None
    """Per GPU, as marketed."""
    infiniband_nics: int = 0
    infiniband_gbps_per_nic: int | None = None
    nvme_count: int | None = None
    """Local NVMe disks."""
    images: tuple[str, ...] = ()
    """Marketplace images whose driver fits, the preferred one first; empty where any image will do."""
    nccl_topo_file: str | None = None
    nccl_topo_link: str | None = None
    """Where newer images put the topology file."""
    nccl_graph_file: str | None = None
    nccl_conf: Pairs = ()
    """What `/etc/nccl.conf` holds on a node of the size."""
    nccl_env: Pairs = ()
    """Variables that an NCCL job sets, sorted."""
    nccl: tuple[Mapping[str, Any], ...] = ()
    """Published NCCL bandwidths."""
    tasks_per_node: int | None = None
    cpus_per_task: int | None = None
    cpu_masks: tuple[str, ...] = ()
    """One per task, for `--cpu-bind=mask_cpu`."""
    aznhc: bool = False
    """Whether Azure's node health checks have a configuration for the size."""
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


def size_of_file(name: str, entry: Mapping[str, Any], notes: Mapping[str, Any]) -> VmSize:
    """A GPU or InfiniBand size, from the content of its own file."""

    def group(key: str) -> Mapping[str, Any]:
        return entry.get(key) or {}

    cpu, gpu, infiniband, memory = entry["cpu"], group("gpu"), group("infiniband"), group("memory")
    launch, topology, health = group("launch"), group("topology"), group("health")
    gib = memory.get("documented_gib") or memory.get("guest_visible_gib")
    retirement = notes["retirements"].get(name)
    return VmSize(
        name=name,
        known=True,
        vcpus=cpu["vcpus"],
        memory_gib=None if gib is None else float(gib),
        guest_memory_kib=memory.get("guest_visible_kib"),
        guest_memory_tolerance_percent=memory.get("tolerance_percent"),
        arch=cpu["arch"],
        gpu_count=gpu.get("count") or 0,
        gpu_vendor=gpu.get("vendor"),
        gpu_model=gpu.get("model"),
        gpu_memory_gb=gpu.get("memory_gb"),
        infiniband_nics=infiniband.get("nics") or 0,
        infiniband_gbps_per_nic=infiniband.get("gbps_per_nic"),
        nvme_count=group("local_storage").get("nvme_count"),
        images=tuple(group("images").get("marketplace_urns") or ()),
        nccl_topo_file=topology.get("nccl_topo_file"),
        nccl_topo_link=topology.get("image_link"),
        nccl_graph_file=topology.get("nccl_graph_file"),
        nccl_conf=tuple(_pair(line) for line in topology.get("etc_nccl_conf") or ()),
        nccl_env=tuple(sorted((key, str(value)) for key, value in (group("nccl_env").get("vars") or {}).items())),
        nccl=tuple(entry.get("nccl") or ()),
        tasks_per_node=launch.get("tasks_per_node"),
        cpus_per_task=launch.get("cpus_per_task"),
        cpu_masks=tuple(launch.get("cpu_masks") or ()),
        aznhc="aznhc" in (health.get("source") or ()) and bool(health.get("cpuinfo")),
        quota_family=group("quota_family").get("name"),
        retirement=retirement["date"] if retirement else None,
        page=notes["pages"].get(name),
        sources={key: tuple(value.get("source", ())) for key, value in entry.items() if isinstance(value, Mapping)},
    )


def _pair(line: str) -> tuple[str, str]:
    key, _, value = line.partition("=")
    return key, value


def size_of_table(name: str, series: Mapping[str, Any]) -> VmSize:
    """A size without InfiniBand, from its row and the figures of its series."""
    size, gpu = series["sizes"][name], series.get("gpu") or {}
    return VmSize(
        name=name,
        known=True,
        vcpus=size["vcpus"],
        memory_gib=float(size["memory_gib"]),
        arch=series["arch"],
        premium_storage=series["premium_storage"],
        gpu_count=size.get("gpus", 0),
        gpu_vendor=gpu.get("vendor"),
        gpu_model=gpu.get("model"),
        gpu_memory_gb=gpu.get("memory_gb"),
        nvme_count=size.get("nvme_disks", 0 if series["local_disk"] != "nvme" else None),
        quota_family=series["quota_family"],
        retirement=series["retirement"],
        page=series["url"],
    )
