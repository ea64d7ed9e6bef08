"""AMD GPUs: every fault has its verdict and its cure, and nothing of NVIDIA is asked for."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from typing import Any

import pytest

from generator import catalog
from tests.bed import kernel_log
from tests.bed.scripts.amd import GPUS, AmdNode
from tests.bed.scripts.node import HANGS
from tests.projects.conftest import MakeNode
from tests.projects.test_kernel_log import forged


@pytest.fixture
def amd(make_node: MakeNode) -> AmdNode:
    return AmdNode(make_node("slurm_nhc"))


def row(amd: AmdNode, check: str) -> dict[str, Any]:
    """The one record of a check in the last quick run."""
    (found,) = [each for each in amd.node.result("quick")["checks"] if each["check"] == check]
    return dict(found)


def test_a_healthy_node_passes_with_one_call_of_rocm_smi(amd: AmdNode) -> None:
    result = amd.node.quick()
    assert result["verdict"] == "pass", result
    assert amd.node.calls("rocm-smi") == ["rocm-smi --showid"]
    assert amd.node.calls("nvidia-smi") == []
    names = {each["check"] for each in result["checks"]}
    assert {"amd_driver", "gpu_count", "gpu_ras_uncorrectable", "gpu_xgmi_links", "gpu_temperature", "gpu_log"} <= names
    assert not names & {"nvidia_smi", "gpu_persistence", "gpu_xid", "gpu_fabric", "gpu_clocks", "gpu_throttling"}


AT = "amdgpu 0004:00:00.0: amdgpu: "
# What a node shows → the check that fails → its cure → what the reason in Slurm says.
FATAL = "amdgpu 0007:00:00.0: {1}uncorrectable hardware error(ERREVENT_ATHUB_INTERRUPT) detected!"
BAD_PAGES = (
    "amdgpu 0007:00:00.0: amdgpu: RAS records:300 exceed threshold:256, GPU will not be initialized. "
    "Replace this GPU or increase the threshold"
)
FAULTS: dict[str, tuple[Callable[[AmdNode], Any], str, str, str]] = {
    "a GPU is gone from the bus": (
        lambda amd: amd.lose(5),
        "gpu_count", "service", "gpu_count 7 GPUs, expected 8 GPUs (on the PCI bus)",
    ),
    "the driver serves fewer": (
        lambda amd: amd.serve(7),
        "gpu_count", "reboot", "gpu_count 7 GPUs, expected 8 GPUs (as the driver serves them)",
    ),
    "rocm-smi crashes": (
        lambda amd: amd.node.fake("rocm-smi", "echo 'Traceback (most recent call last):'; exit 1"),
        "gpu_count", "reboot", "gpu_count (rocm_smi ended with exit code 1: Traceback",
    ),
    "rocm-smi hangs twice": (
        lambda amd: amd.node.fake("rocm-smi", HANGS),
        "gpu_count", "reboot", "gpu_count (rocm_smi did not answer in time)",
    ),
    "rocm-smi prints no GPU": (
        lambda amd: amd.node.fake("rocm-smi", "echo; exit 0"),
        "gpu_count", "reboot", "gpu_count (rocm_smi printed no result)",
    ),
    "the driver is not loaded": (
        lambda amd: amd.unload_driver(uptime_s=1020),
        "amd_driver", "reboot", "amdgpu is not loaded 1020 s after the boot, 8 GPUs are on the PCI bus",
    ),
    "uncorrectable errors are counted": (
        lambda amd: amd.errors(3, "umc", 2, correctable=7),
        "gpu_ras_uncorrectable", "reset", "gpu_ras_uncorrectable 2 errors, at most 0 errors (GPU 3, umc 2)",
    ),
    "a link did not come up": (
        lambda amd: amd.lose_link(6, 2),
        "gpu_xgmi_links", "reboot", "gpu_xgmi_links 6 links to GPUs, at least 7 links to GPUs (GPU 6, node 8)",
    ),
    "the log names a fatal error": (
        lambda amd: amd.log(FATAL, FATAL),
        "gpu_log_fatal_error", "reboot", "gpu_log_fatal_error 2 lines in 2 h, at most 0 lines in 2 h (0007:00:00.0)",
    ),
    "the log names memory errors": (
        lambda amd: amd.log(
            f"{AT}socket: 2, die: 0, 1 new uncorrectable hardware errors detected in umc block"
        ),
        "gpu_log_memory_error", "reset", "(0004:00:00.0)",
    ),
    "the driver could not reset a GPU": (
        lambda amd: amd.log(f"{AT}GPU reset begin!",
                            f"{AT}GPU reset end with ret = -62"),
        "gpu_log_reset_failed", "reboot", "(0004:00:00.0)",
    ),
    "too many bad pages": (lambda amd: amd.log(BAD_PAGES), "gpu_log_bad_pages", "service", "(0007:00:00.0)"),
    "the driver did not start a GPU": (
        lambda amd: amd.log(f"{AT}Fatal error during GPU init"),
        "gpu_log_init_failed", "reboot", "(0004:00:00.0)",
    ),
}  # fmt: skip


LINES = {
    "gpu_count": "amd_gpu_count", "amd_driver": "amd_driver", "gpu_ras_uncorrectable": "amd_ras",
    "gpu_xgmi_links": "amd_xgmi", "gpu_temperature": "amd_temperature",
}  # fmt: skip
"""The line of the configuration that makes a check; all others come from the log."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_drains_the_node_and_names_what_cures_it(amd: AmdNode, fault: str) -> None:
    breaks, check, cure, reason = FAULTS[fault]
    amd.node.only(LINES.get(check, "amd_log"))
    breaks(amd)
    result = amd.node.quick()
    found = row(amd, check)
    assert (found["verdict"], found["cure"], result["verdict"]) == ("fail", cure, "fail")
    assert reason in amd.node.reason(), amd.node.reason()


