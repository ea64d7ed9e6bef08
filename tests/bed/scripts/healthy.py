"""A healthy GPU node with the health project installed; tests break one thing each."""

from __future__ import annotations

import json
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

from generator import catalog
from generator.plan.health_checks import nvlinks
from tests.bed import kernel_log
from tests.bed.fakes.nvlink import NAMES, NO_NVLINK, status
from tests.bed.scripts.node import A100, FAKES, H100, TIMEOUT_FUNCTION, Node
from tests.bed.scripts.tree import Tree
from tests.bed.slurm import hardware

GOOD_GPU = "{i}, 40, Enabled, 0, 0, 0, 0, 0, 0, 0, 0, 0x0000000000000000, 1410, 1410, 1215, 1215, {fabric}, None"
REGISTERED = "Completed, Success, 0, 00000000-0000-0000-0000-000000000000"
NO_FABRIC = "[N/A], [N/A], [N/A], [N/A]"
"""Fabric fields of a node whose GPUs share NVSwitches, and of one before the H100.

Source: NVIDIA Fabric Manager User Guide, https://docs.nvidia.com/datacenter/tesla/pdf/fabric-manager-user-guide.pdf
"""
UNITS = ("nvidia-fabricmanager", "nvidia-persistenced", "nvidia-dcgm")
"""Services that a healthy node of these sizes runs. Source: Azure/azhpc-images, components of its images."""
UNWIRED = (4, 5, 10, 11, 16, 17)
"""Links of an H100 NVL card without a wire, the last one assumed. Source: Azure/azurehpc-health-checks#162."""
UPTIME_S = 100_000
MEMORY_KIB = 2**29
"""Of a size whose memory nobody has published."""
HANDLE = "Unable to determine the device handle for GPU0000:20:00.0: Unknown Error"
SLURM_USER = "slurm"
"""As cyclecloud-slurm has it. A reason shows the name of who wrote it. Source: SchedMD/slurm, src/api/node_info.c and
src/scontrol/info_config.c (`SlurmUser = name(uid)`)."""
# The names are its own: as a function it runs among those of the script.
SCONTROL = (FAKES / "scontrol").read_text()


