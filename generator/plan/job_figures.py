"""What a healthy node shows, as settings of the jobs that look at nodes."""

from __future__ import annotations

from ..catalog.sizes import VmSize


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