HARMLESS: dict[str, tuple[Callable[[AmdNode], Any], str, str]] = {
    "a GPU was reset": (lambda amd: amd.log(f"{AT}GPU reset begin!"), "gpu_log_gpu_reset", "warn"),
    "a ring was late": (
        lambda amd: amd.log(f"{AT}ring sdma0 timeout, but soft recovered"),
        "gpu_log_ring_timeout", "warn",
    ),
    "the log says that there are none": (
        lambda amd: amd.log(f"{AT}0 uncorrectable hardware errors detected in total in umc block",
                            f"{AT}no uncorrectable hardware errors detected in gfx block"),
        "gpu_log", "pass",
    ),
    "another device speaks": (lambda amd: amd.log("pcieport 0001:00: GPU reset(1) failed"), "gpu_log", "pass"),
    "a correctable error": (lambda amd: amd.errors(1, "umc", 0, correctable=400), "gpu_ras_uncorrectable", "pass"),
    "one degree below the limit": (lambda amd: amd.temperature(2, 99), "gpu_temperature", "pass"),
    "at the limit": (lambda amd: amd.temperature(2, 100), "gpu_temperature", "warn"),
}  # fmt: skip


@pytest.mark.parametrize("case", HARMLESS)
def test_what_is_no_fault_drains_nothing(amd: AmdNode, case: str) -> None:
    shows, check, verdict = HARMLESS[case]
    amd.node.only(LINES.get(check, "amd_log"))
    shows(amd)
    amd.node.quick()
    assert row(amd, check)["verdict"] == verdict
    assert amd.node.reason() == ""


def test_a_node_whose_image_is_about_to_load_the_driver_waits_outside_and_comes_back(amd: AmdNode) -> None:
    """Azure's image waits for the GPUs and two more minutes before it loads amdgpu."""
    amd.unload_driver(uptime_s=100)
    amd.node.quick()
    assert (row(amd, "amd_driver")["verdict"], row(amd, "amd_driver")["cure"]) == ("fail", "heal")
    assert row(amd, "gpu_count")["verdict"] == "not_measured"
    assert "amdgpu is not loaded 100 s after the boot" in amd.node.reason()
    amd.load_driver()
    amd.serve(GPUS)
    for _ in range(2):
        assert amd.node.quick()["verdict"] == "pass"
    assert amd.node.reason() == ""


