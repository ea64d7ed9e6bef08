"""What a node with eight MI300X shows of its GPUs: files of the driver amdgpu, rocm-smi, the kernel log.

Sources: Linux Documentation/gpu/amdgpu (error counts: `ue: N` and `ce: N`; hwmon: temp2 is the junction, thousandths
of a degree); drivers/gpu/drm/amd/amdkfd/kfd_topology.c (link tables, type 11 is XGMI); ROCm/rocm_smi_lib
python_smi_tools/rocm_smi.py (lines, exit status 0 also where the driver is missing); Azure/azhpc-images
components/install_rocm.sh (device 1002:74b5, one per GPU).
"""

from __future__ import annotations

import re
import shutil
import time
from pathlib import Path
from typing import Protocol

from tests.bed import kernel_log
from tests.bed.scripts.healthy import Healthy, healthy
from tests.bed.scripts.node import Node

MI300X = "Standard_ND96isr_MI300X_v5"
GPUS = 8
STARTED = (
    "[drm] amdgpu kernel modesetting enabled.",
    "amdgpu 0002:00:00.0: amdgpu: RAS: optional ras ta ucode is not available",
    "amdgpu: ring gfx_0.0.0 uses VM inv eng 0 on hub 0",
)
"""What the kernel log has of every start of the driver."""
_REFUSES = """\
if [[ "$*" != --showid ]]; then
    printf 'usage: rocm-smi [-h] [--showid] ...\\nrocm-smi: error: unrecognized arguments: %s\\n' "$*" >&2
    exit 2
fi"""
"""What argparse, which reads its options, does with another one: https://docs.python.org/3/library/argparse.html"""
_NO_DRIVER = "echo 'ERROR:root:Driver not initialized (amdgpu not found in modules)' >&2; exit 0"


class Files(Protocol):
    """A node whose files and programs are written from outside: one of the script tests, or one that runs."""

    root: Path

    def write(self, path: str, text: str, /) -> object:
        """A file below the root."""

    def fake(self, tool: str, body: str, /) -> object:
        """A program in Bash in place of a tool."""


class AmdGpus:
    """Eight MI300X of a node; tests break one thing each."""

    def __init__(self, node: Files) -> None:
        self._files = node
        self.heal()

    def _write(self, path: str, text: str) -> None:
        """Most of a node is as it was, and there are a hundred files."""
        target = self._files.root / path
        if not target.exists() or target.read_text() != text:
            self._files.write(path, text)

    def heal(self) -> None:
        self.load_driver()
        for place in range(GPUS):
            self.add_gpu(place)
        self.serve(GPUS)

    @staticmethod
    def pci(place: int) -> str:
        return f"sys/bus/pci/devices/{place + 2:04x}:00:00.0"

    def lose(self, place: int) -> None:
        shutil.rmtree(self._files.root / self.pci(place))

    def load_driver(self) -> None:
        """The module is there, as `/sys/module/*/initstate` says it of one that has finished loading."""
        self._write("sys/module/amdgpu/initstate", "live\n")

    def unload_driver(self, uptime_s: float) -> None:
        """The image has not loaded it, or nobody has, so long after the boot."""
        (self._files.root / "sys/module/amdgpu/initstate").unlink()
        self._write("proc/uptime", f"{uptime_s:.2f} 100.00\n")
        self._files.fake("rocm-smi", _NO_DRIVER)

    def add_gpu(self, place: int) -> None:
        """A GPU on the bus, without errors, at 45 of 100 degrees, linked to all others."""
        folder = self.pci(place)
        self._write(f"{folder}/vendor", "0x1002\n")
        self._write(f"{folder}/class", "0x120000\n")
        self._write(f"{folder}/device", "0x74b5\n")
        for block in ("umc", "gfx", "xgmi_wafl"):
            self.errors(place, block, 0)
        self.temperature(place, 45)
        others = [other for other in range(GPUS) if other != place]
        self._write(f"sys/class/kfd/kfd/topology/nodes/{place + 2}/gpu_id", f"{place + 1000}\n")
        for link, other in enumerate(others):
            self._write(
                f"sys/class/kfd/kfd/topology/nodes/{place + 2}/io_links/{link}/properties",
                f"type 11\nversion_major 0\nnode_from {place + 2}\nnode_to {other + 2}\nweight 15\n",
            )

    def errors(self, place: int, block: str, uncorrectable: int, correctable: int = 0) -> None:
        """What the driver has counted in a block of a GPU."""
        self._write(f"{self.pci(place)}/ras/{block}_err_count", f"ue: {uncorrectable}\nce: {correctable}\n")

    def temperature(self, place: int, celsius: int) -> None:
        """Of the junction."""
        folder = f"{self.pci(place)}/hwmon/hwmon{place + 1}"
        for file, text in (("temp2_label", "junction"), ("temp2_input", f"{celsius}000"), ("temp2_crit", "100000")):
            self._write(f"{folder}/{file}", text + "\n")

    def lose_link(self, place: int, link: int) -> None:
        """One link of a GPU did not come up, so the driver lists it as one over PCI Express (type 2)."""
        path = f"sys/class/kfd/kfd/topology/nodes/{place + 2}/io_links/{link}/properties"
        self._write(path, (self._files.root / path).read_text().replace("type 11", "type 2"))

    def serve(self, count: int) -> None:
        """rocm-smi prints several lines for each GPU, tabs before the colon."""
        lines = [
            f"GPU[{place}]\\t\\t: {name}" for place in range(count)
            for name in ("Device Name: AMD Instinct MI300X VF", "Device ID: 0x74b5", f"GUID: {place + 1000}")
        ]  # fmt: skip
        rule = "=" * 40
        shown = "\\n".join(["", f"{rule} ID {rule}", *lines, rule])
        self._files.fake("rocm-smi", f"{_REFUSES}\nprintf '{shown}\\n'")


class AmdNode(AmdGpus):
    def __init__(self, node: Node, *, deep_s: int = 0) -> None:
        self.node: Healthy = healthy(node, MI300X, deep_s=deep_s)
        super().__init__(self.node)
        self.log()

    def log(self, *lines: str) -> None:
        """The kernel log since the look-back: lines of every start of the driver, and these."""
        shown = (kernel_log.record(line, time.time(), _device(line)) for line in (*STARTED, *lines))
        self.node.fake("journalctl", "cat <<'END'\n" + "\n".join(shown) + "\nEND")


def _device(line: str) -> str:
    """What dev_err() and its like tell beside a message: the device whose name it begins with."""
    found = re.match(r"amdgpu ([0-9a-f:.]+): ", line)
    return f"+pci:{found[1]}" if found else ""
