"""Tables that the plan writes into a job's folder, by the figures that its recipe asks for."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.sizes import VmSize
from ..recipes import Recipe
from ..recipes.models import Model
from .node_benchmarks import figures_table
from .storage import FileSystems
from .throughput import throughput_table
from .types import TablePlan

_MOUNT_COLUMNS = ("path", "protocol", "access", "mb_per_s", "formula")


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
