"""Drains that Slurm sets because a hook of a job failed, ours or somebody's; and `deep now`."""

from __future__ import annotations

import time

import pytest

from tests.bed.scripts.healthy import SCONTROL, healthy
from tests.bed.scripts.planned import Planned
from tests.projects.conftest import MakeNode

MOUNT = ("fail", "mount", "/shared is not mounted")
SLOW = ("fail", "gpu_copy_to_device", "9.5 GB/s")


@pytest.fixture
def node(make_node: MakeNode) -> Planned:
    """Deep checks are on, also on idle nodes."""
    return Planned(healthy(make_node("slurm_nhc"), deep_s=100))


def silence(node: Planned) -> str:
    """Slurm does not answer; the program that does, to be put back."""
    answers = (node.node.bin / "scontrol").read_text().split("\n", 2)[2]
    node.node.fake("scontrol", "exit 1")
    return answers


@pytest.mark.parametrize(("hook", "reason"), [("gate", "Prolog error"), ("epilog", "Epilog error")])
def test_a_drain_by_our_own_hook_gets_our_reason_and_is_lifted(node: Planned, hook: str, reason: str) -> None:
    node.says("quick", MOUNT)
    answers = silence(node)
    node.runs("quick", code=3)
    node.runs(hook, code=3)
    node.node.fake("scontrol", answers)
    node.in_slurm("IDLE+DRAIN", reason)
    node.runs("quick")
    assert node.reason == "CycleForge health: mount (/shared is not mounted)"
    node.passes(2)
    assert node.state == "IDLE"


@pytest.mark.parametrize("later_s", [-30 * 24 * 3600, 3600])
def test_a_failed_hook_of_another_moment_is_not_ours(node: Planned, later_s: int) -> None:
    """Ours refused a job once; what failed long before or long after that is somebody else's, and a person's."""
    node.says("quick", MOUNT)
    answers = silence(node)
    node.runs("epilog", code=3)
    node.node.fake("scontrol", answers.replace("2026-01-01T00:00:00", str(int(time.time()) + later_s)))
    node.in_slurm("IDLE+DRAIN", "Prolog error")
    node.runs("quick")
    node.passes(3)
    assert (node.state, node.reason) == ("IDLE+DRAIN", "Prolog error")


@pytest.mark.parametrize("reason", ["Epilog error", "Prolog/Epilog failure"])
def test_a_node_that_somebodys_epilog_drained_is_tested_and_resumed(node: Planned, reason: str) -> None:
    node.in_slurm("IDLE+DRAIN", reason)
    node.passes(3)
    assert (node.state, node.reason) == ("IDLE+DRAIN", reason), "deep checks are on, and have not run since"
    node.runs("deep", "idle")
    assert node.state == "IDLE"


@pytest.mark.parametrize(
    ("by", "slurm_user"), [("root", "slurm(11100)"), ("alice", "slurm(11100)"), ("root", "root(0)"), ("slurm", "")]
)
@pytest.mark.parametrize("reason", ["Epilog error", "Prolog/Epilog failure"])
def test_a_person_who_drains_in_slurms_words_is_obeyed(
    make_node: MakeNode, reason: str, by: str, slurm_user: str
) -> None:
    """Where Slurm runs as root, or does not say as whom, nobody can tell the two apart."""
    node = Planned(healthy(make_node("slurm_nhc")))
    (node.node.state / "slurm_user").write_text(f"{slurm_user}\n")
    node.in_slurm("IDLE+DRAIN", reason, by=by)
    node.passes(4)
    assert (node.state, node.reason) == ("IDLE+DRAIN", reason)