class Healthy(Node):
    """A healthy GPU node with the health project installed; tests break one thing each."""

    rows: list[str]
    nvlinks: str
    """What `nvidia-smi nvlink --status` prints."""
    engine: str

    def set_gpus(
        self, rows: list[str], code: int = 0, remap: str = "{i}, 0, 0, 0", nvlink: str | None = None,
        second: list[str] | None = None, said: str = HANDLE,
    ) -> None:  # fmt: skip
        """Answers of nvidia-smi; with a `code` its first query ends so, having said what real ones say."""
        remapped = "\\n".join(remap.format(i=place) for place in range(len(rows)))
        listing = "\\n".join(rows)
        addresses = "\\n".join(f"{place}, 0000000{place + 1}:00:00.0" for place in range(len(rows)))
        reasons = [row.split(", ")[11] for row in rows if row.count(", ") >= 11] if second is None else second
        sample = "\\n".join(f"{place}, {reason}" for place, reason in enumerate(reasons))
        if code == 2:
            said = 'Field "clocks_event_reasons.active" is not a valid field to query.'
        first = f"printf '%s\\n' '{said}'; exit {code}" if code else f"printf '{listing}\\n'"
        self.fake(
            "nvidia-smi",
            f"""case "$*" in
    *query-gpu=index,clocks_*) printf '{sample}\\n' ;;
    *clocks_event_reasons*) {first} ;;
    *clocks_throttle_reasons*) printf '{listing}\\n' ;;
    *query-gpu=index,pci.bus_id*) printf '{addresses}\\n' ;;
    *remapped_rows*) printf '{remapped}\\n' ;;
    *nvlink*) printf '{(self.nvlinks if nvlink is None else nvlink).replace("%", "%%")}' ;;
esac""",
            light=True,
        )

    def unit(self, name: str, state: str = "active") -> None:
        (self.state / "active" / f"{name}.service").write_text(f"{state}\n")

    def booted(self, seconds_ago: float) -> None:
        self.write("proc/uptime", f"{seconds_ago:.2f} 1.00\n")

    def port(self, name: str, state: str = "4: ACTIVE", phys: str = "5: LinkUp", rate: str = "200 Gb/sec (4X HDR)",
             layer: str = "InfiniBand", downed: str = "0") -> None:  # fmt: skip
        folder = f"sys/class/infiniband/{name}/ports/1"
        for file, text in (("link_layer", layer), ("state", state), ("phys_state", phys), ("rate", rate)):
            self.write(f"{folder}/{file}", text + "\n")
        self.write(f"{folder}/counters/link_downed", downed + "\n")
        for counter in ("symbol_error", "port_rcv_errors", "port_xmit_discards", "link_error_recovery"):
            self.write(f"{folder}/counters/{counter}", "0\n")
        self.write(f"{folder}/pkeys/0", "0x8001\n")
        self.write(f"{folder}/pkeys/1", "0x7fff\n")
        self.write(f"{folder}/pkeys/2", "0x0000\n")

    def cpus(self, threads: int, sockets: int = 2) -> None:
        entries = (f"processor\t: {place}\nphysical id\t: {place % sockets}\n\n" for place in range(threads))
        self.write("proc/cpuinfo", "".join(entries))

    def memory(self, kib: int) -> None:
        self.write("proc/meminfo", f"MemTotal: {kib} kB\nSwapTotal: 0 kB\n")

    def lose_mount(self) -> None:
        """One of the two shared file systems is gone."""
        self.write("proc/mounts", "fs /sched nfs4 rw 0 0\n")

    def restore_mount(self) -> None:
        """Both are there again."""
        self.write("proc/mounts", "fs /sched nfs4 rw 0 0\nfs /shared nfs4 rw 0 0\n")

    def xid(self, code: int) -> None:
        """The kernel log shows this XID, a harmless one and another line."""
        self.kernel_log(
            "eth0: up",
            f"NVRM: Xid (PCI:0001:00:00): {code}, pid=7, name=python3, x",
            "NVRM: Xid (PCI:0001:00:00): 43, pid=7, name=python3, Ch 00000008",
        )

    def kernel_log(self, *lines: str, at: int | None = None) -> None:
        """What the kernel has printed in this boot, at this time (epoch seconds), after its first line.

        As records of `journalctl --dmesg --output=json`.
        """
        moment = int(time.time()) if at is None else at
        shown = ["Linux version 6.8.0-1015-azure", *lines]
        text = "".join(f"{kernel_log.record(line, moment)}\n" for line in shown)
        (self.state / "kernel.log").write_text(text)

    def health(self, *words: str, **extra: str) -> tuple[int, str]:
        # Only deep checks have a `timeout` in the background (`WITHOUT_FUNCTION` of the node).
        quick = {} if words[0] == "deep" else {"BASH_FUNC_timeout%%": TIMEOUT_FUNCTION}
        result = self.command(str(self.root / "opt/cycleforge/slurm_nhc/health.sh"), *words,
                              CYCLEFORGE_SAMPLE_S="0", **quick, **extra)  # fmt: skip
        return result.returncode, result.stdout + result.stderr

    def quick(self) -> dict[str, Any]:
        code, output = self.health("quick")
        assert code == 0, output
        return self.result("quick")

    def result(self, kind: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.read(f"var/lib/cycleforge/health/{kind}.json"))
        return content

    def verdict(self, check: str, kind: str = "quick") -> str:
        (found,) = [row["verdict"] for row in self.result(kind)["checks"] if row["check"] == check]
        return str(found)

    def reason(self) -> str:
        file = self.state / "slurm_reason"
        return file.read_text() if file.exists() else ""

    def only(self, *checks: str, kind: str = "quick") -> None:
        """Its runs of this kind make no other checks than these from now on, each with the figures of the size."""
        conf = self.root / f"etc/cycleforge/nhc/{kind}.conf"
        lines = conf.read_text().splitlines()
        starts = ("* || . ", *(f"* || cycleforge {check} " for check in checks))
        kept = [line for line in lines if f"{line} ".startswith(starts)]
        assert len(kept) == 1 + len(checks), f"{checks} are not all in {kept}"
        conf.write_text("\n".join(kept) + "\n")


