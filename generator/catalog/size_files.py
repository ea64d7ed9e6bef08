"""VM sizes by name: those with GPUs or InfiniBand have a file each, all others are rows of one table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from . import files
from .sizes import Figures, NcclFigure, NcclTypical, VmSize

_SOURCED = ("cpu", "gpu", "infiniband", "local_storage", "nvlink_fabric", "topology", "nccl_env")
"""Groups whose figures reach nodes together with their source."""


@cache
def vm_size(name: str) -> VmSize:
    """All published figures of a VM size; `known` is false for a size that the catalogue does not have."""
    if name in _names_of_files():
        return size_of_file(name, files.read(f"vm_sizes/{name}.json"))
    if name in _series_of():
        guest = files.table("other_vm_sizes")["guest_memory"].get(name, {})
        return size_of_table(name, _series()[_series_of()[name]], guest)
    return VmSize(name)


@cache
def vm_size_names() -> tuple[str, ...]:
    """All known VM sizes, sorted."""
    return tuple(sorted(_names_of_files() | _series_of().keys()))


def canonical_vm_size(name: str) -> str | None:
    """The known size that differs from `name` at most in case or a missing `Standard_`; for suggestions only."""
    lower = name.strip().lower()
    known = _by_lower_name()
    return known.get(lower) or known.get(f"standard_{lower}")


@cache
def _by_lower_name() -> Mapping[str, str]:
    return {name.lower(): name for name in vm_size_names()}


@cache
def _names_of_files() -> frozenset[str]:
    """Sizes with a file of their own; the listing also guards against names that are paths."""
    return frozenset(path.stem for path in (files.FOLDER / "vm_sizes").glob("*.json"))


def _series() -> Mapping[str, Any]:
    """Series of the table by name: `sizes` maps each VM size to its row."""
    series: Mapping[str, Any] = files.table("other_vm_sizes")["series"]
    return series


@cache
def _series_of() -> Mapping[str, str]:
    return {size: name for name, series in _series().items() for size in series["sizes"]}


def size_of_file(name: str, content: Figures) -> VmSize:
    """A GPU or InfiniBand size, from its own file; a group that is missing there has no figure."""

    def group(key: str) -> Figures:
        figures: Figures = content.get(key, {})
        return figures

    cpu, gpu, infiniband, launch = content["cpu"], group("gpu"), group("infiniband"), group("launch")
    topology, health = group("topology"), group("health")
    return VmSize(
        name=name,
        known=True,
        vcpus=cpu["vcpus"],
        memory_gib=_memory_gib(group("memory"), health),
        guest_memory_mib=group("guest_memory").get("mib"),
        arch=cpu["arch"],
        gpu_count=gpu.get("count", 0),
        gpu_vendor=gpu.get("vendor"),
        gpu_model=gpu.get("model"),
        gpu_memory_gb=gpu.get("memory_gb"),
        infiniband_nics=infiniband.get("nics", 0),
        infiniband_gbps_per_nic=infiniband.get("gbps_per_nic"),
        nvme_count=group("local_storage").get("nvme_count"),
        needs=group("needs").get("text"),
        images=tuple(group("images").get("marketplace_urns", ())),
        fabric_manager=group("nvlink_fabric").get("manager"),
        fabric_registration=group("nvlink_fabric").get("registration"),
        nccl_topo_file=topology.get("nccl_topo_file"),
        nccl_topo_link=topology.get("image_link"),
        nccl_graph_file=topology.get("nccl_graph_file"),
        nccl_conf=tuple(_pair(line) for line in topology.get("etc_nccl_conf") or ()),
        nccl_env=_variables(group("nccl_env").get("vars", {})),
        nccl_benchmark_env=_environment(name, "benchmark"),
        nccl_training_env=_environment(name, "training"),
        nccl_sharp_env=_environment(name, "sharp"),
        nccl=tuple(NcclFigure(**_row(row)) for row in content.get("nccl", ())),
        nccl_typical=tuple(NcclTypical(**_row(row)) for row in _nccl()["typical"].get(name, ())),
        tasks_per_node=launch.get("tasks_per_node"),
        cpus_per_task=launch.get("cpus_per_task"),
        cpu_masks=tuple(launch.get("cpu_masks") or ()),
        health=health,
        unpublished=tuple(group("unpublished").get("checks", ())),
        quota_family=group("quota_family").get("name"),
        retirement=group("retirement").get("date"),
        page=content.get("page"),
        sources={key: tuple(group(key)["source"]) for key in _SOURCED if key in content},
    )


def _memory_gib(memory: Figures, health: Mapping[str, Figures]) -> float | None:
    if "gib" in memory:
        return float(memory["gib"])
    return round(health["memory"]["expected_kib"] / 2**20, 1) if "memory" in health else None


def _variables(figures: Figures) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in figures.items()))


def _environment(size: str, name: str) -> tuple[tuple[str, str], ...]:
    row = _nccl()["environments"][name]
    return _variables(row["variables"]) if size in row["sizes"] else ()


def _nccl() -> Figures:
    """What benchmarks and training add to the variables of a size, and what someone measured on it."""
    found: Figures = files.table("nccl")
    return found


def _row(row: Figures) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in row.items()}


def _pair(line: str) -> tuple[str, str]:
    key, _, value = line.partition("=")
    return key, value


def size_of_table(name: str, series: Figures, guest: Figures) -> VmSize:
    """A size without GPU and InfiniBand, from its row, the figures of its series and those of its guests."""
    row = series["sizes"][name]
    return VmSize(
        name=name,
        known=True,
        vcpus=row["vcpus"],
        memory_gib=float(row["memory_gib"]),
        guest_memory_mib=guest.get("mib"),
        arch=series["arch"],
        premium_storage=series["premium_storage"],
        nvme_count=row["nvme_disks"],
        quota_family=series["quota_family"],
        retirement=series["retirement"],
        page=series["page"],
    )
