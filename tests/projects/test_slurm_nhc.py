"""slurm_nhc: verdicts of the quick and deep checks, draining in our own namespace, hooks, units."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.projects.conftest import MakeNode
from tests.projects.node import A100, H100, Node

GOOD_GPU = "{i}, 40, Enabled, 0, 0, 0, 0, 0, 0, 0, 0, 0x0000000000000000"
SCONTROL = """
state="$(cat "$FAKE_STATE/slurm_state" 2>/dev/null || echo IDLE)"
reason="$(cat "$FAKE_STATE/slurm_reason" 2>/dev/null || true)"
case "$1" in
    --oneliner) echo "NodeName=$4 State=$state ThreadsPerCore=1 ${reason:+Reason=$reason [root@2026-01-01T00:00:00]}" ;;
    update)
        for word in "$@"; do
            case "$word" in
                State=DRAIN) echo IDLE+DRAIN >"$FAKE_STATE/slurm_state" ;;
                State=RESUME) echo IDLE >"$FAKE_STATE/slurm_state"; rm -f "$FAKE_STATE/slurm_reason" ;;
                Reason=*) printf '%s' "${word#Reason=}" >"$FAKE_STATE/slurm_reason" ;;
            esac
        done ;;
esac
"""


class Healthy(Node):
    """A healthy GPU node with the health project installed; tests break one thing each."""

    rows: list[str]

    def set_gpus(
        self, rows: list[str], code: int = 0, remap: str = "{i}, 0, 0, 0", nvlink: str = "Link 0: 25 GB/s"
    ) -> None:
        remapped = "\\n".join(remap.format(i=place) for place in range(len(rows)))
        listing = "\\n".join(rows)
        self.fake(
            "nvidia-smi",
            f"""case "$*" in
    *clocks_event_reasons*) printf '{listing}\\n'; exit {code} ;;
    *clocks_throttle_reasons*) printf '{listing}\\n' ;;
    *remapped_rows*) printf '{remapped}\\n' ;;
    *nvlink*) printf 'GPU 0: A100\\n\\t {nvlink}\\n' ;;
