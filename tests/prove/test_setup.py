"""Gates whose job has steps before it: each runs once, in order, and what they may take is part of the plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.plan.gates import gate_plans
from generator.recipes.gates import Gate
from tests.bed.plans import plan_from, slurm_of
from tests.prove.folder import Bed, gate

IMAGE, DATA = "10-image.sbatch", "20-data.sbatch"
STEPS = f"{IMAGE}:30:1:0 {DATA}:60:2:8"
LEAVES = 'echo "$SLURM_JOB_NODELIST" >>made'


def bed_with(root: Path, texts: dict[str, str]) -> Bed:
    gates = [gate("smoke"), gate("train", minutes=60, setup=STEPS), gate("last")]
    whole = {"smoke": "blames n2", f"train.{IMAGE}": ":", f"train.{DATA}": ":", "last": "passes"} | texts
    bed = Bed(root, gates, {name: text for name, text in whole.items() if "." not in name})
    for name, text in whole.items():
        if "." in name:
            bed.set(f"jobs.d/{name}", f"{text}\n")
            (bed.jobs / name.replace(".", "/", 1)).write_text("#!/bin/bash\n")
    return bed


def test_steps_run_once_however_often_the_gate_is_repeated(tmp_path: Path) -> None:
    settings = 'echo "step ${SET_NODES:-own}" >>order'
    texts = {f"train.{IMAGE}": settings, f"train.{DATA}": settings, "train": 'echo "job $SET_NODES" >>order; blames n3'}
    bed = bed_with(tmp_path, texts)
    proof = bed.prove("--yes")
    assert proof.code == 1, proof.output
    assert bed.submitted()[2:] == [
        "train-setup-1-1 ",
        "train-setup-2-1 ",
        "train-1 n1,n3,n4",
        "train-2 n1,n4",
        "last-1 n1,n4",
    ]
    assert (bed.jobs / "train/order").read_text().splitlines() == ["step own", "step own", "job 3", "job 2"]
    calls = (bed.fake / "calls").read_text().splitlines()
    (image,) = (line for line in calls if line.endswith(f" {IMAGE}"))
    assert "--exclude=n2 " in image, "a node that is out"
    assert not {"--nodelist", "--time", "--partition"} & {word.partition("=")[0] for word in image.split()}
    (row,) = (row for row in bed.record()["gates"] if row["gate"] == "train")
    assert len(row["runs"]) == 2, "a step leaves no record"
    # Before it starts: 150 minutes on 4 nodes with 8 GPUs, of which the first step needs none and the second two nodes.
    assert (
        "train            train                           150 min         48  what train does; set up first, once"
        in proof.output
    )


def test_a_step_that_fails_proves_nothing_and_its_gate_does_not_start(tmp_path: Path) -> None:
    bed = bed_with(tmp_path, {f"train.{DATA}": "state=FAILED", "train": "passes"})
    proof = bed.prove("--yes", "--skip=smoke")
    assert (proof.verdict("train"), proof.verdict("last")) == ("not proven", "pass"), proof.output
    assert "set-up step 20-data: job 102 ended as FAILED; what it said is in prove.state/" in proof.output
    assert [line.split()[0] for line in bed.submitted()] == ["train-setup-1-1", "train-setup-2-1", "last-1"]
    assert bed.drains() == {}


def test_a_step_of_which_nobody_knows_the_end_runs_again_once(tmp_path: Path) -> None:
    forgets = ': >"$FAKE/forgets"'
    bed = bed_with(tmp_path, {f"train.{IMAGE}": forgets, "train": "passes"})
    proof = bed.prove("--yes", "--skip=smoke,last")
    assert proof.verdict("train") == "not proven", proof.output
    assert "set-up step 10-image: nobody knows how job 102 ended" in proof.output
    assert [line.split()[0] for line in bed.submitted()] == ["train-setup-1-1", "train-setup-1-2"]


def test_steps_of_a_recipe_become_steps_of_its_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plan_from("""
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D4as_v5, max_nodes: 3, default: true}
    - {name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 4}
jobs: {training: [opt-175b]}
""")
    train = Gate(name="train", level="standard", recipe="opt-175b", what="", finder=None, settings=())
    find = Gate(name="find", level="finder", recipe="opt-175b", what="", finder=None, settings=())
    monkeypatch.setattr("generator.plan.gates.gates", lambda: (train, find))
    rows = {(row.partition, row.name): row for row in gate_plans(slurm_of(plan), plan.jobs)}
    (step,) = rows["gpu", "train"].setup
    assert (step.file, step.minutes, step.nodes, step.gpus_per_node) == ("10-setup.sbatch", 120, 1, 0)
    assert (rows["gpu", "train"].job, rows["gpu", "train"].minutes) == ("opt-175b", 1440)
    assert rows["gpu", "find"].reason == "the recipe opt-175b has several steps, and a finder is one job"
    assert (rows["htc", "train"].job, rows["htc", "train"].setup) == (None, ())
