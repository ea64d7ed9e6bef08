"""A converged node of any VM size of the catalogue that has no NVIDIA GPUs, healthy in every figure of its size."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from generator import catalog
from tests.bed.scripts.healthy import SCONTROL, Healthy, as_healthy
from tests.bed.scripts.node import Node


def healthy_of(node: Node, size: str, *, deep_s: int = 0) -> Healthy:
    """Turn a fresh node into a healthy one of the size; its converge runs once and is copied for each test."""
    shutil.rmtree(node.folder)
    shutil.copytree(_template(size, deep_s).name, node.folder, symlinks=True)
    return as_healthy(node)


@cache
def _template(size: str, deep_s: int) -> tempfile.TemporaryDirectory[str]:
    folder = tempfile.TemporaryDirectory(prefix="sized-")
    atexit.register(folder.cleanup)
    _install(as_healthy(Node(Path(folder.name), "slurm_nhc")), size, deep_s)
    return folder


def _install(made: Healthy, name: str, deep_s: int) -> None:
    size = catalog.vm_size(name)
    made.vm_size(name)
    made.attribute("cycleforge.mounts", "/sched /shared")
    made.attribute("cycleforge.health.deep_s", str(deep_s))
    made.attribute("cycleforge.health.results", "off")
    made.fake("scontrol", SCONTROL)
    made.fake("df", "printf 'Use%%  IUse%%\\n 17%%  3%%\\n'")
    made.cpus(size.vcpus or 0)
    made.memory(size.guest_memory_kib or 0)
    made.restore_mount()
    made.write("proc/loadavg", "0.52 0.58 0.59 1/2345 6789\n")
    made.write("proc/uptime", "86400.00 1000.00\n")
    made.write("sys/class/net/eth0/operstate", "up\n")
    made.write("sys/class/net/eth0/carrier_down_count", "0\n")
    made.write("proc/sys/kernel/random/boot_id", "boot-1\n")
    for place in range(size.nvme_count or 0):
        made.write(f"sys/block/nvme{place}n1/device/model", "Microsoft NVMe Direct Disk v2\n")
    for place in range(size.infiniband_nics):
        made.port(f"mlx5_ib{place}", rate=f"{size.infiniband_gbps_per_nic} Gb/sec (4X)")
    made.port("mlx5_an0", layer="Ethernet", rate="100 Gb/sec")
    for mount in ("sched", "shared"):
        (made.root / mount).mkdir()
    for tool in ("mkdir", "pgrep", "pkill", "setsid", "tar"):
        if not (made.bin / tool).exists():
            made.link(tool)
    if size.gpu_vendor == "AMD":
        made.write("sys/module/amdgpu/initstate", "live\n")  # deep checks wait for it
    made.ok("20-health.sh")
    made.forget()
