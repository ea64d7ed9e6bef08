"""What stands against a node: written with every failure, read by the prolog, lifted by what the failure needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bed.scripts.healthy import healthy
from tests.bed.scripts.planned import VM_A, VM_B, Planned
from tests.projects.conftest import MakeNode

MOUNT = ("fail", "mount", "/shared is not mounted")
BUS = ("reboot", "gpu_xid", "XID 119 at PCI:0001:00:00")
ROWS = ("reset", "gpu_remap_pending", "GPU 3")
BOARD = ("service", "gpu_remap_failure", "GPU 3")
HEALTHAGENT = "Healthcheck failures. Run 'health -s' view health report."


@pytest.fixture
def node(make_node: MakeNode) -> Planned:
    """Deep checks are on."""
    return Planned(healthy(make_node("slurm_nhc"), deep_s=100))


@pytest.fixture
def shallow(make_node: MakeNode) -> Planned:
    """Deep checks are off."""
    return Planned(healthy(make_node("slurm_nhc")))


# ---------------------------------------------------------------- the note and the gate


def test_the_note_says_what_a_person_wants_to_know(node: Planned) -> None:
    node.finds(MOUNT, BUS)
    found = node.standing()
    text = "reboot the node: gpu_xid (XID 119 at PCI:0001:00:00); mount (/shared is not mounted)"
    assert (found["state"], found["cure"], found["kind"], found["boot"]) == ("sick", "reboot", "quick", "boot-1")
    assert (found["drain"], found["reason"], node.reason) == ("ours", text, f"CycleForge health: {text}")
    assert int(found["since"]) > 1_700_000_000


def test_a_note_is_on_the_disk_before_the_machine_is_reset(node: Planned) -> None:
    """A person resets a sick machine next, and a rename that only the cache has seen is lost with it: sync(1)."""
    node.node.fake("sync", "exit 0")
    node.finds(MOUNT)
    assert set(node.node.calls("sync")) == {f"sync {node.node.root}/var/lib/cycleforge/health/standing"}


def test_the_note_stands_before_slurm_is_asked(node: Planned) -> None:
    """A controller that hangs may cost the run its life."""
    node.node.fake("scontrol", 'cp "$CYCLEFORGE_ROOT/var/lib/cycleforge/health/standing" "$FAKE_STATE/note"; exit 1')
    node.says("quick", MOUNT)
    node.runs("quick", code=3)
    assert "state=sick" in (node.node.state / "note").read_text()


@pytest.mark.parametrize("reason", [HEALTHAGENT, "admin: new cable", "CycleForge replace: old version"])
def test_a_job_is_refused_when_somebody_lifts_the_drain_that_hid_ours(node: Planned, reason: str) -> None:
    node.in_slurm("IDLE+DRAIN", reason)
    node.finds(MOUNT)
    assert (node.reason, node.standing()["drain"]) == (reason, "theirs")
    node.in_slurm("IDLE")
    output = node.runs("gate", code=3)
    assert node.reason == "CycleForge health: mount (/shared is not mounted)"
    assert "health.sh repaired" in output
    node.passes(2)
    assert (node.state, node.standing()) == ("IDLE", {})
    node.runs("gate")


def test_an_administrator_who_resumes_without_repaired_sees_why_it_is_drained_again(node: Planned) -> None:
    node.finds(BUS)
    node.in_slurm("IDLE")
    node.passes(1)
    assert node.reason.startswith("CycleForge health: reboot the node: gpu_xid")


@pytest.mark.parametrize("kind", ["quick", "deep"])
def test_a_verdict_of_either_kind_closes_the_gate_before_slurm_hears_of_it(node: Planned, kind: str) -> None:
    node.node.fake("scontrol", "exit 1")
    if kind == "quick":
        node.says("quick", MOUNT)
        node.runs("quick", code=3)
    else:
        node.says("deep", MOUNT)
        node.runs("deep", "boot")
    node.runs("gate", code=3)


def test_a_gate_asks_nobody_but_slurm(node: Planned) -> None:
    node.vm(VM_A)
    node.finds(MOUNT)
    node.reboot("boot-2")
    node.node.forget()
    node.runs("gate", code=3)
    assert {call.split()[0] for call in node.node.calls()} == {"scontrol"}


def test_a_cut_reason_changes_nothing(node: Planned) -> None:
    node.finds(("reboot", "gpu_xid", "x" * 400), MOUNT)
    node.in_slurm("IDLE+DRAIN", node.reason[:30])
    node.passes(3)
    assert node.state == "IDLE+DRAIN", "the cure is not read from the text"
    node.boots("boot-2")
    node.passes(2)
    assert node.state == "IDLE", "and our drain is known by what is left of it"


@pytest.mark.parametrize(
    ("fault", "shown"),
    [(BUS, "{} : reboot issued"), (("reboot", "nvidia_smi", "GPU 3 [GPU requires reset] says @ all"), "{}")],
)
def test_what_scontrol_adds_and_brackets_of_our_own_change_nothing(
    node: Planned, fault: tuple[str, str, str], shown: str
) -> None:
    """set_node_reboot_reason() of SchedMD/slurm, src/slurmctld/node_mgr.c, 22.05: `REASON : reboot issued`."""
    node.finds(fault)
    node.in_slurm("IDLE+DRAIN", shown.format(node.reason))
    node.boots("boot-2")
    node.passes(1)
    assert node.state == "IDLE", "our own reason is recognised"


# ---------------------------------------------------------------- cures


def test_what_heals_is_lifted_by_two_quick_runs(node: Planned) -> None:
    node.finds(MOUNT)
    node.passes(1)
    node.finds(MOUNT)
    node.passes(1)
    assert node.state == "IDLE+DRAIN", "the count begins anew"
    node.passes(1)
    assert (node.state, node.standing()) == ("IDLE", {})


def test_a_node_that_passes_while_slurm_is_silent_says_so_and_is_resumed_by_the_next_run(node: Planned) -> None:
    scontrol = (node.node.bin / "scontrol").read_text()
    node.finds(MOUNT)
    node.passes(1)
    node.says("quick")
    node.node.fake("scontrol", "exit 1")
    assert "cannot ask Slurm about this node; its drain stays, and the next run asks again" in node.runs("quick")
    node.node.fake("scontrol", f'[[ "$1" != update ]] || exit 1\n{scontrol}')
    assert "healthy again, but Slurm did not take that; the next run says it again" in node.runs("quick")
    node.node.fake("scontrol", scontrol)
    node.passes(1)
    assert (node.state, node.standing()) == ("IDLE", {})


def test_reset_and_reboot_need_a_later_boot_and_deep_checks(node: Planned) -> None:
    both = ["quick reboot", "quick reset"]
    node.finds(ROWS, BUS)
    node.passes(3)
    node.runs("deep", "boot")
    node.passes(1)
    assert (node.state, node.stands()) == ("IDLE+DRAIN", both), "deep checks of the same boot prove nothing"
    node.reboot("boot-2")
    node.passes(3)
    assert (node.state, node.stands()) == ("IDLE+DRAIN", both), "a boot without deep checks proves nothing"
    node.says("deep", ("not_measured", "nccl_all_reduce", "mpirun is not installed"))
    node.boots("boot-3")
    node.passes(1)
    assert (node.state, node.stands()) == ("IDLE+DRAIN", both), "what was not measured proves nothing"
    node.says("deep")
    node.boots("boot-4")
    node.passes(1)
    assert (node.state, node.standing()) == ("IDLE", {})


def test_without_deep_checks_a_quick_run_of_a_later_boot_does(shallow: Planned) -> None:
    shallow.finds(BUS)
    shallow.passes(3)
    assert shallow.state == "IDLE+DRAIN"
    shallow.reboot("boot-2")
    shallow.passes(1)
    assert (shallow.state, shallow.standing()) == ("IDLE", {})


def test_a_fault_seen_again_after_the_boot_needs_another_boot(node: Planned) -> None:
    node.finds(BUS)
    since = node.standing()["since"]
    node.reboot("boot-2")
    node.finds(BUS)
    node.runs("deep", "boot")
    node.passes(2)
    assert node.state == "IDLE+DRAIN"
    assert (node.standing()["boot"], node.standing()["since"]) == ("boot-2", since)


def test_service_is_lifted_by_a_person(node: Planned) -> None:
    node.finds(BOARD)
    node.boots("boot-2")
    node.passes(3)
    assert node.reason.startswith("CycleForge health: report the host to Azure and take another VM: gpu_remap_failure")
    assert "forgotten: report the host" in node.runs("repaired")
    assert node.state == "IDLE"
    node.runs("gate")


def test_deep_checks_that_heal_are_lifted_by_deep_checks(node: Planned) -> None:
    node.says("deep", ("fail", "gpu_copy_to_device", "9.5 GB/s"))
    node.runs("deep", "boot")
    node.passes(3)
    assert node.reason == "CycleForge health: deep_checks (gpu_copy_to_device (9.5 GB/s))"
    assert node.node.result("quick")["verdict"] == "fail", "a report that reads quick results must not miss it"
    node.says("deep")
    node.boots("boot-2")
    node.passes(1)
    assert node.state == "IDLE"


def test_a_worse_fault_replaces_our_reason_and_a_lighter_one_does_not(node: Planned) -> None:
    node.finds(MOUNT)
    node.finds(BUS)
    worse = node.reason
    assert worse.startswith("CycleForge health: reboot the node: gpu_xid")
    assert worse.count("reboot the node") == 1
    node.finds(ROWS)
    assert node.reason == worse
    node.finds(BOARD)
    assert node.reason.startswith("CycleForge health: report the host to Azure")


def test_a_reason_that_somebody_changed_is_no_longer_ours(node: Planned) -> None:
    node.configure("strikes=3", "strikes=0")
    for reason in ("sent to repair", "CycleForge health: I look into it", "NHC: x"):
        node.in_slurm("IDLE")
        node.finds(MOUNT)
        assert node.standing()["drain"] == "ours"
        node.in_slurm("IDLE+DRAIN", reason)
        node.passes(3)
        assert (node.state, node.reason, node.standing()) == ("IDLE+DRAIN", reason, {})


def test_a_drain_of_which_there_is_no_note_is_not_lifted(node: Planned) -> None:
    node.in_slurm("IDLE+DRAIN", "CycleForge health: mount (/shared is not mounted)")
    node.passes(3)
    assert node.state == "IDLE+DRAIN"
    assert "resumed" in node.runs("repaired")


def test_resume_off_leaves_the_drain_and_opens_the_gate(node: Planned) -> None:
    node.configure("resume=true", "resume=false")
    node.finds(MOUNT)
    node.passes(3)
    assert node.state == "IDLE+DRAIN"
    node.in_slurm("IDLE")
    node.runs("gate")


def test_repaired_remembers_its_moment_for_the_checks(node: Planned) -> None:
    node.passes(1)
    assert (node.node.state / "since").read_text() == "0"
    node.finds(BUS)
    node.runs("repaired")
    node.says("quick")
    node.runs("quick")
    moment = (node.node.state / "since").read_text()
    assert node.standing() == {"state": "clear", "drain": "none", "passes": "1", "retested": "0", "repaired": moment}
    node.boots("boot-2")
    assert (node.node.state / "since").read_text() == moment
    assert int(moment) > 1_700_000_000


# ---------------------------------------------------------------- strikes, and a cause that many share


def test_the_third_drain_in_a_day_says_so_and_no_passing_run_lifts_it(node: Planned) -> None:
    for _ in range(3):
        node.says("quick", MOUNT)
        node.runs("quick")
        reason = node.reason
        node.passes(2)
    assert reason.startswith("CycleForge health: report the host to Azure and take another VM: 3 drains in 24 h, stays")
    assert node.state == "IDLE+DRAIN"


def test_a_drain_that_the_guard_holds_back_closes_the_gate(node: Planned) -> None:
    """The scheduler's watch has an alarm for this check: it keeps jobs away, and the node shows no drain."""
    node.node.write("etc/cycleforge/health.conf", node.node.read("etc/cycleforge/health.conf").replace(
        "results=", "results=/sched/results"))  # fmt: skip
    node.node.write("sched/results.guard/state", "partition hpc 8 mount\nnode node-1 hpc\n")
    node.says("quick", MOUNT)
    assert "not drained, mount has an alarm in partition hpc" in node.runs("quick")
    assert (node.state, node.standing()["state"]) == ("IDLE", "sick")
    node.says("quick", MOUNT, BUS)
    node.runs("quick")
    assert node.reason.startswith("CycleForge health: reboot the node: gpu_xid"), "a fault of its own is not held back"
    node.in_slurm("IDLE")
    node.says("quick", MOUNT)
    node.runs("quick")
    assert node.reason.startswith("CycleForge health: reboot the node: gpu_xid"), "nor is one that stands from before"


