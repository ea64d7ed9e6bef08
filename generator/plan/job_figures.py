"""Published figures that validation jobs judge by, as settings: NCCL bandwidths and what a healthy node shows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import catalog
from ..catalog.sizes import VmSize

# ---------------------------------------------------------------- NCCL

_BASELINE_NAMES = ("ALGORITHM", "EXPECTED", "FAIL", "MESSAGE_SIZE", "METRIC", "SOURCE", "WARN")


def baseline(vm_size: str, nodes: int, message_size: str | None = None) -> dict[str, str]:
    """The published NCCL figure that this run may be judged by; all empty when there is none.

    A row counts for its node count only, unless its source says that the floor holds from that count on.
    Among several the one with a warning level decides, then the larger message.
    """
    rows = [row for row in _nccl_rows(vm_size) if _applies(row, nodes)]
    if message_size is not None:
        rows = [row for row in rows if row["message_size"] == message_size]
    row = max(rows, key=_preference, default=None)
    if row is None:
        return dict.fromkeys((f"BASELINE_{name}" for name in _BASELINE_NAMES), "")
    # A published floor stands for a failure where the source names no lower one.
    fail = row["fail"] if row["fail"] is not None else row.get("published_floor")
    return {
        "BASELINE_ALGORITHM": _algorithm(row["algorithm"]),
        "BASELINE_EXPECTED": _text(row["expected"]),
        "BASELINE_FAIL": _text(fail),
        "BASELINE_MESSAGE_SIZE": row["message_size"],
        "BASELINE_METRIC": "avg busbw" if row["metric"].startswith("avg") else "busbw",
        "BASELINE_SOURCE": " ".join(row["source"]),
        "BASELINE_WARN": _text(row["warn"]),
        "MESSAGE_SIZE": row["message_size"],
    }


def judged_nodes(vm_size: str, at_most: int) -> int | None:
    """The smallest number of nodes, two or more, that a published figure judges; None when none is within reach."""
    counts = sorted({row["nodes"] for row in _nccl_rows(vm_size) if row["nodes"] and _applies(row, row["nodes"])} - {1})
    return next((count for count in counts if count <= at_most), None)


def _nccl_rows(vm_size: str) -> list[Mapping[str, Any]]:
    return [row for row in catalog.vm_size(vm_size).nccl if row["warn"] is not None or row["fail"] is not None]


def _applies(row: Mapping[str, Any], nodes: int) -> bool:
    if nodes == 1:
        # A clock lock that this job does not set belongs to some rows.
        return row["scope"] == "single_node" and "clock locked" not in row.get("note", "")
    if row["scope"] != "multi_node_infiniband" or row["nodes"] is None:
        return False
    return bool(nodes == row["nodes"] or ("published_floor" in row and nodes >= row["nodes"]))


def _preference(row: Mapping[str, Any]) -> tuple[bool, int]:
    return (row["warn"] is not None, int(row["message_size"].removesuffix("G")))


def _algorithm(stated: str | None) -> str:
    """The word that the job reads from NCCL's log; empty when the source states none."""
    lower = (stated or "").lower()
    return next((word for word in ("collnet", "nvls") if word in lower), "")


# ---------------------------------------------------------------- node health


def expectations(hardware: VmSize) -> dict[str, str]:
    """What a healthy node of the size shows; empty where nobody published it."""
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
