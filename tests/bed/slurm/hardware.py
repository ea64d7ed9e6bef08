"""What the kernel of an ND96isr_H100_v5 shows below /proc, /sys and /dev, as files that tests change while it runs.

A container cannot have InfiniBand ports, NVMe disks or 96 processors, so `fake-hardware.service` mounts these files
over the real ones at every boot of the machine, before anything of ours reads them.
"""

from __future__ import annotations

import os
import shutil
import stat
import time
from pathlib import Path

VM_SIZE = "Standard_ND96isr_H100_v5"
CPUS, SOCKETS, GPUS, PORTS, DISKS = 96, 2, 8, 8, 8
MEMORY_KIB = 1_961_032_704
"""1915071 MB, as Azure/azurehpc-health-checks:conf/nd96isr_h100_v5.conf expects."""
HEALTHY_PORT = {
    "link_layer": "InfiniBand", "state": "4: ACTIVE", "phys_state": "5: LinkUp", "rate": "400 Gb/sec (4X NDR)",
}  # fmt: skip
COUNTERS = {
    "counters": ("link_downed", "link_error_recovery", "symbol_error", "port_rcv_errors", "port_xmit_discards"),
    "hw_counters": ("roce_adp_retrans",),
}
MACHINE = Path(__file__).parent / "machine"
NULL_DEVICE = os.makedev(1, 3)

UPTIME_S = 100_000


def build(folder: Path) -> None:
    heal(folder)
    ethernet = port(folder, "mlx5_an0")
    for name, text in (HEALTHY_PORT | {"link_layer": "Ethernet", "rate": "100 Gb/sec (2X HDR)"}).items():
        _write(ethernet / name, text + "\n")
    image_files(folder)
    add_nvidia_devices(folder)
    _write(folder / "state/kernel.log", "")
    (folder / "units").mkdir()
    shutil.copy(MACHINE / "hardware.sh", folder)
    for unit in MACHINE.glob("*.service"):
        shutil.copy(unit, folder / "units")
    (folder / "dev").mkdir()
    for number in range(GPUS):
        os.mknod(folder / f"dev/nvidia{number}", 0o666 | stat.S_IFCHR, NULL_DEVICE)


def add_nvidia_devices(root: Path, gpus: int = GPUS) -> None:
    """GPUs and an NVSwitch on the PCI bus, at the addresses that the fake nvidia-smi prints.

    Classes: 0302 is a 3D controller, 0680 another bridge. Source: https://pci-ids.ucw.cz
    """
    addresses = {f"{gpu + 1:04x}:00:00.0": "0x030200" for gpu in range(gpus)} | {"0000:a9:00.0": "0x068000"}
    for address, kind in addresses.items():
        _write(root / f"sys/bus/pci/devices/{address}/vendor", "0x10de\n")
        _write(root / f"sys/bus/pci/devices/{address}/class", f"{kind}\n")


def image_files(root: Path, topology: str = "ndv5") -> None:
    """What the HPC image of a VM size has for NCCL: topology, configuration, plug-in.

    Source: Azure/azhpc-images, topology/, components/customizations/ndv5.sh
    """
    _write(root / f"opt/microsoft/{topology}-topo.xml", '<system version="1">\n  <cpu numaid="0"/>\n</system>\n')
    _write(root / f"opt/microsoft/{topology}/topo.xml", '<system version="1">\n  <cpu numaid="0"/>\n</system>\n')
    _write(
        root / "etc/nccl.conf", f"NCCL_IB_PCI_RELAXED_ORDERING=1\nNCCL_TOPO_FILE=/opt/microsoft/{topology}/topo.xml\n"
    )
    (root / "usr/local/nccl-rdma-sharp-plugins/lib").mkdir(parents=True, exist_ok=True)