# ---------------------------------------------------------------- the VM


def test_another_vm_under_the_name_starts_clean(node: Planned) -> None:
    node.vm(VM_A)
    node.finds(BOARD)
    node.boots("boot-2")
    node.runs("gate", code=3)
    node.vm(VM_B)
    node.boots("boot-3")
    assert node.standing() == {}
    node.runs("gate")


@pytest.mark.parametrize("asked", ["gate", "quick"])
def test_where_metadata_does_not_answer_the_board_tells(node: Planned, asked: str) -> None:
    """A disk that is copied takes the note along; product_uuid is the new VM's."""
    node.vm(None, "AAAA-1")
    node.finds(BOARD)
    node.reboot("boot-2")
    node.runs("gate", code=3)
    node.vm(None, "BBBB-2")
    node.says("quick")
    node.runs(asked)
    node.runs("gate")


@pytest.mark.parametrize("answers", [(VM_A, None), (None, VM_A)])
def test_metadata_that_fails_once_makes_no_other_vm(node: Planned, answers: tuple[str | None, str | None]) -> None:
    node.vm(answers[0], "AAAA-1")
    node.finds(BOARD)
    node.vm(answers[1])
    node.boots("boot-2")
    node.passes(1)
    node.runs("gate", code=3)


def test_metadata_is_asked_once_in_a_boot(node: Planned) -> None:
    node.vm(VM_A)
    node.says("quick", MOUNT)
    for _ in range(3):
        node.runs("quick")
    assert len(node.node.calls("curl")) == 1
    (call,) = node.node.calls("curl")
    assert "--noproxy * " in call
    assert "--header Metadata:true http://169.254.169.254/" in call
    node.reboot("boot-2")
    node.runs("quick")
    assert len(node.node.calls("curl")) == 2


