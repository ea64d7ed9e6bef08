"""Quick checks: every fault has its verdict, at the limit on both sides, and what was not measured is not a pass."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bed.scripts.healthy import HANDLE, Healthy, healthy
from tests.bed.scripts.node import A100, H100
from tests.projects.conftest import MakeNode


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    return healthy(make_node("slurm_nhc"))


def test_a_healthy_node_passes_and_stays(node: Healthy) -> None:
    result = node.quick()
    assert result["verdict"] == "pass", result
    assert (result["node"], result["vm_size"]) == ("node-1", A100.lower())
    assert {row["verdict"] for row in result["checks"]} == {"pass"}
    assert node.calls("scontrol update") == []


def test_a_quick_run_is_a_few_calls_and_touches_no_service(node: Healthy) -> None:
    """Three calls of nvidia-smi wake no GPU beyond what docs/node-health.md says; services are looked at, once."""
    node.quick()
    assert len(node.calls("nvidia-smi")) == 3
    (asked,) = node.calls("systemctl")
    assert asked.startswith("systemctl show --property=Id,LoadState,ActiveState nvidia-fabricmanager.service ")


# What a broken node shows → check that fails → what the reason names.
def _mount_ro(node: Healthy) -> None:
    node.write("proc/mounts", "fs /sched nfs4 rw 0 0\nfs /shared nfs4 ro 0 0\n")


def _gpu(field: int, value: str, gpu: int = 3) -> Any:
    """What this GPU shows from now on."""

    def change(node: Healthy) -> None:
        fields = node.rows[gpu].split(", ")
        fields[field] = value
        node.rows[gpu] = ", ".join(fields)
        node.set_gpus(node.rows)

    return change


def _throttled(*samples: tuple[str, str]) -> Any:
    """Reasons of GPU 3 and of those after it: in the first sample and in the second."""

    def change(node: Healthy) -> None:
        for place, (first, _) in enumerate(samples, start=3):
            _gpu(11, first, place)(node)
        second = ["0x0000000000000001"] * 8
        second[3 : 3 + len(samples)] = [later for _, later in samples]
        node.set_gpus(node.rows, second=second)

    return change


BROKEN = [
    (
        lambda node: node.cpus(95),
        "cpu_threads",
        "cpu_threads 95 threads, at least 96 threads",
    ),
    (
        lambda node: node.memory(1703719136),
        "memory_total",
        "KiB, at least 1803719137 KiB",
    ),
    (lambda node: node.cpus(96, sockets=1), "cpu_sockets", "cpu_sockets 1 sockets, at least 2 sockets"),
    (_mount_ro, "mount", "/shared is mounted read-only"),
    (lambda node: node.lose_mount(), "mount", "/shared is not mounted"),
    (lambda node: node.set_gpus(node.rows[:7]), "gpu_count", "gpu_count 7 GPUs, expected 8 GPUs"),
    (
        lambda node: node.set_gpus(node.rows, code=15),
        "nvidia_smi",
        f"15 exit code, expected 0 exit code (GPU fell off the bus: {HANDLE})",
    ),
    (_gpu(3, "1"), "gpu_ecc_sram_uncorrectable", "1 errors, at most 0 errors (GPU 3)"),
    (_gpu(6, "10001"), "gpu_ecc_sram_correctable", "10001 errors, at most 10000 errors (GPU 3)"),
    (_gpu(10, "20000001"), "gpu_ecc_dram", "20000001 errors, at most 20000000 errors"),
    (lambda node: node.set_gpus(node.rows, remap="{i}, Yes, No, 0"), "gpu_remap_pending", "1 rows, at most 0 rows"),
    (
        lambda node: node.set_gpus(node.rows, remap="{i}, 0, 1, 0"),
        "gpu_remap_failure",
        "1 failures, at most 0 failures",
    ),
    (
        lambda node: node.set_gpus(node.rows, remap="{i}, No, No, 513"),
        "gpu_remap_uncorrectable",
        "513 rows, at most 512 rows",
    ),
    (
        lambda node: node.set_gpus(node.rows, nvlink=node.nvlinks.replace("Link 3: 25 GB/s", "Link 3: <inactive>", 1)),
        "gpu_nvlink_inactive",
        "1 of 96 links, at most 0 of 96 links (GPU 0: 11 of 12 links active)",
    ),
    (
        _throttled(("0x0000000000000008", "0x0000000000000008")),
        "gpu_throttling",
        "gpu_throttling 1 GPUs slowed by heat or power, at most 0 GPUs slowed by heat or power (GPU 3 0x",
    ),
    (_throttled(("0x0000000000000040", "0x0000000000000048")), "gpu_throttling", "GPU 3 0x0000000000000048"),
    (
        lambda node: node.xid(79),
        "gpu_xid",
        "gpu_xid XID 79 ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS on GPU 0 (PCI 0001:00:00) (first at 20",
    ),
    (lambda node: node.xid(120), "gpu_xid", "XID 120"),
    (
        lambda node: node.port("mlx5_ib5", state="1: DOWN", phys="3: Disabled"),
        "ib_ports_active",
        "7 ports, at least 8 ports (mlx5_ib5 DOWN Disabled)",
    ),
    (
        lambda node: node.write("sys/class/infiniband/mlx5_ib5/ports/1/pkeys/0", "0x7fff\n"),
        "ib_partition_keys",
        "no full-member key on mlx5_ib5",
    ),
    (
        lambda node: node.port("mlx5_ib5", rate="100 Gb/sec (4X EDR)"),
        "ib_rate",
        "100 Gb/s, at least 200 Gb/s (mlx5_ib5)",
    ),
]


LINES = {
    "cpu_threads": "cpu", "cpu_sockets": "cpu", "memory_total": "memory", "mount": "mounts", "nvidia_smi": "gpu_driver",
    "ib_ports_active": "ib_ports", "ib_rate": "ib_ports", "ib_partition_keys": "ib_keys",
    "gpu_ecc_sram_uncorrectable": "gpu_ecc", "gpu_ecc_sram_correctable": "gpu_ecc", "gpu_ecc_dram": "gpu_ecc",
    "gpu_remap_pending": "gpu_remap", "gpu_remap_failure": "gpu_remap", "gpu_remap_uncorrectable": "gpu_remap",
    "gpu_nvlink_inactive": "gpu_nvlink",
}  # fmt: skip
"""The line of the configuration that makes a check, where it has another name."""


@pytest.mark.parametrize(("breaks", "check", "words"), BROKEN)
def test_a_fault_drains_the_node_with_check_value_limit_and_unit(
    node: Healthy, breaks: Any, check: str, words: str
) -> None:
    node.only(LINES.get(check, check))
    breaks(node)
    result = node.quick()
    assert result["verdict"] == "fail", result
    assert "fail" in {row["verdict"] for row in node.result("quick")["checks"] if row["check"] == check}
    assert node.reason().startswith("CycleForge health: ")
    assert words in node.reason()
    assert node.calls("scontrol update") == [f"scontrol update NodeName=node-1 State=DRAIN Reason={node.reason()}"]


def _rows(node: Healthy, verdict: str) -> set[str]:
    """Checks of the last quick run with this verdict."""
    return {row["check"] for row in node.result("quick")["checks"] if row["verdict"] == verdict}


AT_THE_LIMIT = {
    "lowest": [
        lambda node: node.memory(1803719137),
        _gpu(6, "10000"),
        _gpu(13, "[N/A]", gpu=4),
        lambda node: node.set_gpus(node.rows, remap="{i}, No, No, 512"),
        lambda node: node.xid(43),
        lambda node: node.write("proc/loadavg", "191.99 1 1 1/2 3\n"),
        lambda node: node.write("sys/class/infiniband/mlx5_ib6/ports/1/counters/port_rcv_errors", "100\n"),
        lambda node: node.fake("df", "printf 'Use%%  IUse%%\\n 90%%  98%%\\n'"),
        lambda node: node.port("mlx5_ib5", rate="400 Gb/sec (4X NDR)"),
    ],
    "highest": [
        lambda node: node.memory(2857830712),
        _throttled(("0x0000000000000008", "0x0000000000000000"), ("0x0000000000000004", "0x0000000000000004")),
        lambda node: node.fake("df", "printf 'Use%%  IUse%%\\n 17%%  -\\n'"),
    ],
}


@pytest.mark.parametrize("end", AT_THE_LIMIT)
def test_values_at_the_good_side_of_the_limit_pass(node: Healthy, end: str) -> None:
    """All of them at once, on one node."""
    for change in AT_THE_LIMIT[end]:
        change(node)
    result = node.quick()
    assert result["verdict"] == "pass", result
    assert _rows(node, "pass") == {row["check"] for row in node.result("quick")["checks"]}


WARNINGS = [
    (_gpu(2, "Disabled"), "gpu_persistence"),
    (_gpu(1, "94"), "gpu_temperature"),
    (_gpu(7, "1"), "gpu_ecc_dram_uncorrectable"),
    (lambda node: node.fake("df", "printf 'Use%%  IUse%%\\n 91%%  3%%\\n'"), "system_disk_used"),
    (lambda node: node.write("proc/loadavg", "192.00 1 1 1/2 3\n"), "load_1min"),
    (lambda node: node.write("proc/meminfo", "MemTotal: 1857830712 kB\nSwapTotal: 4 kB\n"), "swap_total"),
    (lambda node: node.write("sys/class/net/eth0/carrier_down_count", "4\n"), "ethernet_carrier_losses"),
    (lambda node: node.write("sys/class/infiniband/mlx5_ib6/ports/1/counters/symbol_error", "1\n"), "ib_symbol_error"),
    (lambda node: node.write("sys/block/nvme7n1/device/model", "MSFT NVMe Accelerator v1.0\n"), "nvme_disks"),
]  # fmt: skip


def test_warnings_drain_nothing(node: Healthy) -> None:
    """All of them on one node; each shows in its own check, and no other check says anything."""
    for change, _ in WARNINGS:
        change(node)
    result = node.quick()
    assert result["verdict"] == "warn", result
    assert _rows(node, "warn") == {check for _, check in WARNINGS}
    assert _rows(node, "pass") == {row["check"] for row in node.result("quick")["checks"]} - _rows(node, "warn")
    assert node.reason() == ""


ALONE = [
    (_gpu(13, "1095"), "gpu_clocks", "gpu_clocks"),
    (_gpu(15, "1000"), "gpu_clocks", "gpu_clocks"),
    (lambda node: node.write("sys/class/net/eth0/operstate", "down\n"), "ethernet", "ethernet"),
    (lambda node: node.fake("df", "printf 'Use%%  IUse%%\\n 17%%  99%%\\n'"), "disk_space", "system_disk_inodes"),
]


@pytest.mark.parametrize(("change", "line", "check"), ALONE)
def test_what_warns_in_a_check_that_warns_above(node: Healthy, change: Any, line: str, check: str) -> None:
    node.only("load", line)
    change(node)
    result = node.quick()
    assert result["verdict"] == "warn", result
    assert _rows(node, "warn") == {check}
    assert node.reason() == ""


def test_a_lost_nvme_disk_drains_where_a_health_source_knows_the_count(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), H100)
    node.memory(1961032704)
    result = node.quick()
    assert result["verdict"] == "pass", result
    (node.root / "sys/block/nvme7n1").rename(node.root / "sys/lost")
    result = node.quick()
    assert result["verdict"] == "fail", result
    assert "nvme_disks 7 disks, at least 8 disks" in node.reason()


def _silent_log(*tools: str, body: str) -> Any:
    def change(node: Healthy) -> None:
        for tool in tools:
            node.fake(tool, body)

    return change


# Answers of one tool stand in different rows; what stands in one row is tried on one node.
UNMEASURED: list[list[tuple[Any, str]]] = [
    [
        (lambda node: node.remove("nvidia-smi"), "nvidia_smi"),
        (lambda node: node.fake("df", "exit 1"), "system_disk"),
        (lambda node: node.write("proc/meminfo", "MemFree: 5 kB\n"), "memory_total"),
    ],
    [
        (lambda node: node.fake("nvidia-smi", "exit 124"), "nvidia_smi"),
        (lambda node: node.fake("df", "echo"), "system_disk_used"),
        (_silent_log("journalctl", "dmesg", body="exit 1"), "gpu_xid"),
        (
            lambda node: node.write("sys/class/infiniband/mlx5_ib0/ports/1/counters/link_downed", "\n"),
            "ib_link_flaps",
        ),
    ],
    [
        (lambda node: node.fake("nvidia-smi", "exit 13"), "nvidia_smi"),
        (lambda node: node.remove("journalctl"), "gpu_xid"),
    ],
    [
        (lambda node: node.fake("nvidia-smi", "exit 0"), "gpu_temperature"),
        (_silent_log("journalctl", "dmesg", body="exit 0"), "gpu_xid"),
    ],
    [(lambda node: node.fake("nvidia-smi", "echo '<html>'"), "gpu_temperature")],
    [
        (_gpu(11, "[N/A]"), "gpu_throttling"),
        (_gpu(3, "[N/A]"), "gpu_ecc_sram_uncorrectable"),
        (lambda node: node.set_gpus(node.rows, remap=""), "gpu_remap"),
    ],
    [(_gpu(3, "garbage"), "gpu_ecc_sram_uncorrectable")],
]


@pytest.mark.parametrize("cases", UNMEASURED)
def test_what_was_not_measured_is_no_pass(node: Healthy, cases: list[tuple[Any, str]]) -> None:
    for change, _ in cases:
        change(node)
    result = node.quick()
    assert result["verdict"] == "incomplete", result
    assert {check for _, check in cases} <= _rows(node, "not_measured")
    assert _rows(node, "fail") == set()
    assert node.reason() == ""


def test_the_definition_may_drain_for_it(node: Healthy) -> None:
    node.attribute("cycleforge.health.unmeasured", "drain")
    node.ok("20-health.sh")
    node.remove("nvidia-smi")
    node.quick()
    assert node.reason().startswith("CycleForge health: could not be measured: ")
    named = node.reason().rpartition(": ")[2].removesuffix("...").split(", ")
    assert named[0] == "nvidia_smi"
    assert len(set(named)) == len(named), "each check once"


def test_a_driver_that_is_too_old_for_the_new_field_name(node: Healthy) -> None:
    node.set_gpus(node.rows, code=2)
    result = node.quick()
    assert result["verdict"] == "pass", result


def test_an_unknown_size_neither_fails_nor_passes(node: Healthy) -> None:
    node.vm_size("Standard_ND999_v9")
    assert "has no figures" in node.ok("20-health.sh")
    result = node.quick()
    assert (result["verdict"], result["size_known"]) == ("incomplete", False)
    assert "no_baseline" in {row["verdict"] for row in result["checks"]}
    assert node.reason() == ""


def test_a_fatal_fault_on_an_unknown_size_still_drains(node: Healthy) -> None:
    node.vm_size("Standard_ND999_v9")
    node.ok("20-health.sh")
    node.set_gpus(node.rows, code=15)
    result = node.quick()
    assert result["verdict"] == "fail", result
    assert "GPU fell off the bus" in node.reason()


def test_a_fatal_xid_on_an_unknown_size_still_drains(node: Healthy) -> None:
    node.vm_size("Standard_ND999_v9")
    node.ok("20-health.sh")
    node.xid(79)
    result = node.quick()
    assert result["verdict"] == "fail", result
    assert "XID 79" in node.reason()


def test_a_driver_that_sees_no_gpu_at_all_is_a_fault(node: Healthy) -> None:
    node.fake("nvidia-smi", "echo 'No devices were found'")
    node.quick()
    assert "gpu_count 0 GPUs, expected 8 GPUs" in node.reason()


def test_an_unknown_size_without_gpus_is_asked_for_none(node: Healthy) -> None:
    node.vm_size("Standard_X9")
    node.ok("20-health.sh")
    node.remove("nvidia-smi")
    checks = {row["check"]: row["verdict"] for row in node.quick()["checks"]}
    assert "not_measured" not in checks.values(), checks


def test_a_cpu_node_has_no_gpu_checks(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), "Standard_D4as_v5")
    for place in range(8):
        node.port(f"mlx5_ib{place}", layer="Ethernet")
    node.cpus(4, sockets=1)
    result = node.quick()
    assert not [row["check"] for row in result["checks"] if row["check"].startswith(("gpu", "ib_"))]
    assert result["verdict"] == "pass"


# ---------------------------------------------------------------- InfiniBand flaps


def flap(node: Healthy, count: int, now: int) -> str:
    node.only("ib_flaps")
    node.port("mlx5_ib2", downed=str(count))
    code, output = node.health("quick", CYCLEFORGE_NOW_S=str(now))
    assert code == 0, output
    return node.verdict("ib_link_flaps")


def test_flaps_count_within_their_window(node: Healthy) -> None:
    hour = 3600
    assert flap(node, 1, 0) == "pass", "what happened before the first look is the base"
    assert flap(node, 5, 30 * hour) == "pass", "4 losses"
    assert flap(node, 6, 31 * hour) == "fail", "5 losses in 24 h"
    assert "ib_link_flaps 5 losses in 24 h, below 5 losses in 24 h (mlx5_ib2)" in node.reason()
    assert flap(node, 6, 56 * hour) == "pass", "a day later"
    assert flap(node, 0, 57 * hour) == "pass", "the counter starts anew with a reboot"
    assert flap(node, 4, 58 * hour) == "pass"
    assert flap(node, 5, 59 * hour) == "fail"


def test_flaps_after_a_long_quiet_time_are_not_lost(node: Healthy) -> None:
    assert flap(node, 0, 0) == "pass"
    assert flap(node, 0, 100 * 3600) == "pass"
    assert flap(node, 5, 101 * 3600) == "fail"
