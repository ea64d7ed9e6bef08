"""Draining and resuming in a namespace of our own, and what a run leaves behind."""

from __future__ import annotations

import pytest

from tests.bed.scripts.healthy import Healthy, healthy
from tests.projects.conftest import MakeNode


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    return healthy(make_node("slurm_nhc"))


# ---------------------------------------------------------------- Slurm


def test_a_foreign_drain_is_neither_overwritten_nor_resumed(node: Healthy) -> None:
    node.only("load", "mounts", "gpu_count", "gpu_xid")
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
    node.only("load", "mounts", "gpu_count", "gpu_xid")
    node.lose_mount()
    node.quick()
    node.restore_mount()
    node.quick()
    assert node.reason()
    node.quick()
    assert node.reason() == ""
    assert node.calls("scontrol update")[-1] == "scontrol update NodeName=node-1 State=RESUME"


def test_an_incomplete_run_resumes_nothing(node: Healthy) -> None:
    node.only("load", "mounts", "gpu_count", "gpu_xid")
    node.lose_mount()
    node.quick()
    node.restore_mount()
    node.remove("nvidia-smi")
    for _ in range(3):
        node.quick()
    assert node.reason()


def test_a_hardware_event_is_not_resumed_when_the_log_forgets_it(node: Healthy) -> None:
    node.only("load", "mounts", "gpu_count", "gpu_xid")
    node.xid(79)
    node.quick()
    node.write("proc/sys/kernel/random/boot_id", "boot-2\n")
    node.kernel_log()
    for _ in range(3):
        node.quick()
    assert "XID 79" in node.reason()
    assert "health.sh repaired" in node.health("quick")[1]


def test_a_fault_that_must_not_be_resumed_joins_the_reason_of_one_that_may(node: Healthy) -> None:
    node.only("load", "mounts", "gpu_count", "gpu_xid")
    node.lose_mount()
    node.quick()
    node.xid(79)
    node.quick()
    assert "XID 79" in node.reason()
    node.restore_mount()
    node.kernel_log()
    for _ in range(3):
        node.quick()
    assert "XID 79" in node.reason()


def test_a_person_says_that_the_node_is_repaired(node: Healthy) -> None:
    node.only("load", "mounts", "gpu_count", "gpu_xid")
    node.xid(79)
    node.quick()
    assert node.health("gate")[0] == 3
    code, output = node.health("repaired")
    assert (code, "resumed; it was drained for: CycleForge health: report the host" in output) == (0, True)
    assert node.reason() == ""
    assert node.health("gate")[0] == 0


def test_repaired_touches_no_drain_of_somebody_else(node: Healthy) -> None:
    (node.state / "slurm_state").write_text("IDLE+DRAIN\n")
    (node.state / "slurm_reason").write_text("admin: new cable")
    assert "not drained by the health checks" in node.health("repaired")[1]
    assert node.reason() == "admin: new cable"


def test_repaired_without_slurm_says_so(node: Healthy) -> None:
    node.fake("scontrol", "exit 1")
    code, output = node.health("repaired")
    assert code == 1
    assert "scontrol update NodeName=node-1 State=RESUME" in output


def test_resuming_can_be_switched_off(node: Healthy) -> None:
    node.attribute("cycleforge.health.resume", "False")
    node.ok("20-health.sh")
    node.only("load")
    (node.state / "slurm_state").write_text("IDLE+DRAIN\n")
    (node.state / "slurm_reason").write_text("CycleForge health: mount (x)")
    for _ in range(3):
        node.quick()
    assert node.reason()


@pytest.mark.parametrize("slurm", ["exit 1", None])
def test_a_sick_node_that_cannot_be_drained_is_told_by_the_exit_code(node: Healthy, slurm: str | None) -> None:
    node.only("gpu_count")
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
    node.only("gpu_driver")
    node.fake("nvidia-smi", "printf 'a \"b\" \\\\ \\t \\001 end\\n'; exit 33")
    node.quick()
    assert node.verdict("nvidia_smi") == "fail"


