"""nvidia-smi: what its ends and its words mean, hangs in a row, fields that a driver does not know, idle GPUs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.bed.scripts.healthy import HANDLE, NO_FABRIC, Healthy, healthy
from tests.bed.scripts.node import HANGS
from tests.projects.conftest import MakeNode

MISMATCH = "Failed to initialize NVML: Driver/library version mismatch"


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    return healthy(make_node("slurm_nhc"))


def rows(node: Healthy, check: str) -> list[dict[str, Any]]:
    """The records of a check in the last quick run."""
    return [row for row in node.result("quick")["checks"] if row["check"] == check]


# Exit codes: https://docs.nvidia.com/deploy/nvidia-smi/index.html; 16 and 18 are NVML's numbers, perhaps passed on.
# Code, words, verdict, reason, cure: what only another host takes away, what a reset does, otherwise a reboot.
ENDS = [
    (2, "Invalid combination of input arguments.", "not_measured", "", ""),
    (3, "", "not_measured", "", ""),
    (4, "", "not_measured", "", ""),
    (13, "", "not_measured", "", ""),
    (1, "", "fail", "nvidia_smi 1 exit code, expected 0 exit code", "reboot"),
    (6, "No devices were found", "fail", "(no GPU found: No devices were found)", "reboot"),
    (8, "", "fail", "(power cable)", "service"),
    (9, "NVIDIA-SMI has failed because it could not talk to the driver", "fail", "(driver not loaded: ", "reboot"),
    (12, "", "fail", "(NVML not found)", "reboot"),
    (14, "", "fail", "(infoROM corrupt)", "service"),
    (15, HANDLE, "fail", f"(GPU fell off the bus: {HANDLE})", "service"),
    (16, "", "fail", "(GPU requires a reset)", "reset"),
    (18, MISMATCH, "fail", f"(driver and library differ: {MISMATCH})", "reboot"),
    (77, "", "fail", "nvidia_smi 77 exit code", "reboot"),
    (139, "", "fail", "nvidia_smi 139 exit code, expected 0 exit code (ended by signal 11)", "reboot"),
    (255, "", "fail", "(internal error)", "reboot"),
]


def test_only_questions_of_ours_are_not_measured(node: Healthy) -> None:
    node.only("gpu_driver")
    for code, said, verdict, words, cure in ENDS:
        node.fake("nvidia-smi", f"echo '{said}'; exit {code}")
        (node.state / "slurm_reason").unlink(missing_ok=True)
        (node.state / "slurm_state").unlink(missing_ok=True)
        (node.root / "var/lib/cycleforge/health/standing").unlink(missing_ok=True)
        node.quick()
        assert [(row["verdict"], row.get("cure", "")) for row in rows(node, "nvidia_smi")] == [(verdict, cure)], code
        assert words in node.reason(), code
        assert bool(node.reason()) == (verdict == "fail"), code


# What stands in place of values while the exit code is 0. Sources: the page above; Microsoft's NDm A100 cases.
WORDS = [
    ("{i}, [GPU requires reset]" + ", [GPU requires reset]" * 19, "reset", "GPU 3 [GPU requires reset]"),
    ("{i}, [GPU is lost]" + ", [GPU is lost]" * 19, "service", "GPU 3 [GPU is lost]"),
    ("[GPU is lost]" + ", [GPU is lost]" * 19, "service", "[GPU is lost]"),
    ("{i}, 40, ERR!, 0, 0, 0, 0, 0, 0, 0, 0, 0x0, 1410, 1410, 1215, 1215, " + NO_FABRIC, "reboot", "GPU 3 ERR!"),
    ("{i}, 40, Enabled, 0, [Unknown Error], 0, 0, 0, 0, 0, 0, 0x0, 1410, 1410, 1215, 1215, " + NO_FABRIC, "reboot",
     "GPU 3 [Unknown Error]"),
    (HANDLE, "service", HANDLE),
]  # fmt: skip


@pytest.mark.parametrize(("line", "cure", "words"), WORDS)
def test_words_in_place_of_values_fail(node: Healthy, line: str, cure: str, words: str) -> None:
    node.only("gpu_driver")
    node.set_gpus([*node.rows[:3], line.format(i=3), *node.rows[4:]])
    assert node.quick()["verdict"] == "fail"
    (row,) = rows(node, "gpu_answers")
    assert (row["verdict"], row["detail"]) == ("fail", words)
    assert row["cure"] == cure
    assert words in node.reason()


# Driver 590.48.01, H100: utkuozdemir/nvidia_gpu_exporter@e656cd8, internal/captures (MIT). No application clocks.
DEPRECATED = "[Requested functionality has been deprecated]"
ROW_590 = (
    f"{{i}}, 41, Enabled, 0, 0, 0, 0, 0, 0, 0, 0, 0x0000000000000001, 1980, {DEPRECATED}, 2619, {DEPRECATED}, "
    "Completed, {status}, 0, 00000000-0000-0000-0000-000000000000, {action}"
)


@pytest.mark.parametrize(
    ("status", "action", "words"),
    [
        ("[Unknown Error]", "None", "GPU 3 [Unknown Error]"),
        ("Success", "[Unknown Error]", "GPU 3 [Unknown Error]"),
        ("Success", "ERR!", "GPU 3 ERR!"),
        ("[Unknown Error]", "[GPU requires reset]", "GPU 3 [GPU requires reset]"),
    ],
)
def test_the_reason_shows_the_field_that_is_broken(status: str, action: str, words: str, node: Healthy) -> None:
    """Not the first words in brackets: those of the clocks are there on every GPU of such a driver."""
    node.only("gpu_driver")
    good = [ROW_590.format(i=place, status="Success", action="None") for place in range(len(node.rows))]
    node.set_gpus([*good[:3], ROW_590.format(i=3, status=status, action=action), *good[4:]])
    node.quick()
    (row,) = rows(node, "gpu_answers")
    assert (row["verdict"], row["detail"]) == ("fail", words)
    assert "deprecated" not in node.reason()


def test_a_list_that_ends_early_is_a_lost_gpu_and_a_missing_one(node: Healthy) -> None:
    node.only("gpu_driver", "gpu_count")
    node.set_gpus([*node.rows[:2], HANDLE])
    node.quick()
    assert [row["verdict"] for row in rows(node, "gpu_count")] == ["fail"]
    assert node.reason().index(HANDLE) < node.reason().index("gpu_count 2 GPUs"), "the worst comes first"


def test_a_list_that_is_only_a_lost_gpu_counts_none(node: Healthy) -> None:
    node.set_gpus([HANDLE])
    node.quick()
    assert [(row["verdict"], row["value"]) for row in rows(node, "gpu_count")] == [("fail", "0")]


def test_a_driver_that_fails_is_left_alone_and_is_one_finding(node: Healthy) -> None:
    node.fake("nvidia-smi", f"echo '{MISMATCH}'; exit 18")
    node.forget()
    node.quick()
    assert len(node.calls("nvidia-smi")) == 1
    failed = [row["check"] for row in node.result("quick")["checks"] if row["verdict"] == "fail"]
    assert failed == ["nvidia_smi"]


REMAPS = [("Yes, No, 0", "gpu_remap_pending", "reset"), ("0, 1, 0", "gpu_remap_failure", "service"),
          ("No, No, 513", "gpu_remap_uncorrectable", "service")]  # fmt: skip


def test_a_row_that_waits_needs_a_reset_and_one_that_failed_another_gpu(node: Healthy) -> None:
    """NVIDIA's page on row remapping, https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html."""
    for shown, check, cure in REMAPS:
        node.set_gpus(node.rows, remap=f"{{i}}, {shown}")
        node.quick()
        assert [(row["verdict"], row["cure"]) for row in rows(node, check)] == [("fail", cure)]


