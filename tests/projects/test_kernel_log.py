"""Only what the driver writes of a device on the bus is a fault: no user's text is, wherever the kernel prints it."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from tests.bed import kernel_log
from tests.projects.crashes import crash
from tests.projects.xids import AWKS, FILES, T0, found, judge, log, read

GPU, SWITCH, AMD_GPU = "0000:18:00", "0000:a9:00", "0000:c1:00.0"
DRIVER = (
    f"NVRM: Xid (PCI:{GPU}): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
    f"NVRM: Xid ({GPU}): 48, x",
    f"NVRM: Xid (PCI:{GPU} GPU-I:05): 95, pid=7, name=x, Uncontained: LTC TAG (0x2,0x0)",
    f"NVRM: Xid (PCI:{GPU}): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
    f"NVRM: GPU {GPU}.0: GPU has fallen off the bus.",
    f"NVRM: GPU at {GPU}.0 has fallen off the bus.",
    f"NVRM: GPU at PCI:{GPU}: GPU has fallen off the bus.",
    f"NVRM: The NVIDIA GPU {GPU}.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands.",
    f"nvidia-nvswitch0: SXid (PCI:{SWITCH}.0): 20034, Fatal, Link 30 LTSSM Fault Up",
)  # fmt: skip
"""What the driver writes, in each form that counts."""
# Where the kernel prints a name that a user chooses: {comm} has at most 15 bytes, {file} 255, {text} any number. The
# first is of Linux 6.18, on x86: program "NVRM: GPU a0:b " in the file "fallen off the bus".
PLACES = (
    "{comm}[24066]: segfault at 0 ip 00005562e8f3716a sp 00007ffc0969fbc0 error 6 in {file}[116a,5562e8f37000+1000] "
    "likely on CPU 1 (core 1, socket 0)",  # arch/x86/mm/fault.c (show_signal_msg)
    " in {file}[116a,5562e8f37000+1000]",  # its end by itself, when another CPU prints in between
    "traps: {comm}[1] trap invalid opcode ip:401000 sp:7ffc error:0 in {file}[401000+1000]",  # arch/x86/kernel/traps.c
    "traps: {comm}[1] general protection fault ip:401000 sp:7ffc error:0 in {file}[401000+1000]",
    "{comm}[1]: unhandled exception: SP/PC Alignment, ESR 0x8a000000, in {file}[400+1]",  # arch/arm64/kernel/traps.c
    "{comm}/24066: potentially unexpected fatal signal 11.",  # kernel/signal.c
    "{comm} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",  # mm/oom_kill.c
    "Out of memory: Killed process 7 ({comm}) total-vm:1kB, anon-rss:1kB",
    "oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg=/user.slice/{file},task={comm},pid=7,uid=1000",
    "{comm}: page allocation failure: order:4, mode:0xcc0(GFP_KERNEL)",  # mm/page_alloc.c
    "{comm} (24066) used greatest stack depth: 11112 bytes left",  # kernel/exit.c
    "INFO: task {comm}:7 blocked for more than 120 seconds.",  # kernel/hung_task.c
    "process '{text}' started with executable stack",  # fs/exec.c
    "tmpfs: Unknown parameter '{text}'",  # fs/fs_context.c, in a user's own namespace
    "{comm}: port 1(veth0) entered blocking state",  # net/bridge, in a user's own namespace
    "NVRM: Xid (PCI:0000:18:00): 43, pid=7, name={comm}, Ch 00000008",  # kernel_rc.c; 43 asks for nothing
    "NVRM: API mismatch: the client '{comm}' (pid 7)\nNVRM: has the version 1.",  # nv.c
)


def forged(genuine: tuple[str, ...]) -> Iterator[str]:
    """Every record that a user can make with parts of what a driver writes."""
    for text in genuine:
        comms = {text[:15], f"\n{text[:14]}", f"x\n{text[:13]}", f"{text[:11]}7): 7"[:15], f"{text[:10]}a0:b "[:15]}
        rest = (text, f"\n{text}", text[15:], f"x\n{text}\n", f"\r{text}", f'","MESSAGE":"{text}', f"\\x0a{text}")
        for place in PLACES:
            for comm in comms | {"fallen off the ", "has fallen off "}:
                for long in rest:
                    yield place.format(comm=comm, file=long.replace("/", "")[:255], text=long)


@pytest.mark.parametrize("awk", AWKS)
@pytest.mark.parametrize("style", ["252", "239", "kmsg"])
def test_no_text_of_a_user_is_an_event(awk: str, style: Literal[kernel_log.Style, "kmsg"]) -> None:
    devices = f"{GPU} {SWITCH}"

    def written(message: str) -> str:
        if style == "kmsg":
            return kernel_log.kmsg(message, 1)
        return kernel_log.record(message, T0, style=style) + "\n"

    for text in DRIVER:
        assert "\tunread\t" not in read(written(text), awk, devices=devices)
        assert "event" in read(written(text), awk, devices=devices), f"the driver's own counts: {text}"
    made = sorted(set(forged(DRIVER)))
    events = read("".join(map(written, made)), awk, devices=devices).splitlines()
    assert events[0] == f"records\t{len(made)}"
    assert {event.split("\t")[6] for event in events[1:]} <= {"43"}, events[1:]


@pytest.mark.parametrize("text", DRIVER)
def test_only_devices_of_the_vendor_count(text: str) -> None:
    assert "event" in read(log(text), devices=f"{GPU} {SWITCH}")
    assert "event" not in read(log(text), devices="")
    assert "event" not in read(log(text), devices="0000:19:00 0001:18:00 0000:18:01")


@pytest.mark.parametrize("facility", [1, 3, 23])
def test_what_a_program_writes_to_the_log_is_not_the_kernels(facility: int) -> None:
    made = "".join(kernel_log.record(text, T0, facility=facility) + "\n" for text in DRIVER)
    made += "".join(kernel_log.kmsg(text, 1, facility=facility) for text in DRIVER)
    assert read(made, devices=f"{GPU} {SWITCH}") == "records\t0\n"


NETIR = "NETIR_LINK_EVT  {}   XC0 i0 Link 01 (0x021425c6 0x0)"


@pytest.mark.parametrize("name", [", A Fatal ", ", A Nonfatal ", "x, B Fatal 0x1,", "python3", "a\nb, C Fatal "])
@pytest.mark.parametrize(("word", "cure"), [("Fatal", "reset"), ("Nonfatal", "warn")])
def test_the_name_of_a_program_is_no_word_of_the_driver(name: str, word: str, cure: str) -> None:
    text = f"NVRM: Xid (PCI:{GPU}): 145, pid=7, name={name}, {NETIR.format(word)}"
    assert found(text, generation="gb200") == {"145": cure}


def test_a_name_that_is_no_text_hides_no_fault() -> None:
    """journalctl prints such a message as a list of bytes."""
    message = f"NVRM: Xid (PCI:{GPU}): 119, pid=7, name=\udcff\x01\udc80, Timeout after 6s of waiting"
    styles: tuple[kernel_log.Style, ...] = ("252", "239")
    for style in styles:
        shown = kernel_log.record(message, T0, style=style)
        assert '"MESSAGE":[78,' in shown.replace(" ", "")
        for awk in AWKS:
            assert "\t119\t" in read(shown + "\n", awk, devices=GPU)


def test_what_a_program_has_left_with_an_older_version_is_no_fault() -> None:
    kept = "past\tb1\t-\t{0}\t{0}\t1\txid\t{1}\t79\t-\t-\tNVRM: GPU a0:b [7]: segfault at 0 ... in fallen off the bus\n"
    assert judge(kept.format(T0, GPU)).findings != []
    for address in ("0000:a0:b", "a0:b", "0000:0:b", "-", "18:00"):
        assert judge(kept.format(T0, address)).findings == [], address


def test_a_torn_log_says_nothing() -> None:
    """Records were overwritten while /dev/kmsg was read, or it could not be read."""
    whole = kernel_log.kmsg(DRIVER[0], 1)
    for code in (0, 124):
        assert "event" in read(f"{whole}end {code}\n", devices=GPU)
    for code in (1, 127):
        assert read(f"{whole}end {code}\n", devices=GPU).startswith("records\t0\n")


# ---------------------------------------------------------------- a real kernel

# Program and file. The first was XID 79 on every node that ran it; the others try each place and each form.
ATTACKS = [
    ("NVRM: GPU a0:b ", "fallen off the bus"),
    ("NVRM: GPU 0:b: ", "GPU has fallen off the bus"),
    ("NVRM: Xid (PCI:", f"{GPU}): 79, pid=1, name=x, GPU has fallen off the bus."),
    ("NVRM: Xid (): 7", "9, x"),
    ("\nNVRM: GPU a:b ", "has fallen off the bus"),
    ("two lines", f"x\n{DRIVER[0]}"),
    ("three lines", f"x\n{DRIVER[7]}"),
    ("nvidia-nvswitch", f"0: SXid (PCI:{SWITCH}.0): 20034, Fatal, x"),
    ("switch", f"\n{DRIVER[8]}"),
    ("amdgpu 0000:c1:", f"00.0: amdgpu: GPU reset(1) failed\namdgpu {AMD_GPU}: amdgpu: GPU reset(1) failed"),
    ("GPU reset begin", f'","MESSAGE":"{DRIVER[0]}'),
]
# The two readers, on a root whose bus has the devices that the attacks name.
CHECKS = r"""
set -uo pipefail
shopt -s nullglob
. "$1"
for name in verdicts tools kernel-log smi checks-xid checks-amd; do . "$2/${name}.sh"; done
declare -A GIVEN=([generation]=h100 [look_back_h]=24)
check_gpu_xid
check_amd_log
"""
JOURNALD = next((path for path in ("/usr/lib/systemd/systemd-journald", "/lib/systemd/systemd-journald")
                 if os.access(path, os.X_OK)), None)  # fmt: skip
# A journald of the test's own, which reads the kernel's log: nobody else sees its sockets and files.
IN_A_JOURNAL = r"""
set -euo pipefail
mount --make-rprivate /
for path in /run/systemd /run/log; do
    mkdir -p "${path}"
    mount -t tmpfs tmpfs "${path}"