def heal(folder: Path) -> None:
    """Processors, memory, disks and ports as the VM size has them, in the files that may be mounted already."""
    _write(
        folder / "proc/cpuinfo",
        "".join(f"processor\t: {number}\nphysical id\t: {number * SOCKETS // CPUS}\n\n" for number in range(CPUS)),
    )
    memory(folder, MEMORY_KIB)
    _write(folder / "proc/uptime", f"{UPTIME_S}.00 1.00\n")
    _write(folder / "sys/module/nvidia_peermem/initstate", "live\n")
    for number in range(DISKS):
        _write(folder / f"sys/block/nvme{number}n1/device/model", "Microsoft NVMe Direct Disk v2           \n")
        _write(folder / f"sys/block/nvme{number}n1/size", "1875385008\n")
    for number in range(PORTS):
        heal_port(folder, number)


def memory(folder: Path, total_kib: int) -> None:
    _write(folder / "proc/meminfo", f"MemTotal:       {total_kib} kB\nMemFree:        1900000000 kB\n"
                                    "MemAvailable:   1900000000 kB\nBuffers: 0 kB\nCached: 0 kB\nSwapTotal: 0 kB\n"
                                    "SwapFree: 0 kB\n")  # fmt: skip


def port(folder: Path, device: str) -> Path:
    """The files of the only port of an InfiniBand device."""
    return folder / f"sys/class/infiniband/{device}/ports/1"


def heal_port(folder: Path, number: int) -> None:
    files = port(folder, f"mlx5_ib{number}")
    for name, text in HEALTHY_PORT.items():
        _write(files / name, text + "\n")
    for kind, names in COUNTERS.items():
        for name in names:
            _write(files / kind / name, "0\n")
    _write(files / "pkeys/0", "0xffff\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


class Hardware:
    """Hardware and tools of a node that a test breaks while it runs. `files` is what `build` has made."""

    files: Path
    kept = frozenset({"calls", "kernel.log", "healthagent.log"})
    """What `heal` leaves in the folder of the fake tools."""

    def state(self, name: str, text: str | int | float = "") -> None:
        _write(self.files / "state" / name, f"{text}\n")

    def forget(self, name: str) -> None:
        (self.files / "state" / name).unlink(missing_ok=True)

    def calls(self, start: str = "") -> list[str]:
        path = self.files / "state/calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(start)]

    def gpus(self, count: int) -> None:
        """Only the first GPUs answer."""
        self.state("gpus", " ".join(map(str, range(count))))

    def field(self, gpu: int, name: str, value: str) -> None:
        self.state(f"gpu/{gpu}.{name}", value)

    def kernel(self, *lines: str) -> None:
        """Messages at the end of the kernel log, of this moment."""
        with (self.files / "state/kernel.log").open("a") as stream:
            stream.writelines("@{} {}\n".format(int(time.time()), line.replace("\n", r"\x0a")) for line in lines)

    def xid(self, code: int, rest: str = "pid=0, GPU has fallen off the bus.", gpu: int = 2) -> None:
        self.kernel(f"NVRM: Xid (PCI:{gpu + 1:04x}:00:00): {code}, {rest}")

    def port_down(self, number: int) -> None:
        self.port_shows(number, state="1: DOWN", phys_state="3: Disabled")

    def port_shows(self, number: int, **texts: str) -> None:
        """Another text in files of an InfiniBand port: `rate`, `state`, `phys_state`."""
        for name, text in texts.items():
            _write(port(self.files, f"mlx5_ib{number}") / name, f"{text}\n")

    def port_counts(self, number: int, name: str, value: int) -> None:
        """Another value of a counter of an InfiniBand port: `link_downed`, `symbol_error`…"""
        _write(port(self.files, f"mlx5_ib{number}") / "counters" / name, f"{value}\n")

    def memory_kib(self, total: int) -> None:
        memory(self.files, total)

    def disk_gone(self, number: int) -> None:
        shutil.rmtree(self.files / f"sys/block/nvme{number}n1")

    def heal(self) -> None:
        for path in (self.files / "state").iterdir():
            if path.name in self.kept:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        (self.files / "state/kernel.log").write_text("")
        heal(self.files)