def test_each_question_that_crashes_the_driver_fails_its_check(node: Healthy) -> None:
    answers = (node.bin / "nvidia-smi").read_text().split("\n", 2)[2]
    for question, check in (("remapped_rows", "gpu_remap"), ("nvlink", "gpu_nvlink")):
        node.fake("nvidia-smi", f'case "$*" in *{question}*) kill -SEGV $$ ;; esac\n{answers}')
        node.quick()
        (row,) = rows(node, check)
        assert (row["verdict"], "was ended by signal 11" in row["detail"]) == ("fail", True)


# ---------------------------------------------------------------- hangs


def test_a_question_that_hangs_again_fails_although_others_are_answered(node: Healthy) -> None:
    answers = (node.bin / "nvidia-smi").read_text().split("\n", 2)[2]
    node.fake("nvidia-smi", f'case "$*" in *nvlink*) {HANGS} ;; esac\n{answers}')
    for verdict in ("not_measured", "fail"):
        node.quick()
        assert [row["verdict"] for row in rows(node, "nvidia_smi")] == ["pass"]
        assert [row["verdict"] for row in rows(node, "gpu_nvlink")] == [verdict]


def test_a_second_hang_in_a_row_fails_and_an_answer_forgets_the_first(node: Healthy) -> None:
    node.only("gpu_driver")
    for hangs, verdict in ((True, "not_measured"), (False, "pass"), (True, "not_measured"), (True, "fail")):
        if hangs:
            node.fake("nvidia-smi", HANGS)
        else:
            node.set_gpus(node.rows)
        node.quick()
        assert [row["verdict"] for row in rows(node, "nvidia_smi")] == [verdict]
    assert "did not answer in time, 2 times in a row" in node.reason()


