"""The check of the kernel's log as a whole: what it asks and keeps, and what it does when a program or a file fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from generator.files import assets
from tests.bed import kernel_log
from tests.projects.xids import FILES, T0, log, xid

LIBRARY = assets.folder("projects") / "_lib/cycleforge.sh"
# As the engine does: the check and its figures, records into a file.
CHECK = """
set -uo pipefail
for name in "$1" "$2/verdicts.sh" "$2/tools.sh" "$2/kernel-log.sh" "$2/smi.sh" "$2/checks-xid.sh"; do . "${name}"; done
declare -A GIVEN=([generation]="${GENERATION:-h100}" [look_back_h]=24)
check_gpu_xid
"""
SMI = r"""
case "$*" in
    *pci.bus_id*) printf '0, 00000000:01:00.0\n1, 00000000:9B:00.0\n' ;;
    *remapped_rows*) printf '00000000:01:00.0, No, No\n00000000:9B:00.0, Yes, No\n' ;;
esac
"""


class Root:
    """A folder for a node's root and one for its programs; `check` runs the check once."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.root, self.bin = folder, folder / "root", folder / "bin"
        self.bin.mkdir()
        self.past = self.root / "var/lib/cycleforge/health/xids"
        self.write("sys/class/dmi/id/product_uuid", "vm-1\n")
        self.write("proc/stat", f"cpu 1 2 3\nbtime {T0 - 100}\n")
        for address in ("0000:01:00.0", "0000:9b:00.0", "0000:77:00.0"):
            self.device(address)
        self.boot("boot-1")
        self.journal("Linux version 6.8")
        self.fake("nvidia-smi", SMI)

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def device(self, address: str, vendor: str = "0x10de", kind: str = "0x030200") -> None:
        """A device on the PCI bus."""
        self.write(f"sys/bus/pci/devices/{address}/vendor", f"{vendor}\n")
        self.write(f"sys/bus/pci/devices/{address}/class", f"{kind}\n")

    def boot(self, name: str) -> None:
        """Another boot of the same VM."""
        self.write("proc/sys/kernel/random/boot_id", f"{name}\n")
        shutil.rmtree(self.root / "run", ignore_errors=True)

    def fake(self, tool: str, body: str) -> None:
        path = self.bin / tool
        path.write_text(f"#!/usr/bin/env bash\necho {tool} $* >>{self.folder}/calls\n{body}\n")
        path.chmod(0o755)

    def journal(self, *lines: str, at: int = T0) -> None:
        (self.folder / "journal").write_text(log(*lines, at=at))
        self.fake("journalctl", f"cat {self.folder}/journal")

    def calls(self, tool: str) -> int:
        file = self.folder / "calls"
        return sum(line.startswith(f"{tool} ") for line in file.read_text().splitlines()) if file.exists() else 0

    def check(self, **environment: str) -> list[tuple[str, str, str, str]]:
        """Verdict, words, detail and cure of each record."""
        rows = self.folder / "rows"
        rows.write_text("")
        settings = {"CYCLEFORGE_ROOT": str(self.root), "CYCLEFORGE_ROWS": str(rows), "CYCLEFORGE_BUDGET_S": "60",
                    "CYCLEFORGE_NOW_S": str(T0 + 60), "PATH": f"{self.bin}:{os.environ['PATH']}"}  # fmt: skip
        ran = subprocess.run(["bash", "-c", CHECK, "check", LIBRARY, FILES], env=settings | environment, check=False,
                             capture_output=True, text=True, timeout=60)  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        found = [line.split("\x1f") for line in rows.read_text().splitlines()]
        assert {row[1] for row in found} == {"gpu_xid"}
        return [(row[0], row[2], row[6], row[7]) for row in found]


@pytest.fixture
def node(tmp_path: Path) -> Root:
    return Root(tmp_path)


FIRST = "first at 2026-11-18T11:06:40Z"


def test_a_quiet_log_passes_and_asks_for_nothing(node: Root) -> None:
    assert node.check() == [("pass", "0", "", "")]
    assert (node.calls("journalctl"), node.calls("dmesg"), node.calls("nvidia-smi")) == (1, 0, 0)
    assert not node.past.exists()


def test_a_finding_names_code_gpu_count_moment_and_cure(node: Root) -> None:
    node.journal(xid(119, bus=0x9B), xid(119, bus=0x9B), xid(79), "NVRM: Xid (PCI:0000:77:00): 151, x")
    fallen = "XID 79 ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS on GPU 0 (PCI 0000:01:00)"
    assert node.check() == [
        ("fail", fallen, FIRST, "service"),
        ("fail", "XID 151 ROBUST_CHANNEL_KEY_ROTATION_ERROR on GPU (PCI 0000:77:00)", FIRST, "reboot"),
        ("fail", "XID 119 GSP_RPC_TIMEOUT on GPU 1 (PCI 0000:9b:00), 2 times", FIRST, "reset"),
    ]
    node.check()
    assert node.calls("nvidia-smi") == 1, "the addresses are kept for this boot, although one is not among them"
    node.boot("boot-2")
    node.journal("Linux version 6.8", at=T0 + 9)
    assert node.check() == [("pass", "0", "", "")]


@pytest.mark.parametrize("nvidia_smi", ["exit 124", "exit 15", "echo 'No devices were found'; exit 6", "echo 'x, y'"])
def test_a_driver_that_does_not_answer_hides_no_fault(node: Root, nvidia_smi: str) -> None:
    node.fake("nvidia-smi", nvidia_smi)
    node.journal(xid(48))
    assert node.check() == [("fail", "XID 48 ROBUST_CHANNEL_GPU_ECC_DBE on GPU (PCI 0000:01:00)", FIRST, "reset")]


