"""By which figures a run of NCCL's tests is judged on a VM size, and with which message and program.

A published figure decides. Where there is none for a number of nodes and a message, one is derived: a share of the
line rate of the ports, or of what someone measured. A derived figure warns at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from .. import catalog
from ..catalog.nccl_facts import DerivedRule
from ..catalog.sizes import NcclFigure, NcclTypical, VmSize
from .sourced import titles

_GIB = 1024**3
_UNITS = {"K": 1024, "M": 1024**2, "G": _GIB}
_LISTED_FIRST = {"published": 0, "derived": 1}
_ALL_REDUCE = ("all_reduce",)
"""Published and measured figures are all of it."""


class BaselinePlan(Struct, frozen=True):
    """One figure by which a run of NCCL's tests may be judged (GB/s of 10^9 bytes)."""

    kind: Literal["published", "derived"]
    """A derived figure warns at most, and a run above it has not passed."""
    collectives: tuple[str, ...]
    """As the test programs are named, for example `all_reduce`."""
    nodes: int
    or_more: bool
    message_size: str
    """As NCCL's tests take it, for example `8G`."""
    or_larger: bool
    metric: Literal["avg busbw", "busbw"]
    algorithms: tuple[str, ...]
    """The run must have used one of them, as NCCL's log names them; empty where the figure names none."""
    fabric: str | None
    """What must have connected the nodes, `mnnvl` or `infiniband`; None where it makes no difference."""
    expected: float | None
    warn: float | None
    fail: float | None
    formula: str | None
    """How a derived figure was calculated."""
    source: str
    """Titles and addresses."""

    def applies(self, nodes: int) -> bool:
        """Whether a run on that many nodes may be judged by it."""
        return nodes == self.nodes or (self.or_more and nodes > self.nodes)


def baselines(size: VmSize) -> tuple[BaselinePlan, ...]:
    """Every figure of the size, published ones first; a job takes the first that fits its run."""
    found = [*(_published(figure) for figure in size.nccl), *_derived(size)]
    return tuple(sorted(found, key=lambda row: (_LISTED_FIRST[row.kind], row.nodes, row.or_more, row.or_larger)))


def judged_nodes(size: VmSize, at_most: int) -> int | None:
    """The smallest number of nodes, two or more, that a published figure judges; None when none is within reach.

    A figure for InfiniBand alone does not count where NVLink connects the nodes of a rack: few jobs are spread so.
    """
    found = (figure.nodes for figure in size.nccl if figure.fabric != "infiniband")
    return min((nodes for nodes in found if 1 < nodes <= at_most), default=None)


def message_size(size: VmSize, nodes: int, usual: str) -> str:
    """The message that a figure of the size judges on that many nodes, else `usual` or what the GPUs' memory can hold.

    Among published figures the one with a warning level decides, then the larger message.
    """
    rows = [row for row in baselines(size) if row.applies(nodes) and not row.or_larger]
    row = max(rows, key=_preference, default=None)
    return row.message_size if row else _bounded(usual, size.gpu_memory_gb)