def test_a_drain_of_the_vm_before_is_tested_and_lifted(node: Planned) -> None:
    """Slurm keeps reason and drain when the VM is replaced; scontrol prints the moment as SLURM_TIME_FORMAT says."""
    scontrol = (node.node.bin / "scontrol").read_text()
    node.node.fake("scontrol", scontrol.split("\n", 2)[2].replace("2026-01-01T00:00:00", "1700000000"))
    node.vm(VM_A)
    node.in_slurm("IDLE+DRAIN", "CycleForge health: reboot the node: gpu_xid")
    node.passes(2)
    assert node.state == "IDLE+DRAIN"
    node.passes(1)
    assert node.state == "IDLE"


# ---------------------------------------------------------------- a disk that is full


def fill(node: Planned, *places: str) -> None:
    """No new file takes its place below these folders, as on a disk without blocks or inodes."""
    root = node.node.root
    real = Path(str(node.node.bin / "mv")).resolve()
    cases = "|".join(f"{root}/{place}/*" for place in places)
    node.node.fake("mv", f'case "${{@: -1}}" in {cases}) echo "No space left on device" >&2; exit 1 ;; esac\n'
                   f'exec {real} "$@"')  # fmt: skip


def test_a_full_disk_loses_no_verdict(node: Planned) -> None:
    node.passes(1)
    before = node.node.result("quick")
    fill(node, "var")
    node.says("quick", BUS)
    output = node.runs("quick")
    assert "cannot be written" in output
    assert node.reason.startswith("CycleForge health: reboot the node: gpu_xid")
    assert node.node.result("quick") == before, "never half of a result"
    node.in_slurm("IDLE")
    node.runs("gate", code=3)
    assert sorted(path.name for path in (node.node.root / "var/lib/cycleforge/health").iterdir()) == [
        "quick.json",
        "vm",
    ]
    node.node.remove("mv")
    node.node.link("mv")
    node.runs("quick")
    assert not (node.node.root / "run/cycleforge/standing").exists()
    assert "state=sick" in node.node.read("var/lib/cycleforge/health/standing")