def test_only_one_run_at_a_time(node: Healthy) -> None:
    lock = node.root / "run/cycleforge/health-quick.lock"
    lock.parent.mkdir(parents=True, exist_ok=True)
    script = node.root / "opt/cycleforge/slurm_nhc/health.sh"
    result = node.command("-c", f'exec 8>"{lock}"; flock 8; bash {script} quick 8>&-')
    assert result.returncode == 0
    assert "another quick run is going" in result.stdout
    assert not (node.root / "var/lib/cycleforge/health/quick.json").exists()


def test_the_result_names_what_a_collection_needs(node: Healthy) -> None:
    node.only("load")
    pool = node.write("var/lib/hyperv/.kvp_pool_3", "")
    record = b"PhysicalHostNameFullyQualified".ljust(512, b"\0") + b"SN4-R12-H07".ljust(2048, b"\0")
    pool.write_bytes(b"HostName".ljust(512, b"\0") + b"SN4".ljust(2048, b"\0") + record)
    result = node.quick()
    assert (result["format"], result["physical_host"], result["boot_id"]) == (1, "SN4-R12-H07", "boot-1")
    assert (result["engine"], result["kind"], result["reason"]) == ("built in", "quick", "")


def test_a_copy_goes_to_the_folder_of_the_cluster(node: Healthy) -> None:
    node.attribute("cycleforge.health.results", "/sched/results")
    node.ok("20-health.sh")
    node.only("load")
    node.quick()
    assert not (node.root / "sched/results").exists(), "only the scheduler makes the folder"
    (node.root / "sched/results").mkdir()
    node.quick()
    assert (node.root / "sched/results/node-1.quick.json").read_text() == node.read(
        "var/lib/cycleforge/health/quick.json"
    )


def test_a_shared_folder_that_refuses_does_not_hold_the_checks(node: Healthy) -> None:
    node.attribute("cycleforge.health.results", "/sched/results")
    node.ok("20-health.sh")
    node.only("gpu_count")
    (node.root / "sched/results/node-1.quick.json").mkdir(parents=True)
    node.set_gpus(node.rows[:7])
    code, output = node.health("quick")
    assert (code, "could not be copied to /sched/results" in output) == (0, True)
    assert node.reason()


def test_a_run_reads_and_repairs_nothing(node: Healthy) -> None:
    """What a check repairs on the quiet stays broken in the end: clocks and persistence belong to misc_ndv4."""
    node.set_gpus([row.replace("Enabled", "Disabled").replace("1410, 1410", "1410, 1095") for row in node.rows])
    before = {path: entry for path, entry in node.files().items() if not path.startswith(("var/", "run/"))}
    assert node.quick()["verdict"] == "warn"
    assert all("--query" in call or "nvlink --status" in call for call in node.calls("nvidia-smi"))
    assert {path: entry for path, entry in node.files().items() if not path.startswith(("var/", "run/"))} == before


def test_an_epilog_starts_nothing_that_disturbs_another_job(node: Healthy) -> None:
    for tool in ("nvbandwidth", "mpirun", "ib_write_bw", "dcgmi"):
        node.fake(tool, "exit 0")
    assert node.health("epilog")[0] == 0
    assert [call for tool in ("nvbandwidth", "mpirun", "ib_write_bw", "dcgmi") for call in node.calls(tool)] == []


def test_run_folders_come_back_after_a_reboot(node: Healthy) -> None:
    """/run is empty after every boot."""
    node.only("load", "gpu_driver")
    node.quick()
    for path in sorted((node.root / "run").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (node.root / "run").rmdir()
    assert node.quick()["verdict"] == "pass"


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "lustre", "fuse.blobfuse2"])
def test_the_type_of_a_shared_file_system_does_not_matter(node: Healthy, kind: str) -> None:
    node.only("mounts")
    node.write("proc/mounts", f"fs /sched {kind} rw 0 0\nfs /shared {kind} rw 0 0\n")
    assert node.quick()["verdict"] == "pass"
