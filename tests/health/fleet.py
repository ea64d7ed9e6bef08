"""A fleet with every kind of trouble, as it is copied from a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.health.results import A100, check, gpus, pair, reduce, result, text, write

EXPECT = "hpc-[1-16],gpu-[01-02]"
NOW = "2026-11-21T12:10:00Z"
ARGUMENTS = ("--expect", EXPECT, "--max-age", "2h", "--now", NOW)


def copies(value: str) -> dict[str, Any]:
    """Copies to the slowest GPU."""
    return check("gpu_copy_to_device", value=value, relation="ge", limit="48", unit="GB/s", detail="GPU 3")


def make(folder: Path) -> Path:
    """hpc: healthy ones and one of each trouble; gpu: another VM size; new: an unknown size."""
    for number in range(1, 9):
        quick, deep = pair(f"hpc-{number}", f"47{number}.3", physical_host=f"AMS07-{(number + 1) // 2:02d}")
        write(folder, quick | {"time": f"2026-11-21T12:0{number}:00Z"}, deep | {"time": "2026-11-21T07:00:00Z"})
    ill = {"verdict": "fail", "reason": "gpu_count 7 GPUs, expected 8 GPUs", "physical_host": "AMS07-09"}
    hung = check("nccl_all_reduce", "not_measured", detail="all_reduce_perf did not answer in time")
    write(
        folder,
        result("hpc-9", "quick", gpus("7"), check("mount_shared", "fail", detail="/shared is not mounted"), **ill),
        result("hpc-9", "deep", copies("51.2"), hung, verdict="incomplete"),
        # Its clock goes, but nothing has come from it since last night.
        *pair("hpc-10", time="2026-11-20T22:00:00Z"),
        *pair("hpc-11", "452.0", physical_host="AMS07-11"),
        *pair("hpc-12", "430.5"),
        result("hpc-13", "quick", gpus(), check("gpu_temperature", "warn", value="94", relation="le", limit="93",
                                                unit="Celsius", detail="GPU 5"), verdict="warn"),
        result("hpc-13", "deep", copies("40.1") | {"verdict": "pass"}, reduce("475.0")),
        result("hpc-14"),
    )  # fmt: skip
    (folder / "hpc-14.deep.json").write_text(text(result("hpc-14", "deep", reduce("470")))[:420])
    small = gpus() | {"limit": "8"}
    write(
        folder,
        result("gpu-01", "quick", small, vm_size=A100),
        result("gpu-01", "deep", check("nccl_all_reduce", "no_baseline", value="231.0", unit="GB/s"), reduce("1", "1"),
               vm_size=A100),
        result("gpu-02", "quick", small, vm_size=A100),
        result("gpu-02", "deep", copies("24") | {"verdict": "not_measured", "value": "", "detail": "no nvbandwidth"},
               vm_size=A100, verdict="incomplete"),
        *pair("new-1", vm_size="standard_nd999_v9", size_known=False, verdict="incomplete"),
    )  # fmt: skip
    (folder / "README").write_text("copied on Saturday\n")
    return folder
