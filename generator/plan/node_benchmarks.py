"""By which figures the tests of single nodes are judged on a VM size, and what they need to know of it.

A published floor fails and warns. What someone measured once is typical: a share of it warns, and nothing passes by it.
Without either, nodes are compared with each other.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from msgspec import Struct

from .. import catalog
from ..catalog.sizes import VmSize
from .health_checks import nvlinks
from .measured_checks import figures_of
from .sourced import titles

_COLUMNS = ("check", "tool", "expected", "warn", "fail", "unit", "kind", "formula", "source")
_UNITS = {"gemm": "TFLOPS", "hbm": "GB/s", "nvme": "MB/s"}
"""Of typical figures, by the first word of their check."""
_AMD_COPIES = "rocm-bandwidth-test"
"""With which the health checks of AMD's GPUs measure, too."""


class TablePlan(Struct, frozen=True):
    """A table that a job reads, one file beside its scripts; `-` stands where a row has nothing."""

    file: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def figures_table(size: VmSize) -> TablePlan:
    """`figures.tsv`: one row for each check and tool."""
    return TablePlan("figures.tsv", _COLUMNS, tuple(sorted((*_floors(size), *_copies(size), *_typical(size)))))


def node_test_settings(size: VmSize) -> dict[str, str]:
    """What the tests need to know of a size: GEMM types, NVLinks of a GPU, disks, when a GPU is too hot or slowed."""
    common, fleet = catalog.health().common_checks, catalog.health().fleet_statistics
    types = catalog.node_benchmarks().gemm_types
    links = nvlinks(size)
    model = catalog.gpu_generation(size.gpu_model) or (size.gpu_model or "").rpartition(" ")[2].lower()
    return {
        "FLEET_FAIL_PERCENT": str(fleet.fail_percent_below_expected),
        "FLEET_WARN_PERCENT": str(fleet.warn_percent_below_expected),
        "GEMM_TYPES": getattr(types, model, "fp16"),
        "NVLINKS_ACTIVE": str(links[1]),
        "NVLINKS_LISTED": str(links[0]),
        "NVME_JOBS": str(size.nvme_count or 1),
        "TEMPERATURE_WARN_C": str(common.gpu_temperature.warn_above),
        "THROTTLE_MASK": str(common.gpu_throttling.error_mask),
    }


def _floors(size: VmSize) -> Iterator[tuple[str, ...]]:
    for row in catalog.node_benchmarks().floors.get(size.name, ()):
        figures = (_text(row.expected), _text(row.warn), _text(row.fail))
        yield (row.check, row.tool, *figures, str(row.unit), "published", "-", titles(row.source))


def _copies(size: VmSize) -> Iterator[tuple[str, ...]]:
    """The floors of the health checks, which measure the same."""
    amd = figures_of(size, "amd_copies")
    for check, key in (("copy_from_gpu", "host"), ("copy_peer", "peer"), ("copy_to_gpu", "host")) if amd else ():
        floor = _text(amd[f"{key}_floor_gb_per_s"])
        yield (check, _AMD_COPIES, "-", "-", floor, "GB/s", "published", "-", amd["source"])
    tool = catalog.node_benchmarks().tools.copies
    for group, checks in (("gpu_copy", ("copy_from_gpu", "copy_to_gpu")), ("gpu_copy_peer", ("copy_peer",))):
        found = figures_of(size, group)
        if not found:
            continue
        figures = ("-", _text(found["warn_below_gb_per_s"]), _text(found["floor_gb_per_s"]))
        for check in checks:
            yield (check, tool, *figures, "GB/s", "published", "-", found["source"])


def _typical(size: VmSize) -> Iterator[tuple[str, ...]]:
    benchmarks = catalog.node_benchmarks()
    row = benchmarks.typical.sizes.get(size.name)
    share, tools = benchmarks.derived.share, msgspec.structs.asdict(benchmarks.tools)
    for check, value in row.figures.items() if row else ():
        kind = check.split("_", 1)[0]
        unit = _UNITS[kind]
        figures = (_text(value), _text(round(share * value, 1)), "-")
        formula = f"{share} x {value} {unit}, measured once"
        yield (check, tools[kind], *figures, unit, "derived", formula, titles(row.source if row else ()))


def _text(value: float | None) -> str:
    return "-" if value is None else str(value)