def as_healthy(node: Node, size: str = A100) -> Healthy:
    """The same node with the words of the health tests."""
    made = Healthy.__new__(Healthy)
    made.__dict__ = node.__dict__
    fabric = REGISTERED if size == H100 else NO_FABRIC
    made.rows = [GOOD_GPU.format(i=place, fabric=fabric) for place in range(catalog.vm_size(size).gpu_count or 8)]
    made.nvlinks = nvlinks_of(size)
    return made


def nvlinks_of(name: str) -> str:
    """The links of a healthy node of this size; of one that the catalogue does not know, those of an A100 node."""
    size = catalog.vm_size(name if catalog.vm_size(name).known else A100)
    listed, active = nvlinks(size)
    if not listed:
        words = dict.fromkeys(range(size.gpu_count), NO_NVLINK)
        return status(size.gpu_model or "", size.gpu_count, 0, words=words) if size.gpu_model in NAMES else ""
    return status(size.gpu_model or "", size.gpu_count, listed, UNWIRED[: listed - active])


def healthy(node: Node, size: str = A100, deep_s: int = 0) -> Healthy:
    """Turn a fresh node into a healthy one of this size; with `deep_s` it has run deep checks, without tools.

    Its figures are those of the catalogue; a size that the catalogue does not know has the hardware of an A100 node.
    """
    _converged(size, deep_s).plant(node.folder)
    return as_healthy(node, size)


@cache
def _converged(size: str, deep_s: int) -> Tree:
    """What a fresh node has not; nothing in it names its own folder."""
    with tempfile.TemporaryDirectory(prefix="healthy-") as folder:
        node = Node(Path(folder), "slurm_nhc")
        fresh = Tree.of(node.folder)
        _install(as_healthy(node, size), size, deep_s)
        return Tree.of(node.folder).without(fresh)


def _install(made: Healthy, name: str, deep_s: int) -> None:
    """Everything as a healthy node shows it, and the project's converge."""
    size = catalog.vm_size(name)
    if not size.known:
        size = catalog.vm_size(A100)
    made.vm_size(name)
    made.attribute("cycleforge.mounts", "/sched /shared")
    made.attribute("cycleforge.health.deep_s", str(deep_s))
    made.attribute("cycleforge.health.results", "off")
    made.fake("scontrol", SCONTROL, light=True)
    (made.state / "slurm_user").write_text(f"{SLURM_USER}(11100)\n")
    made.fake("df", "printf 'Use%%  IUse%%\\n 17%%  3%%\\n'", light=True)
    made.cpus(size.vcpus or 0)
    made.memory(size.guest_memory_kib or MEMORY_KIB)
    made.restore_mount()
    made.booted(UPTIME_S)
    made.write("proc/loadavg", "0.52 0.58 0.59 1/2345 6789\n")
    made.write("sys/class/net/eth0/operstate", "up\n")
    made.write("sys/class/net/eth0/carrier_down_count", "0\n")
    made.write("proc/sys/kernel/random/boot_id", "boot-1\n")
    for place in range(size.nvme_count or 0):
        made.write(f"sys/block/nvme{place}n1/device/model", "Microsoft NVMe Direct Disk v2\n")
    for place in range(size.infiniband_nics):
        made.port(f"mlx5_ib{place}", rate=f"{size.infiniband_gbps_per_nic or 400} Gb/sec (4X)")
    made.port("mlx5_an0", layer="Ethernet", rate="100 Gb/sec")
    for mount in ("sched", "shared"):
        (made.root / mount).mkdir()
    for tool in ("mkdir", "pgrep", "pkill", "setsid", "tar"):
        if not (made.bin / tool).exists():
            made.link(tool)
    if size.gpu_vendor == "NVIDIA":
        _install_nvidia(made, name)
    elif size.gpu_vendor == "AMD":
        made.write("sys/module/amdgpu/initstate", "live\n")  # deep checks wait for it
    made.ok("20-health.sh")
    made.forget()


def _install_nvidia(made: Healthy, name: str) -> None:
    hardware.image_files(made.root, "ndv4" if name == A100 else "ndv5")
    for unit in UNITS:
        made.unit(unit)
    made.write("sys/module/nvidia_peermem/initstate", "live\n")
    hardware.add_nvidia_devices(made.root)
    made.set_gpus(made.rows)
    made.fake("journalctl", 'IFS= read -r -d "" log <"$FAKE_STATE/kernel.log"; printf %s "$log"')
    made.kernel_log()