def test_a_virtual_machine_that_is_shown_no_counts_is_judged_by_its_log(amd: AmdNode) -> None:
    for place in range(GPUS):
        shutil.rmtree(amd.node.root / amd.pci(place) / "ras")
        shutil.rmtree(amd.node.root / amd.pci(place) / "hwmon")
    result = amd.node.quick()
    assert (row(amd, "gpu_ras")["verdict"], row(amd, "gpu_temperature")["verdict"]) == ("no_baseline", "no_baseline")
    assert result["verdict"] == "pass"


def test_an_image_without_rocm_smi_is_asked_by_amd_smi(amd: AmdNode) -> None:
    """`amd-smi list` begins each GPU with `GPU: N`. Source: ROCm/amdsmi amdsmi_cli/README.md"""
    amd.node.only("amd_gpu_count")
    (amd.node.bin / "rocm-smi").unlink()
    amd.node.quick()
    assert row(amd, "gpu_count")["detail"] == "rocm_smi is not installed"
    listing = "\\n".join(f"GPU: {place}\\n    BDF: 000{place}:00:00.0\\n    UUID: 7eff74a0" for place in range(GPUS))
    amd.node.fake("amd-smi", f"printf '{listing}\\n'")
    amd.node.quick()
    assert row(amd, "gpu_count")["value"] == str(GPUS)


def test_a_log_or_a_table_that_cannot_be_read_is_no_pass(amd: AmdNode) -> None:
    amd.node.fake("journalctl", "echo 'Failed to open journal' >&2; exit 1")
    shutil.rmtree(amd.node.root / "sys/class/kfd")
    assert amd.node.quick()["verdict"] == "incomplete"
    assert (row(amd, "gpu_log")["verdict"], row(amd, "gpu_xgmi")["verdict"]) == ("not_measured", "not_measured")
    amd.log(FATAL)
    (amd.node.root / "opt/cycleforge/slurm_nhc/amd-messages.tsv").unlink()
    amd.node.quick()
    assert row(amd, "gpu_log")["detail"] == "the table of messages is missing"


def test_of_a_log_that_is_too_long_the_newest_counts(amd: AmdNode) -> None:
    amd.node.only("amd_log")
    shown = kernel_log.record(FATAL, time.time())
    quiet = kernel_log.record("tmpfs: Unknown parameter 'zz'", time.time())
    reverse = '[[ "$*" == *"--reverse --since=@"* ]] || exit 1\n'
    amd.node.fake("journalctl", f"{reverse}cat <<'END'\n{shown}\n{quiet}\nEND\nprintf '{{\"MESS'; exit 124")
    amd.node.quick()
    assert row(amd, "gpu_log_fatal_error")["cure"] == "reboot"
    amd.node.fake("journalctl", f"{reverse}cat <<'END'\n{quiet}\n{quiet}\nEND\nexit 124")
    amd.node.quick()
    found = row(amd, "gpu_log")
    assert (found["verdict"], found["detail"]) == ("pass", "the kernel log is too long to be read at once")


def test_hours_without_a_message_are_no_log_that_cannot_be_read(amd: AmdNode) -> None:
    amd.node.only("amd_log")
    old = kernel_log.record("Linux version 6.8", time.time() - 9 * 3600)
    amd.node.fake("journalctl", f"if [[ $* != *--since=* ]]; then echo '{old}'; fi")
    amd.node.quick()
    assert row(amd, "gpu_log")["verdict"] == "pass"