def test_the_memory_of_a_hang_ends_with_the_boot(node: Healthy) -> None:
    node.only("gpu_driver")
    node.fake("nvidia-smi", HANGS)
    node.quick()
    for file in (node.root / "run/cycleforge").iterdir():  # a tmpfs
        file.unlink()
    node.quick()
    assert [row["verdict"] for row in rows(node, "nvidia_smi")] == ["not_measured"]
    assert node.reason() == ""


def test_no_second_call_stands_behind_one_that_cannot_be_ended(node: Healthy) -> None:
    """State D: the process is in a system call that does not return, and SIGKILL waits for it. proc_pid_stat(5)."""
    node.fake("nvidia-smi", HANGS)
    node.quick()
    node.write("proc/4711/stat", "4711 (nvidia-smi) D 1 4711 4711 0 -1 4194560 0 0 0 0\n")
    node.write("proc/4711/status", "Name:\tnvidia-smi\n" + "\t".join(("Uid:", *[str(os.getuid())] * 4)) + "\n")
    node.forget()
    node.quick()
    assert node.calls("nvidia-smi") == []
    assert [row["verdict"] for row in rows(node, "nvidia_smi")] == ["fail"]


# A parent waits in state D for the end of a child of vfork(2). After setuid() the files of a process are root's.
WAITS_IN_D = """
import ctypes, os, platform, signal, sys
libc, numbers = ctypes.CDLL(None), {"x86_64": 56, "aarch64": 220}
os.setuid(int(sys.argv[1]))
libc.prctl(15, b"nvidia-smi")
print(os.getpid(), flush=True)
if libc.syscall(numbers[platform.machine()], 0x4000 | signal.SIGCHLD, 0, 0, 0, 0) == 0:
    libc.prctl(1, signal.SIGKILL)
    signal.pause()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="another user starts the process")
@pytest.mark.parametrize(("user", "asked"), [(0, 0), (65534, 1)])
def test_a_process_of_somebody_else_with_that_name_is_no_hang(node: Healthy, user: int, asked: int) -> None:
    node.fake("nvidia-smi", HANGS)
    node.quick()
    with subprocess.Popen([sys.executable, "-c", WAITS_IN_D, str(user)], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            real = Path("/proc") / process.stdout.readline().strip()
            while " (nvidia-smi) D " not in (real / "stat").read_text():
                time.sleep(0.01)
            (node.root / "proc" / real.name).symlink_to(real)
            node.forget()
            node.quick()
        finally:
            process.kill()
    assert len(node.calls("nvidia-smi")) == asked


def test_a_tool_that_cannot_be_ended_does_not_hold_the_run(node: Healthy) -> None:
    """It keeps its output open, as a process in state D does after SIGKILL; here a child of it that nobody ends."""
    node.only("gpu_driver", "gpu_xid")
    script = node.root / "opt/cycleforge/slurm_nhc/smi.sh"
    assert "SMI_LIMIT_S=20" in script.read_text()
    script.write_text(script.read_text().replace("SMI_LIMIT_S=20", "SMI_LIMIT_S=1"))  # this test really waits for it
    node.fake("nvidia-smi", 'setsid sleep 3600 & echo $! >"$FAKE_STATE/stuck"\n' + HANGS)
    try:
        node.quick()
        assert [row["verdict"] for row in rows(node, "nvidia_smi")] == ["not_measured"]
        assert [row["verdict"] for row in rows(node, "gpu_xid")] == ["pass"], "what comes after it was measured"
    finally:
        node.command("-c", f"kill -9 {(node.state / 'stuck').read_text()}")


# ---------------------------------------------------------------- fields and calls


@pytest.mark.parametrize("unknown", [
    ("clocks_event_reasons.active",),
    ("fabric.state", "fabric.status", "fabric.cliqueId", "fabric.clusterUuid"),
    ("clocks.applications.graphics", "clocks.applications.memory"),
    ("gpu_recovery_action",),
])  # fmt: skip
def test_what_a_driver_does_not_know_is_asked_once_in_a_boot(node: Healthy, unknown: tuple[str, ...]) -> None:
    """A real one names the first field that it does not know, and ends with 2."""
    refused = "\n".join(
        f"""case ",${{fields}}," in *,{name},*) echo 'Field "{name}" is not a valid field to query.'; exit 2 ;; esac"""
        for name in unknown
    )
    node.fake(
        "nvidia-smi",
        f"""case "$1" in --query-gpu=*) fields="${{1#*=}}" ;; *) fields="" ;; esac
{refused}
value() {{
    case "$1" in
        index) REPLY="$2" ;; persistence_mode) REPLY=Enabled ;; *reasons.active) REPLY=0x0 ;; fabric.*) REPLY='[N/A]' ;;
        gpu_recovery_action) REPLY=None ;;
        clocks.*) REPLY=1410 ;; *) REPLY=0 ;;
    esac
}}
case "$1" in
    --query-gpu=*)
        for gpu in 0 1 2 3 4 5 6 7; do
            row=""
            IFS=, read -r -a names <<<"${{fields}}"
            for name in "${{names[@]}}"; do value "$name" "$gpu"; row+="${{row:+, }}${{REPLY}}"; done
            echo "$row"
        done ;;
    --query-remapped-rows=*) for gpu in 0 1 2 3 4 5 6 7; do echo "$gpu, 0, 0, 0"; done ;;
    nvlink) printf '{node.nvlinks}' ;;
