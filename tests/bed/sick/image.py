"""The disk of a healthy emulated node: hardware, fake tools, and slurm_nhc as its own scripts have converged it."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from generator import catalog
from tests.bed.fakes import NVIDIA_SMI
from tests.bed.scripts.node import Node
from tests.bed.slurm import hardware
from tests.bed.slurm.cluster import FAKES

PROJECT = "slurm_nhc"
ATTRIBUTES = {
    "cycleforge.mounts": "/sched /shared",
    "cycleforge.health.deep_s": "0",
    "cycleforge.health.results": "off",
}
"""What the cluster template says where the test does not."""
MOUNTS = ("sched", "shared")
MOUNT_LINE = "fs /{name} nfs4 rw,hard 0 0\n"
KERNEL = {
    "proc/loadavg": "0.52 0.58 0.59 1/2345 6789\n",
    "sys/class/net/eth0/operstate": "up\n",
    "sys/class/net/eth0/carrier_down_count": "0\n",
}
"""What the kernel of a healthy node shows beside `hardware`."""
ACTIVE = ("nvidia-fabricmanager", "nvidia-persistenced", "nvidia-dcgm")
"""Services that a healthy ND96isr_H100_v5 runs. Source: Azure/azhpc-images, components of its images."""
KEPT = ("attributes", "active", "installed", "jetpack.sh", "time.flies", "vm_id")
"""What of `state` is the node's and no fault."""
TOOLS = ("nvidia-smi", "nvbandwidth", "ib_write_bw", "mpirun", "dcgmi", "all_reduce_perf")
BESIDE = ("journalctl", "health", "healthagent.sh", "curl")
ON_HOST = (*(tool for tool in TOOLS if tool != "ib_write_bw"), *BESIDE)
"""Fakes in Bash, which knows the name of its host."""
CONVERGE_NEEDS = ("mkdir", "pgrep", "pkill", "setsid", "tar", "perl", "sync", "timeout", "tee")
DF = """#!/bin/bash
# Fake df: the system disk of a node. State: df, another line of percentages.
if [[ -e "${FAKE_STATE}/df" ]]; then answer="$(<"${FAKE_STATE}/df")"; else answer=" 17%   3%"; fi
printf 'Use%% IUse%%\\n%s\\n' "${answer}"
"""
CURL = """#!/bin/bash
# Fake curl: instance metadata of a VM, which tells its vmId; nothing else can be reached. State: vm_id.
# It refuses what comes without its header (HTTP 400) and what comes through a proxy.
# Source: learn.microsoft.com/azure/virtual-machines/instance-metadata-service
[[ "$*" == *http://169.254.169.254/metadata/instance/* ]] || exit 7
if [[ "$*" != *"Metadata:true"* || "$*" != *"--noproxy *"* || "$*" != *api-version=* ]]; then exit 22; fi
[[ "$*" == */compute/vmId\\?*format=text* ]] || exit 22
printf %s "$(</fake/state/vm_id)"
"""
STAT = """
# Stands before stat while a file system does not answer, the one that the file stat.hang names.
if [[ "$1" == --file-system && "${*: -1}" == *"$(<"${FAKE_STATE}/stat.hang")" ]]; then
    read -r caller <"/proc/${PPID}/comm"
    if [[ "${caller}" == timeout ]]; then sleep 0.1; kill -ALRM "${PPID}"; fi
    exec sleep 3600
fi
exec /usr/bin/stat "$@"
"""


def node_disk(target: Path, vm_size: str = hardware.VM_SIZE, attributes: Mapping[str, str] | None = None) -> None:
    """Make the folder of a new node: a copy of one that was converged once for this size and these attributes."""
    shutil.copytree(_converged(vm_size, tuple(sorted({**ATTRIBUTES, **(attributes or {})}.items()))).name, target,
                    symlinks=True)  # fmt: skip


@cache
def _converged(vm_size: str, attributes: tuple[tuple[str, str], ...]) -> tempfile.TemporaryDirectory[str]:
    """A converged node, made once for each process and copied: nothing in it names its own folder."""
    folder = tempfile.TemporaryDirectory(prefix="sick-")
    atexit.register(folder.cleanup)
    node = Node(Path(folder.name), PROJECT)
    (node.root / "state").symlink_to("../state")
    hardware.build(node.root)
    shutil.rmtree(node.root / "dev")
    if catalog.vm_size(vm_size).gpu_vendor != "NVIDIA":
        shutil.rmtree(node.root / "sys/bus/pci")
    node.vm_size(vm_size)
    for key, value in attributes:
        node.attribute(key, value)
    _files(node)
    _programs(node)
    node.ok("20-health.sh")
    _as_on_a_host(node)
    return folder


def _files(node: Node) -> None:
    mounts = "".join(MOUNT_LINE.format(name=name) for name in MOUNTS)
    for name in (*MOUNTS, "run"):
        (node.root / name).mkdir(exist_ok=True)
    node.write("proc/mounts", mounts)
    # Who listens is the network's of the node.
    (node.root / "proc/net").symlink_to("/proc/net")
    for path, text in KERNEL.items():
        node.write(path, text)
    node.write("proc/sys/kernel/random/boot_id", "00000000-0000-0000-0000-000000000000\n")
    (node.state / "time.flies").touch()
    for name in ACTIVE:
        for unit in (name, f"{name}.service"):
            (node.state / "active" / unit).write_text("active\n")


def _programs(node: Node) -> None:
    for tool in CONVERGE_NEEDS:
        if not (node.bin / tool).exists():
            node.link(tool)
    for tool in TOOLS:
        shutil.copy(NVIDIA_SMI if tool == NVIDIA_SMI.name else FAKES / tool, node.bin / tool)
    (node.bin / "journalctl").unlink(missing_ok=True)
    shutil.copy(FAKES / "kernel-log", node.bin / "journalctl")
    for name in ("health", "healthagent.sh"):
        shutil.copy(FAKES / name, node.bin / name)
    for name, text in (("df", DF), ("curl", CURL)):
        (node.bin / name).unlink(missing_ok=True)
        (node.bin / name).write_text(text)
        (node.bin / name).chmod(0o755)
    nccl = node.root / "opt/nccl-tests/build/all_reduce_perf"
    nccl.parent.mkdir(parents=True)
    shutil.copy(FAKES / "all_reduce_perf", nccl)


def _as_on_a_host(node: Node) -> None:
    """The host's own programs are behind these on a running node; and nothing has been asked yet.

    A job has no FAKE_STATE: the tools find their folder by the name of the host that they run on.
    """
    node.forget()
    (node.bin / "timeout").unlink()
    for path in node.bin.iterdir():
        if path.is_symlink():
            path.unlink()
        elif path.name in ON_HOST:
            path.write_text(path.read_text().replace("/fake/state", "/mnt/sick/${HOSTNAME}/state"))