AMD_DRIVER = (
    FATAL, BAD_PAGES, f"{AT}GPU reset(1) failed", f"{AT}GPU reset end with ret = -62", f"{AT}GPU reset begin!",
    f"{AT}Fatal error during GPU init", f"{AT}socket: 2, die: 0 1 uncorrectable hardware errors detected in umc block",
    f"{AT}[drm] *ERROR* ring sdma0 timeout, signaled seq=7",
    "[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout, signaled seq=7, emitted seq=9",
    # ras_aca.c: RAS_DEV_INFO("{%llu} socket: %d, ..."); with and without dev_fmt's prefix.
    "amdgpu 0004:00:00.0: {3} socket: 0, die: 1, 2 new uncorrectable hardware errors detected in umc block",
    f"{AT}{{3}} socket: 0, die: 1, 2 new uncorrectable hardware errors detected in umc block",
    "amdgpu 0004:00:00.0: 1048560 uncorrectable hardware errors detected in umc block",
    f"{AT}socket: 0 2 uncorrectable hardware errors detected in gfx block",
    "amdgpu 0004:00:00.0: ring gfx timeout, signaled seq=5131, emitted seq=5132",
    "amdgpu 0004:00:00.0: [drm] *ERROR* ring gfx_0.0.0 timeout, signaled seq=5, emitted seq=6",
    "amdgpu 0004:00:00.0: [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx_0.0.0 timeout",
    "amdgpu 0004:00:00.0: [drm:amdgpu_device_gpu_recover [amdgpu]] *ERROR* GPU reset end with ret = -22",
    # amdgpu built into the kernel; a copy of a function that the compiler has made; one whose name does not say amdgpu.
    "[drm:amdgpu_job_timedout] *ERROR* ring sdma0 timeout, signaled seq=1870, emitted seq=1872",
    "[drm:amdgpu_job_timedout.isra.0 [amdgpu]] *ERROR* ring gfx timeout, but soft recovered",
    "[drm:gfx_v9_0_timeout.constprop.0 [amdgpu]] *ERROR* ring gfx timeout",
)  # fmt: skip
"""Forms of the driver. Sources: Linux drivers/gpu/drm/amd; ROCm/ROCm issue 3766, ROCm/legacy-rocm-build issue 4021,
M-Bab/linux-kernel-amdgpu-binaries issue 48, freebsd/drm-kmod issue 78, gitlab.freedesktop.org/drm/amd issue 1915."""
# Names of programs within what the driver itself writes. Source: drivers/gpu/drm/amd/amdgpu/amdgpu_job.c, gmc_v9_0.c
NAMED = (
    f"{AT}Process information: process {{comm}} pid 7 thread {{comm}} pid 7",
    f"{AT}[gfxhub0] no-retry page fault (src_id:0 ring:0 vmid:8 pasid:1, "
    "for process {comm} pid 7 thread {comm} pid 7)",
)


def test_no_text_of_a_user_is_a_fault_of_an_amd_gpu(amd: AmdNode) -> None:
    amd.node.only("amd_log")
    names = ("ring a timeout", "GPU reset begin", "1 uncorrectable", "{1}GPU reset(1)")
    # The shortest forms that 15 bytes reach farthest into.
    short = (
        "[drm:amdgpu_a] ring a timeout",
        "[drm:f [amdgpu]] ring a timeout",
        "[drm:amdgpu_ab] *ERROR* ring a timeout",
    )
    amd.log(*forged((*AMD_DRIVER, *short)), *(place.format(comm=name) for place in NAMED for name in names))
    amd.node.quick()
    assert (row(amd, "gpu_log")["verdict"], amd.node.reason()) == ("pass", "")


@pytest.mark.parametrize("text", AMD_DRIVER)
def test_only_messages_about_an_amd_gpu_on_the_bus_count(amd: AmdNode, text: str) -> None:
    amd.node.only("amd_log")

    def findings() -> list[str]:
        amd.node.quick()
        return [each["check"] for each in amd.node.result("quick")["checks"] if each["verdict"] in ("fail", "warn")]

    amd.log(text)
    assert len(findings()) == 1
    for place in range(GPUS):
        amd.node.write(f"{amd.pci(place)}/vendor", "0x10de\n")
    assert findings() == []


def test_a_message_about_another_device_is_not_the_gpus(amd: AmdNode) -> None:
    """The kernel itself says which device a message is about."""
    amd.node.only("amd_log")
    other = kernel_log.record(f"{AT}GPU reset(1) failed", time.time(), "+pci:0009:00:00.0")
    amd.node.fake("journalctl", f"cat <<'END'\n{other}\nEND")
    amd.node.quick()
    assert row(amd, "gpu_log")["verdict"] == "pass"


def test_each_message_of_the_catalogue_is_tried_here() -> None:
    """A pattern that no test plays could be wrong without anybody noticing."""
    names = {f"gpu_log_{message.name}" for message in catalog.amd_messages().messages}
    tried = {case[1] for case in FAULTS.values()} | {case[1] for case in HARMLESS.values()}
    assert names == {check for check in tried if check.startswith("gpu_log_")}