@pytest.mark.parametrize(("after_s", "state"), [(3, "IDLE"), (-60, "IDLE+DRAIN"), (300, "IDLE+DRAIN")])
def test_where_slurm_runs_as_root_its_drain_follows_a_hook(make_node: MakeNode, after_s: int, state: str) -> None:
    """Its name is an administrator's there, too."""
    node = Planned(healthy(make_node("slurm_nhc")))
    (node.node.state / "slurm_user").write_text("root(0)\n")
    node.runs("epilog")
    scontrol = SCONTROL.replace("2026-01-01T00:00:00", str(int(time.time()) + after_s))
    node.node.fake("scontrol", scontrol, light=True)
    node.in_slurm("IDLE+DRAIN", "Epilog error", by="root")
    node.passes(4)
    assert node.state == state


def test_a_person_who_drains_in_the_words_that_slurm_had_before_is_obeyed(node: Planned) -> None:
    """Slurm's own drain is being tested when an administrator takes the node out."""
    node.in_slurm("IDLE+DRAIN", "Epilog error")
    node.passes(1)
    node.in_slurm("IDLE+DRAIN", "Epilog error", by="root")
    node.runs("deep", "idle")
    node.passes(3)
    assert (node.state, node.reason) == ("IDLE+DRAIN", "Epilog error")


def test_a_person_who_drains_while_our_own_hook_refuses_is_obeyed(node: Planned) -> None:
    node.says("quick", MOUNT)
    answers = silence(node)
    node.runs("epilog", code=3)
    node.node.fake("scontrol", answers)
    node.in_slurm("IDLE+DRAIN", "Epilog error", by="root")
    node.runs("quick")
    node.passes(3)
    assert (node.state, node.reason) == ("IDLE+DRAIN", "Epilog error")


def test_without_deep_checks_two_quick_runs_test_it(make_node: MakeNode) -> None:
    node = Planned(healthy(make_node("slurm_nhc")))
    node.in_slurm("IDLE+DRAIN", "Epilog error")
    node.passes(2)
    assert node.state == "IDLE+DRAIN"
    node.passes(1)
    assert node.state == "IDLE"


def test_deep_checks_that_fail_then_keep_it_out(node: Planned) -> None:
    node.in_slurm("IDLE+DRAIN", "Epilog error")
    node.passes(1)
    node.says("deep", ("reset", "gpu_diagnostic", "GPU 2"))
    node.runs("deep", "idle")
    assert node.reason.startswith("CycleForge health: reset the GPUs or reboot the node: deep_checks (gpu_diagnostic")
    node.passes(2)
    assert node.state == "IDLE+DRAIN"


def test_no_deep_checks_while_a_job_is_left_on_it(node: Planned) -> None:
    node.in_slurm("MIXED+DRAIN", "Epilog error")
    node.passes(1)
    node.runs("deep", "idle")
    assert not (node.node.root / "var/lib/cycleforge/health/deep.json").exists()


def test_a_second_failed_epilog_within_a_day_is_a_persons(make_node: MakeNode) -> None:
    node = Planned(healthy(make_node("slurm_nhc")))
    node.in_slurm("IDLE+DRAIN", "Epilog error")
    node.passes(3)
    assert node.state == "IDLE"
    node.in_slurm("IDLE+DRAIN", "Epilog error")
    node.passes(4)
    assert node.state == "IDLE+DRAIN"
    node.node.write("var/lib/cycleforge/health/standing", "state=clear\ndrain=none\npasses=2\nretested=1700000000\n")
    node.passes(3)
    assert node.state == "IDLE", "a day later it is tested again"


def test_other_drains_of_slurm_are_a_persons(node: Planned) -> None:
    """The runs before have passed often enough to lift what is ours, whatever comes next and whoever says it."""
    node.passes(2)
    for place, reason in enumerate((
        "Prolog error", "Job env setup error", "Kill task failed", "batch job complete failure", "Duplicate jobid",
        "Not responding", "ResumeTimeout reached", "Epilog error : reboot complete", "epilog error",
        "Epilog error, see 4711",
    )):  # fmt: skip
        node.in_slurm("IDLE+DRAIN", reason, by=("slurm", "root")[place % 2])
        node.passes(1)
        node.runs("deep", "idle")
        node.passes(1)
        assert (node.state, node.reason) == ("IDLE+DRAIN", reason)


