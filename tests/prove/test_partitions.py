"""Each partition that `validate` accepts has a job for every gate, or a reason that its user cannot remove."""

from __future__ import annotations

import itertools
import re
from pathlib import Path, PurePosixPath

import pytest
import yaml

from generator import pipeline
from generator.plan.deployment import Plan
from generator.plan.gates import BESIDE_JOBS, GatePlan, gate_plans
from generator.render import jobs as render_jobs
from generator.render import prove as render_prove
from tests.bed.plans import plan_from, slurm_of
from tests.prove.folder import Bed

PROVE = Path(__file__).parents[2] / "recipes/prove"
H100 = "Standard_ND96isr_H100_v5"
OTHERS = {
    "none": "",
    "one size": "{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 8, default: true}",
    "mixed": "{name: htc, vm_sizes: [Standard_D32ds_v5, Standard_D64ds_v5], max_nodes: 8, default: true}",
    "spot": "{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 8, spot: true, default: true}",
    "InfiniBand": "{name: htc, vm_size: Standard_HB120rs_v3, max_nodes: 8, default: true}",
    "two": "{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 8, default: true}, "
           "{name: big, vm_sizes: [Standard_D32ds_v5, Standard_E64ds_v5], max_nodes: 2}",
}  # fmt: skip
GPUS = {
    "H100": f"{{name: hpc, vm_size: {H100}, max_nodes: 4}}",
    "one node": f"{{name: hpc, vm_size: {H100}, max_nodes: 1}}",
    "spot": f"{{name: hpc, vm_size: {H100}, max_nodes: 4, spot: true}}",
    "mixed": f"{{name: hpc, vm_sizes: [{H100}, Standard_ND96amsr_A100_v4], max_nodes: 4}}",
    "mixed with CPUs": "{name: hpc, vm_sizes: [Standard_D32ds_v5, Standard_NC24ads_A100_v4], max_nodes: 4}",
    "no InfiniBand": "{name: hpc, vm_size: Standard_NC24ads_A100_v4, max_nodes: 4}",
    "MIG": "{name: hpc, vm_size: Standard_NC24ads_A100_v4, max_nodes: 4, mig_profile: 3g.40gb}",
    "AMD": "{name: hpc, vm_size: Standard_ND96isr_MI300X_v5, max_nodes: 4}",
    "rack": "{name: hpc, vm_size: Standard_ND128isr_NDR_GB200_v6, max_nodes: 18}",
    "two": f"{{name: hpc, vm_size: {H100}, max_nodes: 4}}, "
    "{name: a, vm_size: Standard_ND96amsr_A100_v4, max_nodes: 2}",
}
REASONS = re.compile(
    r"[a-z-]+ needs whole GPUs, and Standard_\w+ has none here|[a-z-]+ runs on GPUs of .+, not on \w+"
    r"|[a-z-]+ needs nodes that InfiniBand connects|[a-z-]+ needs \d+ nodes, and the partition has \d+"
    r"|CycleForge has no recipe [a-z-]+ yet"
)
MIXED = f"slurm: {{partitions: [{GPUS['H100']}, {OTHERS['mixed']}]}}\njobs: null"


def partitions(gpu: str, other: str) -> str:
    last = OTHERS[other] or "{name: cpu, vm_size: Standard_D4as_v5, max_nodes: 1}"
    if "default" not in last:
        last = last.replace("}", ", default: true}")
    agent = "healthagent: false, " if gpu == "MIG" else ""
    return f"slurm: {{{agent}partitions: [{GPUS[gpu]}, {last}]}}\njobs: null"


def lacking(plan: Plan) -> list[GatePlan]:
    return [row for row in gate_plans(slurm_of(plan), plan.jobs) if row.lacks_job]


@pytest.mark.parametrize("gpu", GPUS)
def test_every_gate_has_a_job_or_a_lasting_reason(gpu: str) -> None:
    for other in OTHERS:
        plan = plan_from(partitions(gpu, other))
        rows = gate_plans(slurm_of(plan), plan.jobs)
        assert {row.partition for row in rows} == {array.partition for array in slurm_of(plan).node_arrays}
        for row in rows:
            assert row.job or REASONS.fullmatch(row.reason or ""), (other, row)
        assert not [problem for problem in checked(partitions(gpu, other)) if problem == "W1611"]


def checked(*changes: str) -> list[str]:
    """The rules that a definition breaks."""
    from tests.bed.plans import SMALL, merged

    data = merged({}, yaml.safe_load(SMALL))
    for change in changes:
        data = merged(data, yaml.safe_load(change))
    found = pipeline.check(yaml.safe_dump(data).encode(), "minimal.yaml", {}, Path())
    return [problem.rule_id for problem in found.problems]


def test_a_partition_of_several_sizes_leaves_the_others_their_smoke_test() -> None:
    plan = plan_from(MIXED)
    (job,) = [job for job in plan.jobs if job.recipe == "smoke"]
    assert dict(job.steps[-1].options)["constraint"] == "Standard_D32ds_v5", "the cheapest place has several sizes"
    smoke = [row for row in gate_plans(slurm_of(plan), plan.jobs) if row.name == "smoke"]
    assert [(row.partition, row.job) for row in smoke] == [("hpc", "smoke"), ("htc", "smoke"), ("htc", "smoke")]


def test_the_size_of_another_partition_is_not_asked_for(tmp_path: Path) -> None:
    """An empty constraint replaces that of the batch file."""
    table = render_prove.render(plan_from(MIXED))[PurePosixPath("jobs/prove.tsv")].content.decode()
    (row,) = [line for line in table.splitlines() if line.startswith("smoke\tquick\thpc")]
    bed = Bed(tmp_path, [row.replace("\thpc\t", "\tgpu\t")], {"smoke": "passes"})
    assert bed.prove("--yes").code == 0
    (call,) = [line for line in (bed.fake / "calls").read_text().splitlines() if line.startswith("sbatch ")]
    assert " --constraint= " in call
    assert " --partition=gpu " in call


