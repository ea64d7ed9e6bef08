"""Published figures that validation jobs judge by, as settings: NCCL bandwidths and what a healthy node shows."""

from __future__ import annotations

from ..catalog.sizes import NcclFigure, VmSize

# ---------------------------------------------------------------- NCCL

_BASELINE_NAMES = ("ALGORITHM", "EXPECTED", "FAIL", "MESSAGE_SIZE", "METRIC", "SOURCE", "WARN")


def baseline(size: VmSize, nodes: int, message_size: str | None = None) -> dict[str, str]:
    """The published NCCL figure that this run may be judged by; all empty when there is none.

    Among several the one with a warning level decides, then the larger message.
    """
    figures = [figure for figure in size.nccl if figure.applies(nodes) and message_size in (None, figure.message_size)]
    figure = max(figures, key=_preference, default=None)
    if figure is None:
        return dict.fromkeys((f"BASELINE_{name}" for name in _BASELINE_NAMES), "")
    return {
        "BASELINE_ALGORITHM": _text(figure.algorithm),
        "BASELINE_EXPECTED": _text(figure.expected),
        "BASELINE_FAIL": _text(figure.fail),
        "BASELINE_MESSAGE_SIZE": figure.message_size,
        "BASELINE_METRIC": figure.metric,
        "BASELINE_SOURCE": " ".join(figure.source),
        "BASELINE_WARN": _text(figure.warn),
        "MESSAGE_SIZE": figure.message_size,
    }


def judged_nodes(size: VmSize, at_most: int) -> int | None:
    """The smallest number of nodes, two or more, that a published figure judges; None when none is within reach."""
    return min((figure.nodes for figure in size.nccl if 1 < figure.nodes <= at_most), default=None)


def _preference(figure: NcclFigure) -> tuple[bool, int]:
    return (figure.warn is not None, int(figure.message_size.removesuffix("G")))


# ---------------------------------------------------------------- node health


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