esac""",
        )

    def port(self, name: str, state: str = "4: ACTIVE", phys: str = "5: LinkUp", rate: str = "200 Gb/sec (4X HDR)",
             layer: str = "InfiniBand", downed: str = "0") -> None:  # fmt: skip
        folder = f"sys/class/infiniband/{name}/ports/1"
        for file, text in (("link_layer", layer), ("state", state), ("phys_state", phys), ("rate", rate)):
            self.write(f"{folder}/{file}", text + "\n")
        self.write(f"{folder}/counters/link_downed", downed + "\n")

    def health(self, *words: str, **extra: str) -> tuple[int, str]:
        result = self.command(str(self.root / "opt/cycleforge/slurm_nhc/health.sh"), *words, **extra)
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


def healthy(node: Node, size: str = A100) -> Healthy:
    made = Healthy.__new__(Healthy)
    made.__dict__ = node.__dict__
    made.vm_size(size)
    made.attribute("cycleforge.mounts", "/sched /shared")
    made.attribute("cycleforge.health.deep_s", "0")
    made.fake("scontrol", SCONTROL)
    made.fake("df", "printf 'Use%%\\n 17%%\\n'")
    made.write("proc/cpuinfo", "processor\t: 0\n" * 96)
    made.write("proc/meminfo", "MemTotal:       1857830712 kB\nMemFree: 1 kB\n")
    made.write("proc/mounts", "fs /sched nfs4 rw,hard 0 0\nfs /shared nfs4 rw 0 0\n")
    made.write("proc/sys/kernel/random/boot_id", "boot-1\n")
    for place in range(8):
        made.write(f"sys/block/nvme{place}n1/device/model", "Microsoft NVMe Direct Disk v2\n")
        made.port(f"mlx5_ib{place}", rate="400 Gb/sec (4X NDR)" if size == H100 else "200 Gb/sec (4X HDR)")
    made.port("mlx5_an0", layer="Ethernet", rate="40 Gb/sec")
    for mount in ("sched", "shared"):
        (made.root / mount).mkdir()
    made.rows = [GOOD_GPU.format(i=place) for place in range(8)]
    made.set_gpus(made.rows)
    made.ok("20-health.sh")
    made.forget()
    return made


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
    node.quick()
    assert len(node.calls("nvidia-smi")) == 3
    assert node.calls("systemctl") == []


# What a broken node shows → check that fails → what the reason names.
def _mount_ro(node: Healthy) -> None:
    node.write("proc/mounts", "fs /sched nfs4 rw 0 0\nfs /shared nfs4 ro 0 0\n")


def _gone(node: Healthy) -> None:
    node.write("proc/mounts", "fs /sched nfs4 rw 0 0\n")


def _gpu(field: int, value: str) -> Any:
    def change(node: Healthy) -> None:
        fields = node.rows[3].split(", ")
        fields[field] = value
        node.set_gpus([*node.rows[:3], ", ".join(fields), *node.rows[4:]])

    return change


def _xid(code: int) -> Any:
    return lambda node: node.fake(
        "journalctl",
        f"echo 'eth0: up'; echo 'NVRM: Xid (PCI:0001:00:00): {code}, pid=7'; echo 'NVRM: Xid (PCI:0001:00:00): 43, x'",
    )


BROKEN = [
    (
        lambda node: node.write("proc/cpuinfo", "processor\t: 0\n" * 95),
        "cpu_threads",
        "cpu_threads 95 threads, at least 96 threads",
    ),
    (
        lambda node: node.write("proc/meminfo", "MemTotal: 1703719136 kB\n"),
        "memory_total",
        "KiB, at least 1803719137 KiB",
    ),
    (_mount_ro, "mount", "/shared is mounted read-only"),
    (_gone, "mount", "/shared is not mounted"),
    (lambda node: node.set_gpus(node.rows[:7]), "gpu_count", "gpu_count 7 GPUs, expected 8 GPUs"),
    (
        lambda node: node.set_gpus(node.rows, code=15),
        "nvidia_smi",
        "15 exit code, expected 0 exit code (GPU fell off the bus)",
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
        lambda node: node.set_gpus(node.rows, nvlink="Link 3: <inactive>"),
        "gpu_nvlink_inactive",
        "1 of 1 links, at most 0",
    ),
    (_xid(79), "gpu_xid", "1 fatal XIDs in 2 h, at most 0 fatal XIDs in 2 h (XID 79 at PCI:0001:00:00)"),
    (_xid(120), "gpu_xid", "XID 120"),
    (
        lambda node: node.port("mlx5_ib5", state="1: DOWN", phys="3: Disabled"),
        "ib_ports_active",
        "7 ports, at least 8 ports (mlx5_ib5 DOWN Disabled)",
    ),
    (
        lambda node: node.port("mlx5_ib5", rate="100 Gb/sec (4X EDR)"),
        "ib_rate",
        "100 Gb/s, at least 200 Gb/s (mlx5_ib5)",
    ),
]


@pytest.mark.parametrize(("breaks", "check", "words"), BROKEN)
def test_a_fault_drains_the_node_with_check_value_limit_and_unit(
    node: Healthy, breaks: Any, check: str, words: str
) -> None:
    breaks(node)
    assert node.quick()["verdict"] == "fail"
    assert "fail" in {row["verdict"] for row in node.result("quick")["checks"] if row["check"] == check}
    assert node.reason().startswith("CycleForge health: ")
    assert words in node.reason()
    assert node.calls("scontrol update") == [f"scontrol update NodeName=node-1 State=DRAIN Reason={node.reason()}"]


AT_THE_LIMIT = [
    lambda node: node.write("proc/meminfo", "MemTotal: 1803719137 kB\n"),
    lambda node: node.write("proc/meminfo", "MemTotal: 2857830712 kB\n"),
    _gpu(6, "10000"),
    lambda node: node.set_gpus(node.rows, remap="{i}, No, No, 512"),
    _xid(43),
    lambda node: node.port("mlx5_ib5", rate="400 Gb/sec (4X NDR)"),
]


@pytest.mark.parametrize("changes", AT_THE_LIMIT)
def test_values_at_the_good_side_of_the_limit_pass(node: Healthy, changes: Any) -> None:
    changes(node)
    assert node.quick()["verdict"] == "pass"


WARNINGS = [
    (_gpu(2, "Disabled"), "gpu_persistence"),
    (_gpu(1, "94"), "gpu_temperature"),
    (_gpu(11, "0x0000000000000008"), "gpu_throttling"),
    (_gpu(7, "1"), "gpu_ecc_dram_uncorrectable"),
    (lambda node: node.fake("df", "printf 'Use%%\\n 91%%\\n'"), "system_disk_used"),
    (lambda node: node.write("sys/block/nvme7n1/device/model", "MSFT NVMe Accelerator v1.0\n"), "nvme_disks"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "check"), WARNINGS)
def test_warnings_drain_nothing(node: Healthy, changes: Any, check: str) -> None:
    changes(node)
    assert node.quick()["verdict"] == "warn"
    assert node.verdict(check) == "warn"
    assert node.reason() == ""


def test_a_lost_nvme_disk_drains_where_a_health_source_knows_the_count(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), H100)
    node.write("proc/meminfo", "MemTotal: 1961032704 kB\n")
    assert node.quick()["verdict"] == "pass"
    (node.root / "sys/block/nvme7n1").rename(node.root / "sys/lost")
    assert node.quick()["verdict"] == "fail"
    assert "nvme_disks 7 disks, at least 8 disks" in node.reason()


UNMEASURED = [
    (lambda node: node.remove("nvidia-smi"), "nvidia_smi"),
    (lambda node: node.fake("nvidia-smi", "exit 124"), "nvidia_smi"),
    (lambda node: node.fake("nvidia-smi", "exit 77"), "nvidia_smi"),
    (_gpu(3, "[N/A]"), "gpu_ecc_sram_uncorrectable"),
    (_gpu(3, "garbage"), "gpu_ecc_sram_uncorrectable"),
    (lambda node: node.set_gpus(node.rows, remap=""), "gpu_remap"),
    (lambda node: (node.fake("journalctl", "exit 1"), node.fake("dmesg", "exit 1")), "gpu_xid"),
    (lambda node: (node.remove("journalctl"), None), "gpu_xid"),
    (lambda node: node.write("sys/class/infiniband/mlx5_ib0/ports/1/counters/link_downed", "\n"), "ib_link_flaps"),
    (lambda node: node.write("proc/meminfo", "MemFree: 5 kB\n"), "memory_total"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "check"), UNMEASURED)
def test_what_was_not_measured_is_no_pass(node: Healthy, changes: Any, check: str) -> None:
    changes(node)
    result = node.quick()
    assert "not_measured" in {row["verdict"] for row in result["checks"] if row["check"] == check}
    assert result["verdict"] == "incomplete"
    assert node.reason() == ""


def test_the_definition_may_drain_for_it(node: Healthy) -> None:
    node.attribute("cycleforge.health.unmeasured", "drain")
    node.ok("20-health.sh")
    node.remove("nvidia-smi")
    node.quick()
    assert node.reason() == "CycleForge health: 1 checks could not be measured"


def test_a_driver_that_is_too_old_for_the_new_field_name(node: Healthy) -> None:
    node.set_gpus(node.rows, code=2)
    assert node.quick()["verdict"] == "pass"


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
    _xid(79)(node)
    assert node.quick()["verdict"] == "fail"
    assert "XID 79" in node.reason()


def test_a_cpu_node_has_no_gpu_checks(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), "Standard_D4as_v5")
    for place in range(8):
        node.port(f"mlx5_ib{place}", layer="Ethernet")
    node.write("proc/cpuinfo", "processor\t: 0\n" * 4)
    node.remove("nvidia-smi")
    result = node.quick()
    assert not [row["check"] for row in result["checks"] if row["check"].startswith(("gpu", "ib_"))]
    assert result["verdict"] == "pass"


# ---------------------------------------------------------------- InfiniBand flaps


def flap(node: Healthy, count: int, now: int) -> str:
    node.port("mlx5_ib2", downed=str(count))
    node.fake("date", f"echo {now}")
    node.quick()
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


# ---------------------------------------------------------------- Slurm


def test_a_foreign_drain_is_neither_overwritten_nor_resumed(node: Healthy) -> None:
    (node.state / "slurm_state").write_text("IDLE+DRAIN\n")
    for reason in ("Healthcheck failures. Run 'health -s' view health report.", "NHC: x", "admin: CycleForge health"):
        (node.state / "slurm_reason").write_text(reason)
        node.set_gpus(node.rows[:7])
        node.quick()
        node.set_gpus(node.rows)
        for _ in range(3):
            node.quick()
        assert node.reason() == reason
    assert node.calls("scontrol update") == []


def test_an_own_drain_is_resumed_after_two_healthy_runs(node: Healthy) -> None:
    _gone(node)
    node.quick()
    node.write("proc/mounts", "fs /sched nfs4 rw 0 0\nfs /shared nfs4 rw 0 0\n")
    node.quick()
    assert node.reason()
    node.quick()
    assert node.reason() == ""
    assert node.calls("scontrol update")[-1] == "scontrol update NodeName=node-1 State=RESUME"


def test_an_incomplete_run_resumes_nothing(node: Healthy) -> None:
    _gone(node)
    node.quick()
    node.write("proc/mounts", "fs /sched nfs4 rw 0 0\nfs /shared nfs4 rw 0 0\n")
    node.remove("nvidia-smi")
    for _ in range(3):
        node.quick()
    assert node.reason()


def test_a_hardware_event_is_not_resumed_when_the_log_forgets_it(node: Healthy) -> None:
    _xid(79)(node)
    node.quick()
    node.fake("journalctl", "exit 0")
    for _ in range(3):
        node.quick()
    assert "XID 79" in node.reason()
    assert "scontrol update NodeName=node-1 State=RESUME" in node.health("quick")[1]


def test_resuming_can_be_switched_off(node: Healthy) -> None:
    node.attribute("cycleforge.health.resume", "False")
    node.ok("20-health.sh")
    (node.state / "slurm_state").write_text("IDLE+DRAIN\n")
    (node.state / "slurm_reason").write_text("CycleForge health: mount (x)")
    for _ in range(3):
        node.quick()
    assert node.reason()


@pytest.mark.parametrize("slurm", ["exit 1", None])
def test_a_sick_node_that_cannot_be_drained_is_told_by_the_exit_code(node: Healthy, slurm: str | None) -> None:
    if slurm is None:
        node.remove("scontrol")
    else:
        node.fake("scontrol", slurm)
    node.set_gpus(node.rows[:7])
    code, output = node.health("quick")
    assert code == 3
    assert "not drained: CycleForge health: gpu_count 7" in output
    assert node.result("quick")["verdict"] == "fail"


def test_long_reasons_are_cut(node: Healthy) -> None:
    node.write("proc/mounts", "")
    node.attribute("cycleforge.mounts", " ".join(f"/data/{'x' * 20}{place}" for place in range(20)))
    node.ok("20-health.sh")
    node.quick()
    assert len(node.reason()) <= 320
    assert len(node.result("quick")["checks"]) > 20


def test_results_are_json_whatever_a_tool_prints(node: Healthy) -> None:
    node.fake("nvidia-smi", "printf 'a \"b\" \\\\ \\t \\001 end\\n'; exit 33")
    node.quick()
    assert node.verdict("nvidia_smi") == "not_measured"


def test_only_one_run_at_a_time(node: Healthy) -> None:
    lock = node.root / "run/lock/cycleforge-health.lock"
    lock.parent.mkdir(parents=True)
    script = node.root / "opt/cycleforge/slurm_nhc/health.sh"
    result = node.command("-c", f'exec 8>"{lock}"; flock 8; bash {script} quick 0 8>&-')
    assert result.returncode == 0
    assert "another health run is going" in result.stdout
    assert not (node.root / "var/lib/cycleforge/health/quick.json").exists()


# ---------------------------------------------------------------- deep checks and the gate

MATRIX = """Running the test.
memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)
           0         1         2
 0     1026.28   VALUE     1026.20