esac""",
    )
    assert node.quick()["verdict"] == "pass", node.result("quick")
    assert len(node.calls("nvidia-smi --query-gpu=")) == 1 + len(unknown)
    node.forget()
    assert node.quick()["verdict"] == "pass"
    assert len(node.calls("nvidia-smi --query-gpu=")) == 1


def test_an_idle_node_is_asked_three_times_and_nothing_runs_on_its_gpus(node: Healthy) -> None:
    """One call for all fields; remapped rows and links are not among them. No loop, no dmon, no second sample."""
    node.quick()
    asked = [call.split()[1].split("=")[0] for call in node.calls("nvidia-smi")]
    assert asked == ["--query-gpu", "--query-remapped-rows", "nvlink"]
    assert node.calls("nvidia-smi nvlink") == ["nvidia-smi nvlink --status"]


# ---------------------------------------------------------------- sizes that may have no GPU


@pytest.mark.parametrize(("said", "code"), [
    ("No devices were found", 0),
    ("No devices were found", 6),
    ("NVIDIA-SMI has failed", 9),
])  # fmt: skip
def test_an_unknown_size_needs_no_gpu_unless_one_is_on_the_bus(node: Healthy, said: str, code: int) -> None:
    node.vm_size("Standard_X9")
    node.ok("20-health.sh")
    shutil.rmtree(node.root / "sys/bus/pci")
    node.fake("nvidia-smi", f"echo '{said}'; exit {code}")
    result = node.quick()
    assert [row for row in result["checks"] if row["verdict"] == "fail"] == []
    node.write("sys/bus/pci/devices/0001:00:00.0/vendor", "0x10de\n")
    result = node.quick()
    assert result["verdict"] != "pass"
    if code:
        assert [row["verdict"] for row in rows(node, "nvidia_smi")] == ["fail"]