def suggestion(row: GatePlan) -> str:
    assert row.reason is not None
    found = re.search(r"add (\{.*\}) to jobs\.add_validation", row.reason)
    assert found, row.reason
    return found[1]


@pytest.mark.parametrize("given", ["[smoke]", "[node-health, {recipe: storage, partition: htc, name: disks}]"])
def test_what_the_reason_suggests_gives_the_gate_its_job_and_takes_no_other(given: str) -> None:
    base = f"slurm: {{partitions: [{GPUS['H100']}, {OTHERS['mixed']}]}}\njobs: {{validation: {given}}}"
    before = lacking(plan_from(base))
    assert len(before) > 5
    for row in before:
        after = lacking(plan_from(base, f"jobs: {{add_validation: [{suggestion(row)}]}}"))
        place = (row.partition, row.vm_size)
        assert (row.name, *place) not in {(each.name, each.partition, each.vm_size) for each in after}
        assert {each.name for each in after} <= {each.name for each in before}
    entries = ", ".join(dict.fromkeys(suggestion(row) for row in before))
    assert lacking(plan_from(base, f"jobs: {{add_validation: [{entries}]}}")) == []


def test_what_w1611_suggests_leaves_no_gate_without_a_job() -> None:
    slurm = f"slurm: {{partitions: [{GPUS['H100']}, {OTHERS['one size']}]}}\n"
    entries = "[smoke, {recipe: nccl-allreduce, name: nccl-in-a-container, settings: {CONTAINER: /data/nccl.sqsh}}]"
    assert "W1611" in checked(slurm + f"jobs: {{validation: {entries}}}")
    added = slurm + f"jobs: {{validation: null, add_validation: {entries}}}"
    assert "W1611" not in checked(added)
    plan = plan_from(added)
    assert lacking(plan) == []
    default = {job.name for job in plan_from(slurm + "jobs: null").jobs}
    assert {job.name for job in plan.jobs} == default | {"nccl-in-a-container"}
    assert [row.job for row in gate_plans(slurm_of(plan), plan.jobs) if row.name == "collective" and row.job] == [
        "nccl-allreduce"
    ]


def test_an_added_job_with_the_name_of_a_default_one_takes_its_place() -> None:
    entry = "{recipe: nccl-allreduce, partition: hpc, settings: {ITERATIONS: 50}}"
    slurm = f"slurm: {{partitions: [{GPUS['H100']}, {OTHERS['one size']}]}}\n"
    default = plan_from(slurm + "jobs: null").jobs
    jobs = plan_from(slurm + f"jobs: {{validation: null, add_validation: [{entry}]}}").jobs
    assert [job.name for job in jobs] == [job.name for job in default]
    (job,) = [job for job in jobs if job.name == "nccl-allreduce"]
    assert dict(job.settings)["ITERATIONS"] == "50"


@pytest.mark.parametrize(
    ("jobs", "warns"),
    [
        ("{validation: []}", False),
        ("{validation: [], training: [opt-175b]}", False),
        ("{validation: [], add_validation: [smoke]}", True),
        ("{validation: [smoke]}", True),
        ("{add_validation: [{recipe: own, name: smoke}]}", True),
        ("{add_validation: [{recipe: own, name: something}]}", False),
        ("{add_validation: [{recipe: smoke, nodes: 2}]}", False),
    ],
)
def test_w1611_is_for_those_who_want_some_validation(jobs: str, warns: bool) -> None:
    slurm = f"slurm: {{partitions: [{GPUS['H100']}, {OTHERS['one size']}]}}\n"
    assert ("W1611" in checked(slurm + "jobs: null", f"jobs: {jobs}")) is warns


def test_a_training_job_with_the_name_of_a_default_one_takes_its_place() -> None:
    """Their files are not mixed in one folder."""
    slurm = f"slurm: {{partitions: [{GPUS['H100'].replace('}', ', default: true}')}]}}\njobs: null"
    for name in ("storage", "Storage"):
        jobs = plan_from(slurm, f"jobs: {{training: [{{recipe: own, name: {name}}}]}}").jobs
        assert [(job.recipe, job.kind) for job in jobs if job.name.lower() == "storage"] == [("own", "training")]
        assert jobs[-1].name == name
        assert "W1611" in checked(slurm, f"jobs: {{training: [{{recipe: own, name: {name}}}]}}")


def test_every_name_beside_the_jobs_is_reserved() -> None:
    plan = plan_from(f"slurm: {{partitions: [{GPUS['H100']}]}}\njobs: null")
    beside = {path.parts[1] for path in {**render_prove.render(plan), **render_jobs.render(plan)}}
    beside -= {job.name for job in plan.jobs}
    of_programs = {"prove.state"} if "STATE_ROOT=prove.state " in (PROVE / "prove.d/state.sh").read_text() else set()
    of_jobs = {Path(dict(job.settings)["RUNS_DIR"]).name for job in plan.jobs}
    assert beside | of_programs | of_jobs == set(BESIDE_JOBS)


@pytest.mark.parametrize("name", [*BESIDE_JOBS, "Prove.SH"])
@pytest.mark.parametrize("kind", ["validation", "add_validation", "training"])
def test_no_job_has_a_reserved_name(kind: str, name: str) -> None:
    assert "E1605" in checked(f"jobs: {{{kind}: [{{recipe: own, name: {name}}}]}}")


def test_the_cases_are_many() -> None:
    assert len(list(itertools.product(GPUS, OTHERS))) == 60