SUM of the test 3078.1
"""
NCCL = "# Out of bounds values : {wrong} OK\\n# Avg bus bandwidth    : {value}\\n"


def tools(node: Healthy, copy: str = "26.10", bus: str = "231.5", wrong: str = "0") -> None:
    """Bandwidth tools: `copy` GB/s from and to the host, 250.1 between GPUs, `bus` GB/s for all-reduce."""
    node.fake("nvbandwidth", f"case $2 in device_to_device*) value=250.1 ;; *) value={copy} ;; esac\n"
                             f'sed "s/VALUE/$value/" <<\'END\'\n{MATRIX}END\n')  # fmt: skip
    node.fake("mpirun", f"env >\"$FAKE_STATE/mpirun.env\"; printf '{NCCL.format(value=bus, wrong=wrong)}'")
    node.write("opt/nccl-tests/build/all_reduce_perf", "", 0o755)
    node.attribute("cycleforge.health.deep_s", "300")
    node.ok("20-health.sh")


def deep(node: Healthy) -> dict[str, Any]:
    code, output = node.health("deep")
    assert code == 0, output
    return node.result("deep")


def test_deep_checks_of_a_healthy_node_pass(node: Healthy) -> None:
    tools(node)
    assert deep(node)["verdict"] == "pass"
    assert [row["value"] for row in node.result("deep")["checks"]] == ["26.10", "26.10", "250.1", "231.5"]
    assert node.health("gate") == (0, "")


def test_deep_checks_read_the_smallest_number_as_a_number(node: Healthy) -> None:
    tools(node, copy="9.5")
    deep(node)
    assert node.verdict("gpu_copy_to_device", "deep") == "fail"
    tools(node, copy="21.00")
    deep(node)
    assert node.verdict("gpu_copy_to_device", "deep") == "pass"
    tools(node, copy="100.2")
    deep(node)
    assert node.verdict("gpu_copy_to_device", "deep") == "pass"


@pytest.mark.parametrize(
    ("bus", "verdict"), [("228", "pass"), ("227.9", "fail"), ("99.0", "fail"), ("1002.5", "pass"), ("", "not_measured")]
)
def test_all_reduce_against_its_floor(node: Healthy, bus: str, verdict: str) -> None:
    tools(node, bus=bus)
    deep(node)
    assert node.verdict("nccl_all_reduce", "deep") == verdict
    assert len(node.calls("mpirun")) >= (1 if verdict == "pass" else 2), "a miss is measured again"


def test_wrong_sums_are_a_fault_however_fast(node: Healthy) -> None:
    tools(node, wrong="3", bus="500")
    assert deep(node)["verdict"] == "fail"
    assert node.verdict("nccl_wrong_values", "deep") == "fail"


def test_all_reduce_runs_under_the_variables_of_its_floor(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), H100)
    tools(node)
    deep(node)
    variables = (node.state / "mpirun.env").read_text().splitlines()
    assert "NCCL_MIN_NCHANNELS=32" in variables
    assert "mpirun -np 8 --map-by ppr:8:node --bind-to numa" in node.calls("mpirun")[0]
    assert "-b 16G -e 16G" in node.calls("mpirun")[0]


def test_missing_tools_are_not_measured(node: Healthy) -> None:
    node.attribute("cycleforge.health.deep_s", "300")
    node.ok("20-health.sh")
    assert deep(node)["verdict"] == "incomplete"
    assert {row["verdict"] for row in node.result("deep")["checks"]} == {"not_measured"}


def test_a_size_without_floors_has_no_baseline(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), "Standard_ND128isr_GB300_v6")
    tools(node)
    deep(node)
    assert node.verdict("nccl_all_reduce", "deep") == "no_baseline"


def test_the_image_nhc_is_reported_and_drains_only_on_request(node: Healthy) -> None:
    node.write("etc/nhc/nhc.conf", "* || check\n")
    node.write(
        "usr/sbin/nhc",
        f'#!{node.bin}/bash\necho "$*" >>"$FAKE_STATE/nhc"\necho "ERROR:  nhc:  Health check failed:  x"\nexit 1\n',
        0o755,
    )
    tools(node)
    deep(node)
    assert node.verdict("image_nhc", "deep") == "warn"
    assert "MARK_OFFLINE=0" in (node.state / "nhc").read_text()
    node.attribute("cycleforge.health.nhc", "drain")
    node.ok("20-health.sh")
    deep(node)
    assert node.verdict("image_nhc", "deep") == "fail"


def test_a_failed_deep_check_refuses_the_first_job_and_drains(node: Healthy) -> None:
    tools(node, copy="9.5")
    deep(node)
    assert node.calls("scontrol") == [], "Slurm is not up yet"
    code, _ = node.health("gate")
    assert code == 3
    assert node.reason().startswith("CycleForge health: gpu_copy_to_device 9.5 GB/s, at least 21 GB/s")
    assert node.quick()["verdict"] == "fail"


def test_the_verdict_of_an_earlier_boot_does_not_count(node: Healthy) -> None:
    tools(node, copy="9.5")
    deep(node)
    node.write("proc/sys/kernel/random/boot_id", "boot-2\n")
    assert node.health("gate")[0] == 0
    assert node.quick()["verdict"] == "pass"


def test_the_gate_is_open_without_deep_checks(node: Healthy) -> None:
    assert node.health("gate") == (0, "")


@pytest.mark.parametrize(("hook", "words"), [("prolog.sh", "gate"), ("epilog.sh", "quick 2")])
@pytest.mark.parametrize(("code", "refused"), [(0, False), (1, False), (124, False), (3, True)])
def test_hooks_fail_only_for_a_sick_node(node: Healthy, hook: str, words: str, code: int, refused: bool) -> None:
    """With the real paths replaced, as they run without our library."""
    fake = node.write("health.sh", f'echo "$*" >"$FAKE_STATE/hook"\nexit {code}\n')
    text = (node.spec / "files" / hook).read_text().replace("/opt/cycleforge/slurm_nhc/health.sh", str(fake))
    text = text.replace("export PATH=", "# PATH=")
    result = node.command("-c", text)
    assert (result.returncode != 0) == refused
    assert (node.state / "hook").read_text() == words + "\n"


@pytest.mark.parametrize("hook", ["prolog.sh", "epilog.sh"])
def test_hooks_pass_on_nodes_without_the_health_layer(node: Healthy, hook: str) -> None:
    result = node.command(str(node.spec / "files" / hook))
    assert (result.returncode, result.stdout + result.stderr) == (0, "")


# ---------------------------------------------------------------- installation


def test_the_scheduler_writes_the_hooks_once(node: Healthy) -> None:
    node.attribute("slurm.role", "scheduler")
    shared = node.root / "sched/cluster"
    for kind in ("prolog", "epilog"):
        (shared / f"{kind}.d").mkdir(parents=True)
        (node.root / "etc/slurm").mkdir(exist_ok=True)
        (node.root / f"etc/slurm/{kind}.d").symlink_to(shared / f"{kind}.d")
    assert "2 of 2 hooks changed" in node.ok("10-hooks.sh")
    assert "0 of 2 hooks changed" in node.ok("10-hooks.sh")
    for kind in ("prolog", "epilog"):
        assert (shared / f"{kind}.d/20-cycleforge_health.sh").stat().st_mode & 0o777 == 0o755
        assert (node.root / f"etc/slurm/{kind}.d").is_symlink()
    node.attribute("cycleforge.health.enabled", "False")
    node.ok("10-hooks.sh")
    assert not list(shared.rglob("*.sh"))


def test_a_scheduler_without_slurm_is_told_what_to_do(node: Healthy) -> None:
    node.attribute("slurm.role", "scheduler")
    assert "/etc/slurm/prolog.d is missing on the scheduler" in node.fails("10-hooks.sh")


@pytest.mark.parametrize("role", ["scheduler", "login"])
def test_no_checks_where_no_jobs_run(make_node: MakeNode, role: str) -> None:
    node = make_node("slurm_nhc")
    node.attribute("slurm.role", role)
    node.ok("20-health.sh")
    assert not (node.root / "opt").exists()


def test_the_timer_and_its_interval(node: Healthy) -> None:
    node.attribute("cycleforge.health.interval_s", "600")
    node.ok("20-health.sh")
    assert "OnUnitActiveSec=600\n" in node.read("etc/systemd/system/cycleforge-health.timer")
    assert node.calls("systemctl restart") == ["systemctl restart cycleforge-health.timer"]


def test_deep_checks_run_at_converge_and_before_slurmd_at_boot(node: Healthy) -> None:
    tools(node)
    service = node.read("etc/systemd/system/cycleforge-health-deep.service")
    assert "Before=slurmd.service" in service
    assert "TimeoutStartSec=" in service
    assert "After=cycleforge-health-deep.service" in node.read(
        "etc/systemd/system/slurmd.service.d/20-cycleforge-slurm_nhc.conf"
    )
    assert node.result("deep")["kind"] == "deep"


def test_everything_can_be_switched_off(node: Healthy) -> None:
    tools(node)
    node.attribute("cycleforge.health.enabled", "False")
    node.ok("20-health.sh")
    assert not [path for path in node.files() if path.startswith("etc/systemd/system")]
    assert not (node.root / "opt/cycleforge/slurm_nhc/health.sh").exists()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cycleforge.mounts", "sched shared"),
        ("cycleforge.health.unmeasured", "ignore"),
        ("cycleforge.health.interval_s", "5"),
        ("cycleforge.health.nhc", "yes"),
    ],
)
def test_bad_attributes_stop_the_converge(node: Healthy, key: str, value: str) -> None:
    node.attribute(key, value)
    output = node.fails("20-health.sh")
    assert key in output
    assert "expected" in output


def test_a_second_run_changes_nothing(node: Healthy) -> None:
    tools(node)
    before = node.files()
    node.forget()
    node.ok("20-health.sh")
    assert node.files() == before
    assert node.calls("systemctl restart") == []
