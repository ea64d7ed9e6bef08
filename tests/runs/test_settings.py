"""`--set`, held against the rules of definitions before anything is sent."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from msgspec.structs import replace

from generator.errors import CannotRead
from generator.operate import reading
from generator.operate.built import Built
from generator.operate.run import as_it_runs, settings_warnings
from generator.plan.jobs import JobPlan


@cache
def built(definition: str) -> Built:
    """A definition that CycleForge brings."""
    (read,) = reading.read([definition])
    return Built(read, read.plan, Path())


def found(definition: str, name: str) -> tuple[Built, JobPlan]:
    """The same, and one of its jobs."""
    return built(definition), next(job for job in built(definition).plan.jobs if job.name == name)


@pytest.mark.parametrize(
    ("job", "setting", "words"),
    [
        ("opt-175b", "TENSOR_PARALLEL=3", "--set TENSOR_PARALLEL: .*16 GPUs are not a multiple of tensor 3 .*E1692"),
        ("opt-175b", "GLOBAL_BATCH=7", "--set GLOBAL_BATCH: .*global batch 7 is not a multiple .*E1692"),
        ("opt-175b", "PRECISION=fp99", "--set PRECISION: .*not bf16 or fp16 .*E1696"),
        ("opt-175b", "SPARE_NODES=100", "--set SPARE_NODES: .*partition 'hpc' has 2 .*E1603"),
        ("opt-175b", "NODES=3", "--set NODES: .*asks for 3 nodes, partition 'hpc' has 2 .*E1603"),
        ("opt-175b", "MODEL=opt-13b", "--set MODEL: layers, sizes and division of the model follow from it"),
        ("opt-175b", "DATA_DIR=/elsewhere", "--set DATA_DIR: the folders of data and checkpoints follow from it"),
        ("nccl-allreduce", "CONTAINER=nccl.sqsh", "--set CONTAINER: .*a squash file without its path .*E1612"),
        ("start-times-hpc", "IMAGE=ubuntu.sqsh", "--set IMAGE: .*a squash file without its path .*E1612"),
        ("nccl-allreduce", "CONTAINER_MOUNTS=data:/data", "--set CONTAINER_MOUNTS: .*is not a mount .*E1613"),
        ("nccl-allreduce", "TASKS_PER_NODE=4", "--set needs another --ntasks-per-node in job.sbatch"),
    ],
)
def test_a_rule_that_a_definition_would_break(job: str, setting: str, words: str) -> None:
    name, _, value = setting.partition("=")
    with pytest.raises(CannotRead, match=words):
        settings_warnings(*found("llm-a100", job), {name: value})


def test_what_is_no_error_is_said() -> None:
    (said,) = settings_warnings(*found("llm-a100", "opt-175b"), {"TENSOR_PARALLEL": "1"})
    assert said.startswith("warning: --set TENSOR_PARALLEL: ")
    assert "does not fit" in said
    assert said.endswith("(W1691)")


@pytest.mark.parametrize("definition", ["llm-a100", "mpt-h100"])
def test_a_job_as_it_is_breaks_no_rule_itself(definition: str) -> None:
    """Otherwise what only whole definitions are held against would not be looked at."""
    for job in built(definition).plan.jobs:
        checked = as_it_runs(built(definition), job, {})
        assert checked.plan is not None, checked.problems
        assert checked.plan.jobs == (replace(job, definition_path=("jobs", job.kind, 0), displaces=None),)