done
mkdir -p /run/systemd/journal /run/systemd/journald.conf.d /run/log/journal
printf '[Journal]\nStorage=volatile\nAudit=no\nReadKMsg=yes\n' >/run/systemd/journald.conf.d/test.conf
"${JOURNALD}" &
trap 'kill "$!"; wait' EXIT
tries=0
until journalctl --dmesg --quiet --no-pager --output=cat 2>/dev/null | grep --fixed-strings "${LAST}" >/dev/null; do
    ((++tries < 300))
    sleep 0.1
done
bash -c "$1" check "$2" "$3"
"""


@pytest.fixture(scope="module")
def crashed() -> str:
    """Every attack has been made by a user without rights; a word of the last record."""
    if os.getuid() != 0 or platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("reads the kernel's log as root, and knows programs of two processors")
    last = f"last{os.getpid()}"
    for comm, file in [*ATTACKS, (last, last)]:
        if not crash(comm, file):
            pytest.skip("this kernel does not log programs that crash, or shows its log to nobody")
    return last


def bus(root: Path) -> None:
    """The devices that the attacks name."""
    for address, vendor in ((f"{GPU}.0", "0x10de"), (f"{SWITCH}.0", "0x10de"), (AMD_GPU, "0x1002")):
        folder = root / f"sys/bus/pci/devices/{address}"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text("0x030200\n")


@pytest.mark.parametrize("source", ["kmsg", "journal"])
def test_programs_of_any_name_that_crash_are_no_fault(crashed: str, source: str, tmp_path: Path) -> None:
    root, rows, programs = tmp_path / "root", tmp_path / "rows", tmp_path / "bin"
    bus(root)
    (root / "dev").mkdir()
    (root / "proc").symlink_to("/proc")
    programs.mkdir()
    library = FILES.parents[4] / "_lib/cycleforge.sh"
    command = ["bash", "-c", CHECKS, "check", str(library), str(FILES)]
    if source == "kmsg":
        (root / "dev/kmsg").symlink_to("/dev/kmsg")
        (programs / "journalctl").write_text("#!/bin/sh\nexit 1\n")
        (programs / "journalctl").chmod(0o755)
    elif JOURNALD is None or shutil.which("unshare") is None:
        pytest.skip("needs systemd-journald")
    else:
        command = ["unshare", "--mount", "bash", "-c", IN_A_JOURNAL, "in", CHECKS, str(library), str(FILES)]
    settings = {"CYCLEFORGE_ROOT": str(root), "CYCLEFORGE_ROWS": str(rows), "CYCLEFORGE_BUDGET_S": "60",
                "PATH": f"{programs}:{os.environ['PATH']}", "JOURNALD": str(JOURNALD), "LAST": crashed}  # fmt: skip
    ran = subprocess.run(command, env=settings, check=False, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    records = [line.split("\x1f") for line in rows.read_text().splitlines()]
    assert [(row[1], row[0]) for row in records] == [("gpu_xid", "pass"), ("gpu_log", "pass")], records
