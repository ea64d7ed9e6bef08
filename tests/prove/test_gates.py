"""`prove.sh` with a fake Slurm: verdicts of gates, nodes taken out, bounds, and what it refuses.

A start takes a third of a second, so several gates that must not touch each other share one.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from generator.validation.gather import read
from generator.validation.record import Proof
from tests.prove.folder import Bed, gate

SLOW = 'if has n2; then run_json fail slow "$(check busbw fail)"; state=FAILED; else passes; fi'
"""A collective is slow while n2 takes part, and names no node."""

BROKEN = {
    "nothing": ":",
    "empty": 'mkdir -p "results/$SLURM_JOB_ID"; : >"results/$SLURM_JOB_ID/run.json"',
    "half": 'passes; truncate -s -2 "results/$SLURM_JOB_ID/run.json"',
    "killed": "ENDED=null run_json error 'has begun'; state=TIMEOUT",
    "foreign": 'SLURM_JOB_ID=99 run_json pass well; mv results/99 "results/$SLURM_JOB_ID"',
    "newer": 'passes; sed -i "s/\\"format\\": 1/\\"format\\": 2/" "results/$SLURM_JOB_ID/run.json"',
    "wordless": "run_json great 'all well'",
    "uncounted": "run_json pass 'all well' ''",
    "contradicted": 'run_json pass "all well" "$(check gpu_count fail n1)"',
    "fewer": 'NODES_JSON="{\\"name\\": \\"n1\\"}" run_json pass "all well"',
    "failed": "passes; state=FAILED",
    "cancelled": "passes; state=CANCELLED",
}
"""Ends of jobs that prove nothing, by name."""
SAYS = {
    "nothing": "left no whole run.json (Slurm: COMPLETED)",
    "empty": "left no whole run.json",
    "half": "left no whole run.json",
    "killed": "the job stopped before its end (Slurm: TIMEOUT)",
    "foreign": "run.json belongs to run '99'",
    "newer": "prove.sh reads form 1",
    "wordless": "has the verdict 'great', which is none",
    "uncounted": "without a single check",
    "contradicted": "but its check 'gpu_count' failed",
    "fewer": "but does not name n4",
    "failed": "but Slurm says that the job ended as FAILED",
    "cancelled": "but Slurm says that the job ended as CANCELLED",
}


def test_a_node_that_fails_is_drained_and_the_gate_repeated_without_it(tmp_path: Path) -> None:
    gates = [gate("smoke"), gate("health"), gate("node", job="-", reason="no recipe for it yet")]
    gates += [gate("collective", finder="halves"), gate("later", level="standard"), gate("halves", level="finder")]
    texts = {"smoke": "passes", "health": "blames n3", "collective": SLOW, "later": "passes", "halves": "blames n2"}
    bed = Bed(tmp_path, gates, texts)
    proof = bed.prove("quick", "--yes")
    assert proof.code == 1, proof.output
    verdicts = {name: proof.verdict(name) for name in ("smoke", "health", "node", "collective")}
    assert verdicts == {"smoke": "pass", "health": "fail", "node": "not proven", "collective": "fail"}
    assert bed.drains() == {
        "n2": "CycleForge prove: collective: gpu_count 7 GPUs, expected 8",
        "n3": "CycleForge prove: health: gpu_count 7 GPUs, expected 8",
    }
    everyone, without, both = "n1,n2,n3,n4", "n1,n2,n4", "n1,n4"
    assert bed.submitted() == [
        f"smoke-1 {everyone}", f"health-1 {everyone}", f"health-2 {without}", f"collective-1 {without}",
        f"collective-1-find {without}", f"collective-2 {both}",
    ]  # fmt: skip
    assert "  n3, physical host host-of-n3: health: gpu_count 7 GPUs, expected 8 (drained)" in proof.output
    assert "failed with n2: slow [busbw]; then pass on the other 2 nodes: all well" in proof.output
    record = bed.record()
    assert [row["gate"] for row in record["gates"]] == ["smoke", "health", "node", "collective"]
    assert record["gates"][1] | {"summary": ""} == {
        "gate": "health", "job": "health", "verdict": "fail", "summary": "", "runs": ["health-102", "health-103"],
    }  # fmt: skip
    assert [(row["name"], row["physical_host"], row["how"]) for row in record["replace"]] == [
        ("n3", "host-of-n3", "drained"), ("n2", "host-of-n2", "drained"),
    ]  # fmt: skip
    assert (record["verdict"], record["cluster"], record["level"]) == ("fail", "emu", "quick")
    found = read(json.dumps(record).encode(), "prove.json")
    assert isinstance(found, Proof)
    assert (found.verdict, [node.name for node in found.replace], len(found.gates)) == ("fail", ["n3", "n2"], 4)
    # Six jobs of six minutes: three on 4 nodes would be 9.6, and each node has 8 GPUs.
    assert record["gpu_hours"] == 15.2 or record["gpu_hours"] == 15


def test_what_proves_nothing_never_passes(tmp_path: Path) -> None:
    bed = Bed(tmp_path, [*(gate(name) for name in BROKEN), gate("sound")], BROKEN | {"sound": "passes"})
    proof = bed.prove("--yes")
    assert proof.code == 2, proof.output
    said = {row["gate"]: (row["verdict"], row["summary"]) for row in bed.record()["gates"]}
    assert {name for name, (verdict, _) in said.items() if verdict != "error"} == {"sound"}
    assert {name: text for name, text in SAYS.items() if text not in said[name][1]} == {}, said
    assert {proof.verdict(name) for name in BROKEN} == {"not proven"}
    assert bed.drains() == {}


def test_the_worst_verdict_decides_the_exit_status(tmp_path: Path) -> None:
    words = {
        "warns": 'run_json warn near "$(check a warn),$(check b pass)"; state=FAILED',
        "bare": 'run_json no_baseline odd "$(for n in 1 2 3 4; do check c$n no_baseline; echo ,; done; check d pass)"; '
        "state=FAILED",
    }
    bed = Bed(tmp_path, [gate("good"), *map(gate, words)], words | {"good": "passes"})
    assert bed.prove("--yes", "--skip", "warns,bare").code == 0
    assert bed.prove("--yes", "--skip", "warns", "--skip=bare").code == 0, "both are left out"
    assert bed.prove("--yes", "--skip=bare").code == 3
    assert bed.prove("--yes", "--skip=bare", ALLOW_WARN="1").code == 0
    last = bed.prove("--yes")
    assert last.code == 4
    assert "warns            warn        near [a]" in last.output
    assert "bare             not proven  odd [c1; c2; c3; and 1 more]" in last.output
    assert bed.prove("--yes", "--skip=good,warns,bare").code == 2, "nothing was proven at all"


def test_who_is_to_blame(tmp_path: Path) -> None:
    """Nobody, where most nodes fail alike, where a pair does, and where only all nodes together do."""
    texts = {
        "most": 'run_json fail bad "$(check a fail n1),$(check b fail n2),$(check c fail n3)"; state=FAILED',
        "pair": 'run_json fail bad "$(check pair fail n1 n2)"; state=FAILED',
        "alike": 'run_json fail bad "$(check busbw fail)"; state=FAILED',
        "listed": 'if has n4; then run_json fail bad "$(check x fail)"; state=FAILED; '
        'echo n4 >"results/$SLURM_JOB_ID/failed_nodes.txt"; else passes; fi',
        "unproven": 'run_json error bad "$(check x error n1)"; state=FAILED',
    }
    gates = [gate(name, finder="halves" if name == "alike" else "-") for name in texts]
    bed = Bed(tmp_path, [*gates, gate("halves", level="finder", min_nodes=5)], texts | {"halves": "passes"})
    proof = bed.prove("--yes")
    assert proof.code == 1
    assert list(bed.drains()) == ["n4"]
    summaries = {row["gate"]: row["summary"] for row in bed.record()["gates"]}
    assert "n1,n2,n3 fail, more than half of the nodes" in summaries["most"]
    assert "no single node is named" in summaries["pair"]
    assert "none was looked for: halves needs at least 5 nodes, and n1,n2,n3,n4 is left" in summaries["alike"]
    assert "failed with n4" in summaries["listed"]
    assert (proof.verdict("unproven"), proof.verdict("listed")) == ("not proven", "fail")


def test_without_the_right_to_drain_a_node_is_left_out_of_the_run(tmp_path: Path) -> None:
    bed = Bed(tmp_path, [gate("health"), gate("after")], {"health": "blames n3", "after": "passes"})
    bed.set("no_operator")
    bed.set("no_sudo")
    proof = bed.prove("--yes")
    assert proof.code == 1
    assert "not drained, this account may not" in proof.output
    assert 'scontrol update NodeName=n3 State=DRAIN Reason="CycleForge prove: health:' in proof.output
    assert bed.submitted()[1:] == ["health-2 n1,n2,n4", "after-1 n1,n2,n4"]
    assert bed.drains() == {}
    assert bed.record()["replace"][0]["name"] == "n3"
    (bed.fake / "no_sudo").unlink()
    assert bed.prove("--yes", "--no-drain").code == 1
    assert bed.drains() == {}
    bed.prove("--yes")
    assert list(bed.drains()) == ["n3"], "an administrator, by sudo"


def test_a_node_that_goes_away_while_its_job_waits_is_left_out(tmp_path: Path) -> None:
    waits = 'if has n2; then state=PENDING; echo "down*|h100|Not responding" >"$FAKE/nodes/n2"; else passes; fi'
    bed = Bed(tmp_path, [gate("smoke")], {"smoke": waits})
    bed.set("nodes/n4", "drained|h100|disk 3 is sick\n")
    proof = bed.prove("--yes")
    assert "Left out, because no job starts there: n4 (drained: disk 3 is sick)" in proof.output
    assert proof.code == 1
    assert bed.submitted() == ["smoke-1 n1,n2,n3", "smoke-2 n1,n3"]
    assert (bed.fake / "jobs/101").read_text().startswith("CANCELLED|")
    assert (
        "n2, physical host unknown: smoke: Slurm: down*: Not responding (down* already: Not responding)" in proof.output
    )


def test_bounds_are_printed_before_and_kept(tmp_path: Path) -> None:
    texts = {"first": "passes", "second": "passes", "waits": "state=PENDING"}
    bed = Bed(tmp_path, [gate("first"), gate("second", minutes=60), gate("waits", minutes=0)], texts)
    plan = bed.prove("--plan")
    assert plan.code == 0
    assert "Each gate once takes at most 1.5 hours and 48 GPU-hours." in plan.output
    assert "after 3.0 hours (--max-hours) and 96 GPU-hours (--max-gpu-hours)" in plan.output
    assert not bed.submitted(), "only a plan"
    refused = bed.prove()
    assert (refused.code, bed.submitted()) == (2, [])
    assert "add --yes" in refused.output
    few = bed.prove("--yes", "--max-gpu-hours=20", "--skip=waits")
    assert "That is less than the gates may take" in few.output
    assert few.code == 2
    assert bed.submitted() == ["first-1 n1,n2,n3,n4"]
    assert "the job may take 32 GPU-hours, and 17 are left of --max-gpu-hours" in few.output
    short = bed.prove("--yes", "--max-hours", "0.0006", "--skip=first")
    assert short.code == 2
    assert "the job may take 60 minutes, and 0 are left of --max-hours" in short.output
    assert "the time of this run is over (--max-hours), job 102 was cancelled" in short.output
    assert (bed.fake / "jobs/102").read_text().startswith("CANCELLED|")


def test_the_nodes_that_are_asked_for(tmp_path: Path) -> None:
    bed = Bed(tmp_path, [gate("smoke"), gate("pairs", min_nodes=2)], {"smoke": "passes", "pairs": "passes"})
    bed.set("nodes/n1", "idle~|h100|none\n")
    one = bed.prove("--yes", "--nodes=1")
    assert bed.submitted() == ["smoke-1 n2"], "the first that runs already"
    assert (one.code, one.verdict("pairs")) == (4, "not proven")
    bed.prove("--yes", "--nodes", "n4,n1")
    assert bed.submitted()[1:] == ["smoke-1 n1,n4", "pairs-1 n1,n4"]
    bed.prove("--yes", "--nodes", "n4", "--skip", "pairs", "--nodes=n1,n2")
    assert bed.submitted()[3:] == ["smoke-1 n1,n2,n4"]
    bed.prove("--yes", "--nodes=n1", "--nodes", "n2, n1", "--skip", "pairs")
    assert bed.submitted()[4:] == ["smoke-1 n1,n2"]
    bed.prove("--yes", "--nodes=01", "--skip=pairs", "--nodes", "1")
    assert bed.submitted()[5:] == ["smoke-1 n2"]


@pytest.mark.parametrize("skip", ["pairs, last", "pairs last", " pairs,,last ", "pairs,\tlast,", "last\npairs"])
def test_gates_are_left_out_however_their_list_is_written(tmp_path: Path, skip: str) -> None:
    bed = Bed(
        tmp_path,
        [gate(name) for name in ("smoke", "pairs", "last")],
        dict.fromkeys(("smoke", "pairs", "last"), "passes"),
    )
    assert bed.prove("--yes", "--skip", skip).code == 0
    assert [line.split("-")[0] for line in bed.submitted()] == ["smoke"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["quick", "burn"], "one level at a time: quick or burn"),
        (["--patience"], "there is no option --patience"),
        (["--nodes"], "--nodes needs a value"),
        (["--max-hours", "long"], "--max-hours is 'long'; give hours"),
        (["--partition=a", "--partition", "b"], "--partition is given twice, as a and as b"),
        (["--nodes=2", "--nodes", "n1"], "--nodes is given twice, as 2 and as n1"),
        (["--skip=smoke", "--skip"], "--skip needs a value"),
        (["--skip= , "], "--skip needs a value"),
        (["--nodes", ","], "--nodes needs a value"),
        (["--yes", "--max-hours=0"], "--max-hours is '0'; give hours above 0"),
        (["--yes", "--max-gpu-hours", "0.0001"], "--max-gpu-hours is '0.0001'; give hours above 0"),
        (["--yes", "--nodes=09"], "--nodes 9, but jobs can start on 4 nodes of partition gpu"),
        (["--yes", "--nodes=9"], "--nodes 9, but jobs can start on 4 nodes of partition gpu"),
        (["--yes", "--nodes=n1,n7"], "partition gpu has no node n7"),
        (["--yes", "--partition=cpu"], "no partition cpu in prove.tsv; there are: gpu (Standard_ND96isr_H100_v5)"),
        (["--yes", "--skip=smok"], "--skip smok: there is no such gate; the gates are: smoke"),
    ],
)
def test_what_is_wrong_is_said_before_anything_starts(tmp_path: Path, words: list[str], says: str) -> None:
    bed = Bed(tmp_path, [gate("smoke")], {"smoke": "passes"})
    proof = bed.prove(*words)
    assert proof.code == 2
    assert says in proof.output
    assert bed.submitted() == []