@pytest.mark.parametrize(("says", "state"), [("gpu,1\nnetwork,0", "IDLE+DRAIN"), ("gpu,0\nsystemd,2", "IDLE")])
def test_a_node_is_not_resumed_against_healthagents_word(make_node: MakeNode, says: str, state: str) -> None:
    """`health -b` prints one line `module,errors` each; Azure/cyclecloud-healthagent 2.x."""
    node = Planned(healthy(make_node("slurm_nhc")))
    node.node.fake("health", f"printf '%s\\n' '{says}'")
    node.in_slurm("IDLE+DRAIN", "Epilog error")
    node.passes(3)
    assert node.state == state


def test_the_definition_can_leave_it_to_a_person(make_node: MakeNode) -> None:
    node = Planned(healthy(make_node("slurm_nhc")))
    node.configure("resume=true", "resume=false")
    node.in_slurm("IDLE+DRAIN", "Epilog error")
    node.passes(4)
    assert node.state == "IDLE+DRAIN"


# ---------------------------------------------------------------- deep now


@pytest.mark.parametrize("state", ["IDLE", "IDLE+CLOUD+DRAIN", "IDLE+MAINTENANCE"])
def test_deep_now_measures_a_node_without_jobs(node: Planned, state: str) -> None:
    node.in_slurm(state, "admin: look at it" if "DRAIN" in state else "")
    output = node.runs("deep", "now")
    assert "deep checks: pass; all figures: /var/lib/cycleforge/health/deep.json" in output
    assert node.state == state


def test_deep_now_tells_what_is_sick_and_what_to_type(node: Planned) -> None:
    node.says("deep", SLOW)
    output = node.runs("deep", "now", code=2)
    assert "deep checks: fail (gpu_copy_to_device (9.5 GB/s))" in output
    assert "health.sh repaired" in output
    assert node.state == "IDLE+DRAIN", "an idle node is drained at once"
    node.says("deep")
    node.runs("deep", "now")
    assert node.state == "IDLE", "what needed passing deep checks has them"


@pytest.mark.parametrize("state", ["ALLOCATED", "MIXED+DRAIN", "IDLE+COMPLETING+DRAIN", "DOWN*", "IDLE+POWERING_DOWN"])
def test_deep_now_refuses_beside_a_job(node: Planned, state: str) -> None:
    node.in_slurm(state)
    output = node.runs("deep", "now", code=1)
    assert f"Slurm says that this node is {state}" in output
    assert "squeue -w node-1" in output
    assert not (node.node.root / "var/lib/cycleforge/health/deep.json").exists()


def test_deep_now_without_slurm_does_not_guess(node: Planned) -> None:
    silence(node)
    assert "Slurm says that this node is unknown" in node.runs("deep", "now", code=1)


def test_deep_now_that_measured_not_everything_has_not_passed(node: Planned) -> None:
    node.says("deep", ("not_measured", "nccl_all_reduce", "mpirun is not installed"))
    assert "deep checks: incomplete" in node.runs("deep", "now", code=1)


def test_deep_now_where_deep_checks_are_off_says_so(make_node: MakeNode) -> None:
    node = Planned(healthy(make_node("slurm_nhc")))
    assert "cycleforge.health.deep_s is 0" in node.runs("deep", "now", code=1)


def test_a_job_that_starts_ends_deep_now(node: Planned) -> None:
    checks = node.node.root / "opt/cycleforge/slurm_nhc/checks.sh"
    prolog = 'bash "$CYCLEFORGE_ROOT/opt/cycleforge/slurm_nhc/health.sh" gate; sleep 60'
    checks.write_text(checks.read_text().replace("local line found=false", f"{prolog}; local line found=false"))
    output = node.runs("deep", "now", code=1)
    assert "ended without a verdict" in output
    assert node.standing() == {}
