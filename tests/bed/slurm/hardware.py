"""What the kernel of an ND96isr_H100_v5 shows below /proc, /sys and /dev, as files that tests change while it runs.

A container cannot have InfiniBand ports, NVMe disks or 96 processors, so `fake-hardware.service` mounts these files
over the real ones at every boot of the machine, before anything of ours reads them.
"""

from __future__ import annotations

import os
import stat
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
NULL_DEVICE = os.makedev(1, 3)

UNIT = """\
# The hardware of a GPU node for the tests: its files over the real /proc and /sys.
[Unit]
Description=Hardware of the test machine
DefaultDependencies=no
After=local-fs.target
Before=sysinit.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/bash /fake/hardware.sh

[Install]
WantedBy=sysinit.target
"""
SCRIPT = """\
set -euo pipefail
for file in cpuinfo meminfo; do mount --bind "/fake/proc/${file}" "/proc/${file}"; done
# The classes that exist stay visible; infiniband is the one that is added.
mkdir -p /run/fake-class
mount --rbind /fake/sys/class /run/fake-class
for class in /sys/class/*; do
    mkdir -p "/run/fake-class/${class##*/}"
    mount --bind "${class}" "/run/fake-class/${class##*/}"
done
mount --rbind /run/fake-class /sys/class
mount --bind /fake/sys/block /sys/block
"""


def build(folder: Path) -> None:
    """Everything below the folder that the machine sees as /fake."""
    _write(
        folder / "proc/cpuinfo",
        "".join(f"processor\t: {number}\nphysical id\t: {number * SOCKETS // CPUS}\n\n" for number in range(CPUS)),
    )
    _write(folder / "proc/meminfo", f"MemTotal:       {MEMORY_KIB} kB\nMemFree:        1900000000 kB\n"
                                    "MemAvailable:   1900000000 kB\nBuffers: 0 kB\nCached: 0 kB\nSwapTotal: 0 kB\n"
                                    "SwapFree: 0 kB\n")  # fmt: skip
    for number in range(PORTS):
        heal_port(folder, number)
    ethernet = port(folder, "mlx5_an0")
    for name, text in (HEALTHY_PORT | {"link_layer": "Ethernet", "rate": "100 Gb/sec (2X HDR)"}).items():
        _write(ethernet / name, text + "\n")
    for number in range(DISKS):
        _write(folder / f"sys/block/nvme{number}n1/device/model", "Microsoft NVMe Direct Disk v2           \n")
        _write(folder / f"sys/block/nvme{number}n1/size", "1875385008\n")
    _write(folder / "state/kernel.log", "")
    _write(folder / "hardware.sh", SCRIPT)
    _write(folder / "units/fake-hardware.service", UNIT)
    (folder / "dev").mkdir()
    for number in range(GPUS):
        os.mknod(folder / f"dev/nvidia{number}", 0o666 | stat.S_IFCHR, NULL_DEVICE)


def port(folder: Path, device: str) -> Path:
    """The files of the only port of an InfiniBand device."""
    return folder / f"sys/class/infiniband/{device}/ports/1"


def heal_port(folder: Path, number: int) -> None:
    """Let a port be active, at full speed, with no link losses."""
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