def test_a_hung_driver_is_asked_once_and_the_hang_is_remembered(node: Root) -> None:
    """As of every other question: a second call would stand behind the first."""
    node.fake("nvidia-smi", "exit 124")
    (node.root / "run/cycleforge").mkdir(parents=True)
    node.journal(xid(94))
    assert [verdict for verdict, *_ in node.check()] == ["warn"]
    assert node.calls("nvidia-smi") == 1, "neither row remaps nor names after it"
    node.write("proc/7/stat", "7 (nvidia-smi) D 1 7 7 0\n")
    node.write("proc/7/status", "\t".join(("Uid:", *[str(os.getuid())] * 4)) + "\n")
    node.check()
    assert node.calls("nvidia-smi") == 1, "it still hangs in the driver"


def test_a_row_remap_is_asked_for_only_where_it_matters(node: Root) -> None:
    node.journal(xid(94, bus=0x9B), xid(94))
    assert [(verdict, detail, cure) for verdict, _, detail, cure in node.check()] == [
        ("fail", f"{FIRST}; a row remap is pending", "reset"), ("warn", FIRST, ""),
    ]  # fmt: skip
    node.fake("nvidia-smi", SMI.replace("Yes, No", "0, 1"))
    node.journal(xid(157, bus=0x9B))
    node.past.unlink()
    assert node.check()[0][2:] == (f"{FIRST}; a row remap failed", "service")


def test_a_log_that_cannot_be_read_is_not_measured(node: Root) -> None:
    words = "neither journalctl nor /dev/kmsg shows a message of the kernel"
    for body in ("exit 0", "exit 1", f"echo '{kernel_log.record('of a program', T0, facility=1)}'"):
        node.fake("journalctl", body)
        assert node.check() == [("not_measured", "", words, "")]
        node.write("dev/kmsg", kernel_log.kmsg("of a program", 1, facility=3))


def test_kmsg_stands_in_for_the_journal(node: Root) -> None:
    node.fake("journalctl", "echo 'No journal files were found.' >&2; exit 1")
    node.write("dev/kmsg", kernel_log.kmsg("Linux version 6.8", 0) + kernel_log.kmsg(xid(119), 100.000001))
    assert node.check() == [("fail", "XID 119 GSP_RPC_TIMEOUT on GPU 0 (PCI 0000:01:00)", FIRST, "reset")]


def test_a_fault_stays_found_when_the_log_is_gone(node: Root) -> None:
    node.journal(xid(119))
    before = node.check()
    node.journal("Linux version 6.8")
    assert node.check() == before, "the journal has dropped its oldest lines"
    node.fake("journalctl", "exit 1")
    assert [row[0] for row in node.check()] == ["not_measured", "fail"]
    assert node.check(CYCLEFORGE_SINCE_S=str(T0))[0][0] == "not_measured"
    node.journal(xid(119))
    assert node.check(CYCLEFORGE_SINCE_S=str(T0)) == [("pass", "0", "", "")], "somebody has repaired it since"


def test_another_vm_has_no_history(node: Root) -> None:
    node.journal(xid(48))
    node.check()
    node.boot("boot-2")
    node.journal(xid(48), at=T0 + 9)
    assert node.check()[0][2:] == ("first at 2026-11-18T11:06:49Z; again within 168 h", "service")
    node.write("sys/class/dmi/id/product_uuid", "vm-2\n")
    node.boot("boot-3")
    node.journal(xid(48), at=T0 + 18)
    assert [cure for *_, cure in node.check()] == ["reset"]
    assert node.past.read_text().splitlines()[0] == "# vm vm-2"


DAMAGED = [
    "",
    "# vm vm-1\n",
    "# vm vm-1\npast\tx\n\x01\x02\npast\t1\t2\t3\n",
    "garbage\n" * 99,
    "# vm vm-1\npast\tboot-1\t-\t9\t9\t1\txid\t$(reboot)\t79\t-\t-\tx",
]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_history_is_no_obstacle(node: Root, content: str) -> None:
    node.write("var/lib/cycleforge/health/xids", content)
    node.journal(xid(119, bus=0x9B))
    assert node.check() == [("fail", "XID 119 GSP_RPC_TIMEOUT on GPU 1 (PCI 0000:9b:00)", FIRST, "reset")]


def test_a_history_that_cannot_be_written_hides_no_fault(node: Root) -> None:
    node.write("var/lib/cycleforge/health", "a file where the folder should be\n")
    node.journal(xid(119))
    assert [cure for *_, cure in node.check()] == ["reset"]


def test_a_job_is_known_in_its_epilog(node: Root) -> None:
    node.journal(xid(31), xid(13, bus=0x9B))
    mentioned = "only programs failed: XID 31 on GPU 0, 1 times, XID 13 on GPU 1, 1 times"
    assert node.check(SLURM_JOB_ID="101", SLURM_JOB_GPUS="0") == [("pass", "", mentioned, "")]
    node.journal(xid(31), xid(13, bus=0x9B), f"+9 {xid(31)}")
    words = "XID 31 ROBUST_CHANNEL_FIFO_ERROR_MMU_ERR_FLT on GPU 0 (PCI 0000:01:00)"
    found = node.check(SLURM_JOB_ID="102", SLURM_JOB_GPUS="0,1")
    assert found[0] == ("warn", words, "first at 2026-11-18T11:06:49Z; programs of jobs 101 and 102 failed on it", "")
    assert [row[0] for row in found] == ["warn", "pass"]
    strange = node.check(SLURM_JOB_ID="$(reboot)", SLURM_JOB_GPUS="x", SLURM_JOB_START_TIME="y", CYCLEFORGE_SINCE_S="z")
    assert strange == found