def largest_message_bytes(gpu_memory_gb: int) -> int:
    """The largest message that nccl-tests does not lower by itself on GPUs of that memory (GB as marketed).

    With data checking it holds a message three times, and leaves a part of the memory to NCCL.
    Source: NVIDIA/nccl-tests, src/common.cu.
    """
    cap = catalog.nccl().size_cap
    usable = gpu_memory_gb * cap.usable_share
    reserve = min(-(-usable // cap.reserve_per_gib), cap.reserve_gib_at_most)
    return max(int((usable - reserve - cap.headroom_gib) * _GIB / cap.buffers), 0)


def relative_settings() -> dict[str, str]:
    """From which share below the median of earlier runs a run fails or warns, and how many runs make a median."""
    relative = catalog.nccl().relative
    return {
        "MEDIAN_FAIL_PERCENT": str(relative.fail_percent),
        "MEDIAN_MIN_RUNS": str(relative.runs_at_least),
        "MEDIAN_WARN_PERCENT": str(relative.warn_percent),
    }


def program_setting(size: VmSize) -> dict[str, str]:
    """The setting with the test programs of the image, where they are not those of the recipe."""
    program = catalog.nccl().programs.get(size.gpu_vendor or "")
    return {"NCCL_TEST_BINARY": program.path} if program else {}


def _published(figure: NcclFigure) -> BaselinePlan:
    return BaselinePlan(
        kind="published",
        collectives=_ALL_REDUCE,
        nodes=figure.nodes,
        or_more=figure.or_more,
        message_size=figure.message_size,
        or_larger=False,
        metric=figure.metric,
        algorithms=figure.algorithms,
        fabric=figure.fabric,
        expected=figure.expected,
        warn=figure.warn,
        fail=figure.fail,
        formula=None,
        source=titles(figure.source),
    )


def _derived(size: VmSize) -> Iterator[BaselinePlan]:
    for typical in size.nccl_typical:
        yield _of_typical(typical)
    nics, rate = size.infiniband_nics, size.infiniband_gbps_per_nic
    if size.gpu_count and nics and rate:
        fabric = "infiniband" if size.fabric_registration == "rack" else None
        rules, line = catalog.nccl().derived, f"{nics} x {rate} Gb/s / 8, the line rate of the ports"
        yield _of_ports(rules.line_rate, nics * rate, line, fabric)
        if nics == size.gpu_count:
            # What leaves a GPU for another node goes through one port; NCCL names no algorithm for it.
            yield _of_ports(rules.one_port, rate, f"{rate} Gb/s / 8, the line rate of one GPU's port", fabric)


def _of_typical(typical: NcclTypical) -> BaselinePlan:
    figures = catalog.nccl().derived.typical
    where = ", measured on the same hardware elsewhere" if typical.elsewhere else ""
    return BaselinePlan(
        kind="derived",
        collectives=_ALL_REDUCE,
        nodes=typical.nodes,
        or_more=False,
        message_size=typical.message_size,
        or_larger=False,
        metric="busbw",
        algorithms=typical.algorithms,
        fabric=typical.fabric,
        expected=typical.gb_per_s,
        warn=round(figures.share * typical.gb_per_s, 1),
        fail=None,
        formula=f"{figures.share} x {typical.gb_per_s} GB/s{where}",
        source=titles((*typical.source, *figures.source)),
    )


def _of_ports(figures: DerivedRule, gbps: int, formula: str, fabric: str | None) -> BaselinePlan:
    """A share of what ports carry, `gbps` Gb/s together."""
    return BaselinePlan(
        kind="derived",
        collectives=figures.collectives,
        nodes=figures.nodes_at_least,
        or_more=True,
        message_size=figures.message_at_least,
        or_larger=True,
        metric="busbw",
        algorithms=figures.algorithms,
        fabric=fabric,
        expected=None,
        warn=round(figures.share * gbps / 8, 1),
        fail=None,
        formula=f"{figures.share} x {formula}",
        source=titles(figures.source),
    )


def _preference(row: BaselinePlan) -> tuple[bool, bool, int]:
    return (row.kind == "published", row.warn is not None, _bytes(row.message_size))


def _bytes(message: str) -> int:
    return int(message[:-1]) * _UNITS[message[-1]]


def _bounded(usual: str, gpu_memory_gb: int | None) -> str:
    """The message, or the largest power of two below it that GPUs of that memory can hold."""
    if gpu_memory_gb is None or _bytes(usual) <= largest_message_bytes(gpu_memory_gb):
        return usual
    fitting = 1 << (max(largest_message_bytes(gpu_memory_gb), 1024).bit_length() - 1)
    unit = next(unit for unit in ("G", "M", "K") if fitting >= _UNITS[unit])
    return f"{fitting // _UNITS[unit]}{unit}"
