"""What people read of a plan decides nothing: titles and printed lines may have any other words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from generator.plan.jobs import JobPlan
from generator.plan.preparation import preparation
from tests.bed.plans import plan_from, slurm_of

ON_GPUS = """
storage: {mounts: [{path: /data, type: amlfs, tier: 500, size_tib: 128}]}
slurm: {partitions: [{name: gpu, vm_size: Standard_ND96isr_H100_v5, max_nodes: 16, default: true}]}
jobs: {training: [gpt3-175b, mpt]}
"""
PLAN = plan_from(ON_GPUS)


def reworded(job: JobPlan) -> JobPlan:
    steps = tuple(replace(step, title=step.title[::-1]) for step in job.steps)
    return replace(job, title=job.title[::-1], steps=steps, commands=("see the README", *job.commands[1:]))


@pytest.mark.parametrize("job", [each for each in PLAN.jobs if each.kind == "training"], ids=lambda each: each.name)
def test_a_job_prepares_the_same(job: JobPlan) -> None:
    arrays = slurm_of(PLAN).node_arrays
    usual, other = preparation(job, arrays), preparation(reworded(job), arrays)
    assert usual is not None
    assert other is not None
    assert [each.downloads for each in usual.steps].count(True) == 1
    assert other == replace(usual, steps=tuple(replace(each, title=each.title[::-1]) for each in usual.steps))
    assert reworded(job).shared_folders == job.shared_folders
    assert all(folder in job.commands[0] for folder in job.shared_folders)
