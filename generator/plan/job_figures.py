"""What the figures that a recipe names add to its job: settings, and tables in its folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ..catalog.sizes import VmSize
from ..recipes import Figures, Recipe
from ..recipes.models import Model
from .fabric_settings import latency, links, pairs, ports
from .nccl_baselines import program_setting, relative_settings
from .node_benchmarks import TablePlan, figures_table, node_test_settings
from .storage import FileSystems
from .throughput import peak_setting, throughput_table

_MOUNT_COLUMNS = ("path", "protocol", "access", "mb_per_s", "formula")


def figure_settings(recipe: Recipe, size: VmSize) -> dict[str, str]:
    """Of a size that nobody knows, too; then their names are of use."""
    return {name: value for figure in recipe.figures for name, value in _SETTINGS[figure](size).items()}


def job_tables(recipe: Recipe, size: VmSize, shared: FileSystems, shape: Model | None) -> Iterator[TablePlan]:
    """Every table of the job, in no order that matters."""
    if "node-performance" in recipe.figures:
        yield figures_table(size)
    if "mounts" in recipe.figures:
        yield _mounts_table(shared)
    if "throughput" in recipe.figures:
        yield throughput_table(size, shape)


def _mounts_table(shared: FileSystems) -> TablePlan:
    """`mounts.tsv`: every shared file system, with the MB/s (10^6 bytes) that its tier promises.

    Only root writes to /sched (`system`), and no one to a read-only mount (`ro`).
    """
    rows = []
    for mount in shared.all:
        promised = mount.tier_arithmetic
        figures = (f"{promised[0]:g}", promised[1]) if promised else ("-", "-")
        access = "system" if mount.path == shared.sched.path else "ro" if mount.is_read_only else "rw"
        rows.append((mount.path, mount.protocol, access, *figures))
    return TablePlan("mounts.tsv", _MOUNT_COLUMNS, tuple(rows))


def expectations(hardware: VmSize) -> dict[str, str]:
    """What a healthy node of the size shows; empty if it is not published."""
    return {
        # Sizes without a configuration on main: the checks print "not supported" and end with 0.
        "EXPECT_AZNHC": "1" if hardware.aznhc else "",
        "EXPECT_GPUS": str(hardware.gpu_count) if hardware.gpu_count else "",
        "EXPECT_IB_GBPS": _text(hardware.infiniband_gbps_per_nic) if hardware.infiniband else "",
        "EXPECT_IB_PORTS": str(hardware.infiniband_nics) if hardware.infiniband else "",
        "EXPECT_MEMORY_KIB": _text(hardware.guest_memory_kib),
        "EXPECT_NVME": str(hardware.nvme_count) if hardware.nvme_count else "",
        "EXPECT_VCPUS": _text(hardware.vcpus),
        "MEMORY_TOLERANCE_PERCENT": _text(hardware.guest_memory_tolerance_percent),
    }


def _text(value: float | str | None) -> str:
    return "" if value is None else str(value)


_SETTINGS: Mapping[Figures, Callable[[VmSize], dict[str, str]]] = {
    "latency": latency,
    "links": links,
    "mounts": lambda _: {"MEDIAN_MIN_RUNS": relative_settings()["MEDIAN_MIN_RUNS"]},
    "nccl": lambda size: relative_settings() | program_setting(size),
    "node-health": expectations,
    "node-performance": node_test_settings,
    "pairs": pairs,
    "ports": ports,
    "throughput": peak_setting,
}
