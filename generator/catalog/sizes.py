"""From a catalogue entry to the typed figures that planner, rules and renderers use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..plan.types import NodeHardware

Arch = Literal["x86_64", "aarch64"]


@dataclass(frozen=True)
class SizeFacts:
    """What the rules check of a VM size; None = nobody published it."""

    name: str
    series: str
    vcpus: int | None
    memory_gib: float | None
    arch: Arch
    hyperthreading: bool | None
    premium_storage: bool | None
    local_disk: Literal["none", "scsi", "nvme"] | None
    disk_controller: str | None
    """`NVMe` when the size accepts no other OS disk controller."""
    gpu_count: int
    gpu_vendor: str | None
    infiniband: bool
    max_scale_set_with_infiniband: int | None
    retirement: str | None
    """ISO date on which Azure stops the series."""
    source: str | None
    """Page of the size."""


def _group(entry: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return entry.get(name) or {}


def _memory_gib(entry: Mapping[str, Any]) -> float | None:
    memory = _group(entry, "memory")
    value = memory.get("documented_gib") or memory.get("guest_visible_gib")
    return None if value is None else float(value)


def hardware_of_measured(name: str, entry: Mapping[str, Any]) -> NodeHardware:
    """Hardware of an AI or HPC size; memory as documented, or as the guest sees it where no page states it."""
    cpu, gpu, infiniband = entry["cpu"], _group(entry, "gpu"), _group(entry, "infiniband")
    launch, topology = _group(entry, "launch"), _group(entry, "topology")
    variables = _group(_group(entry, "nccl_env"), "vars")
    return NodeHardware(
        vm_size=name,
        known=True,
        vcpus=cpu["vcpus"],
        memory_gib=_memory_gib(entry),
        arch=cpu["arch"],
        gpu_count=gpu.get("count") or 0,
        gpu_vendor=gpu.get("vendor"),
        gpu_model=gpu.get("model"),
        gpu_memory_gb=gpu.get("memory_gb"),
        infiniband_nics=infiniband.get("nics") or 0,
        infiniband_gbps_per_nic=infiniband.get("gbps_per_nic"),
        nvme_count=_group(entry, "local_storage").get("nvme_count"),
        numa_nodes=_group(entry, "numa").get("nodes"),
        nccl_topo_file=topology.get("nccl_topo_file"),
        nccl_graph_file=topology.get("nccl_graph_file"),
        nccl_env=tuple(sorted((key, str(value)) for key, value in variables.items())),
        tasks_per_node=launch.get("tasks_per_node"),
        cpus_per_task=launch.get("cpus_per_task"),
        cpu_masks=tuple(launch.get("cpu_masks") or ()),
        quota_family=_group(entry, "quota_family").get("name"),
    )


def facts_of_measured(name: str, entry: Mapping[str, Any], notes: Mapping[str, Any]) -> SizeFacts:
    """Facts of an AI or HPC size."""
    hardware = hardware_of_measured(name, entry)
    storage, images = _group(entry, "local_storage"), _group(entry, "images")
    disk: Literal["none", "scsi", "nvme"] | None = None
    if storage.get("nvme_count"):
        disk = "nvme"
    elif storage.get("temp_disk_gib"):
        disk = "scsi"
    retirement = notes["retirements"].get(name)
    return SizeFacts(
        name=name,
        series=entry["series"],
        vcpus=hardware.vcpus,
        memory_gib=hardware.memory_gib,
        arch=hardware.arch,
        hyperthreading=entry["cpu"].get("hyperthreading"),
        premium_storage=None,
        local_disk=disk,
        disk_controller=images.get("disk_controller"),
        gpu_count=hardware.gpu_count,
        gpu_vendor=hardware.gpu_vendor,
        infiniband=hardware.infiniband_nics > 0,
        max_scale_set_with_infiniband=_group(entry, "max_vms_per_scale_set_with_ib").get("value"),
        retirement=retirement["date"] if retirement else None,
        source=notes["pages"].get(name),
    )


def hardware_of_general(name: str, series: Mapping[str, Any]) -> NodeHardware:
    """Hardware of a general-purpose size: no GPU figures beyond the series' own, no InfiniBand."""
    size, gpu = series["sizes"][name], series.get("gpu") or {}
    return NodeHardware(
        vm_size=name,
        known=True,
        vcpus=size["vcpus"],
        memory_gib=float(size["memory_gib"]),
        arch=series["arch"],
        gpu_count=size.get("gpus", 0),
        gpu_vendor=gpu.get("vendor"),
        gpu_model=gpu.get("model"),
        gpu_memory_gb=gpu.get("memory_gb"),
        infiniband_nics=0,
        infiniband_gbps_per_nic=None,
        nvme_count=size.get("nvme_disks", 0 if series["local_disk"] != "nvme" else None),
        numa_nodes=None,
        nccl_topo_file=None,
        nccl_graph_file=None,
        nccl_env=(),
        tasks_per_node=None,
        cpus_per_task=None,
        cpu_masks=(),
        quota_family=series["quota_family"],
    )


def facts_of_general(name: str, series_name: str, series: Mapping[str, Any]) -> SizeFacts:
    """Facts of a general-purpose size."""
    size, gpu = series["sizes"][name], series.get("gpu") or {}
    return SizeFacts(
        name=name,
        series=series_name,
        vcpus=size["vcpus"],
        memory_gib=float(size["memory_gib"]),
        arch=series["arch"],
        hyperthreading=series["hyperthreading"],
        premium_storage=series["premium_storage"],
        local_disk=series["local_disk"],
        disk_controller=series["disk_controller"],
        gpu_count=size.get("gpus", 0),
        gpu_vendor=gpu.get("vendor"),
        infiniband=False,
        max_scale_set_with_infiniband=None,
        retirement=series["retirement"],
        source=series["url"],
    )