def test_the_note_in_memory_is_newer_than_the_one_on_a_disk_that_has_filled(node: Planned) -> None:
    node.finds(MOUNT)
    fill(node, "var")
    node.finds(BUS)
    node.in_slurm("IDLE")
    node.runs("gate", code=3)
    assert node.reason.startswith("CycleForge health: reboot the node: gpu_xid")


def test_with_no_place_at_all_the_node_is_still_drained(node: Planned) -> None:
    fill(node, "var", "run")
    node.says("quick", BUS)
    assert "neither" in node.runs("quick")
    assert node.reason.startswith("CycleForge health: reboot the node: gpu_xid")


def test_a_copy_that_was_cut_short_leaves_no_file(node: Planned) -> None:
    node.configure("results=", "results=/sched")
    node.node.remove("cp")
    node.node.fake("cp", 'printf "{\\"format\\": 1, \\"no" >"${@: -1}"; exit 1')
    output = node.runs("quick")
    assert "could not be copied" in output
    assert list((node.node.root / "sched").iterdir()) == []


# ---------------------------------------------------------------- results


def test_results_name_the_cure_of_each_failure_and_the_worst(node: Planned) -> None:
    node.finds(MOUNT, ROWS, ("warn", "load", "high"))
    result = node.node.result("quick")
    assert [row.get("cure") for row in result["checks"]] == ["heal", "reset", None]
    assert (result["cure"], result["reason"]) == ("reset", "gpu_remap_pending (GPU 3); mount (/shared is not mounted)")
    node.passes(1)
    assert node.node.result("quick")["cure"] == ""


def test_what_deep_checks_could_not_measure_drains_where_the_definition_says_so(node: Planned) -> None:
    node.says("deep", ("not_measured", "nccl_all_reduce", "mpirun is not installed"), ("pass", "gpu_copy_peer", ""))
    node.runs("deep", "boot")
    node.runs("gate")
    node.configure("unmeasured=report", "unmeasured=drain")
    node.runs("deep", "boot")
    node.runs("gate", code=3)
    assert node.reason == "CycleForge health: deep_checks (could not be measured: nccl_all_reduce)"
    result = node.node.result("deep")
    assert (result["verdict"], result["cure"]) == ("incomplete", "heal")
