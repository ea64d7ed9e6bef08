"""How long training computes at a published speed: tokens by steps, speed by the nearest number of GPUs."""

from __future__ import annotations

import pytest

from generator.plan.published_hours import PublishedHours, published_hours
from tests.bed.plans import plan_from

JOBS = """
slurm:
  partitions:
    - {{name: gpu, vm_size: {size}, max_nodes: 64}}
    - {{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}}
storage:
  mounts: [{{path: /data, type: amlfs, tier: 250, size_tib: 128}}]
jobs:
  validation: []
  training: [{{recipe: {recipe}, partition: gpu, nodes: {nodes}, settings: {{{settings}}}}}]
"""
H100, A100 = "Standard_ND96isr_H100_v5", "Standard_ND96amsr_A100_v4"


def hours(recipe: str, nodes: int, settings: str = "", size: str = H100) -> PublishedHours:
    text = JOBS.format(recipe=recipe, nodes=nodes, settings=settings, size=size)
    (job,) = (each for each in plan_from(text).jobs if each.kind == "training")
    return published_hours(job)


def test_operations_of_a_gpu() -> None:
    """GPT-3 175B has about 6 x 175e9 operations for a token, and the work of its attention."""
    found = hours("gpt3-175b", 16, "ITERATIONS: 1000, GLOBAL_BATCH: 1536")
    assert (found.tokens, found.metric, found.published, found.gpus) == (1000 * 1536 * 2048, "model_tflops", 465, 96)
    by_parameters = found.tokens * 6 * 175e9 / 465e12 / 3600
    assert found.gpu_hours == pytest.approx(by_parameters, rel=0.02)
    assert found.gpu_hours != pytest.approx(by_parameters, rel=0.001), "attention and vocabulary count"


def test_tokens_of_a_gpu() -> None:
    found = hours("mpt", 16, 'MAX_DURATION: 100ba, GLOBAL_BATCH: 2048, MODEL: "mpt-30b"')
    assert (found.metric, found.published, found.gpus) == ("tokens_per_gpu", 2199, 128)
    assert found.gpu_hours == pytest.approx(100 * 2048 * 2048 / 2199 / 3600)


@pytest.mark.parametrize(("nodes", "gpus"), [(1, 8), (2, 16), (5, 32), (9, 128), (32, 256), (64, 512)])
def test_the_nearest_number_of_gpus_counts(nodes: int, gpus: int) -> None:
    assert hours("mpt", nodes, 'MAX_DURATION: 1ba, MODEL: "mpt-30b"').gpus == gpus


def test_words_of_a_whole_job() -> None:
    found = hours("opt-175b", 1, "MODEL: opt-125m, ITERATIONS: 50, GLOBAL_BATCH: 256", A100)
    assert (found.metric, found.published, found.gpus) == ("words_per_s", 200_000, 8)
    assert found.gpu_hours == pytest.approx(50 * 256 * 2048 / 200_000 * 8 / 3600)


@pytest.mark.parametrize(
    ("recipe", "settings", "reason"),
    [
        ("mpt", 'MODEL: "mpt-30b"', "its settings do not say how many steps it has"),
        ("mpt", 'MODEL: "mpt-30b", MAX_DURATION: 2ep', "its settings do not say how many steps it has"),
        ("own", "", "its settings do not say how many steps it has"),
        ("opt-175b", "MODEL: opt-13b", "no speed is published for its model on its GPUs"),
    ],
)
def test_what_nobody_knows_has_a_reason(recipe: str, settings: str, reason: str) -> None:
    assert hours(recipe, 4, settings) == PublishedHours(reason=reason)
