"""The arithmetic of training against figures that someone published, each with its source.

AI: Azure/ai-infrastructure-on-azure @ a01b073. LF: mosaicml/llm-foundry @ 8c8dd48, scripts/train/benchmarking.
OPT: arXiv 2205.01068, table 1 and section 2.
"""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from generator.recipes import models, recipe
from generator.recipes.models import Choices, Gpus, Parallelism, llm_foundry_memory, megatron_memory

H100, A100, A100_40 = 80, 80, 40


def shape_of(name: str) -> models.Model:
    found = models.model(name)
    assert found is not None
    return found


# ---------------------------------------------------------------- layouts


@pytest.mark.parametrize(
    ("name", "gpus", "memory_gb", "layout", "batch"),
    [
        # AI, examples/megatron-lm, 04-gpt175B.sh: 16 nodes of eight, tensor 8, pipeline 16, batch 512.
        ("gpt3-175b", 128, H100, Parallelism(8, 16, 1), 512),
        # The same, its README: 64 nodes and a batch of 16 a GPU.
        ("gpt3-175b", 512, H100, Parallelism(8, 16, 4), 8192),
        # The same, chart of the two-node checks: tensor and pipeline 1.
        ("gpt3-375m", 16, H100, Parallelism(1, 1, 16), 256),
        ("gpt3-857m", 16, H100, Parallelism(1, 1, 16), 256),
    ],
)
def test_published_layouts_divide_and_fit(
    name: str, gpus: int, memory_gb: int, layout: Parallelism, batch: int
) -> None:
    shape, node = shape_of(name), Gpus(gpus // 8, 8, memory_gb)
    assert layout.gpus == gpus
    assert models.layout_problems(shape, layout.tensor, layout.pipeline, node, batch, 1) == []
    assert megatron_memory(shape, layout, memory_gb, Choices(batch=batch)).fits


def test_opt_175b_was_trained_with_tensor_parallelism_8_on_992_gpus() -> None:
    """OPT, section 2.4: 992 A100 of 80 GB, FSDP with Megatron's tensor parallelism (8 in metaseq's constants)."""
    shape, gpus = shape_of("opt-175b"), Gpus(124, 8, A100)
    layout = Parallelism(8, 1, 124)
    # FSDP divides weights and gradients as well, so Megatron needs stages where metaseq needed none.
    assert not megatron_memory(shape, layout, A100, Choices()).fits
    chosen = models.parallelism(shape, gpus)
    assert chosen is not None
    assert (chosen.tensor, chosen.gpus) == (8, 992)
    assert models.megatron_global_batch(shape, chosen) <= 1024


def test_each_figure_of_gpt3_175b_by_hand() -> None:
    """Megatron-LM @ 878d65f, theoretical_memory_usage.py: 6 + 12/DP bytes a parameter, 34·s·b·h/TP a layer."""
    found = megatron_memory(shape_of("gpt3-175b"), Parallelism(8, 4, 4), H100, Choices(microbatch=1))
    blocks, embeddings = 12 * 96 * 12288**2 + 13 * 96 * 12288, (50304 + 2048) * 12288
    parameters = blocks / 32 + embeddings / 8
    assert found.weights_bytes == pytest.approx(2 * parameters)
    assert found.gradients_bytes == pytest.approx(4 * parameters)
    assert found.optimizer_bytes == pytest.approx(12 / 4 * parameters)
    assert found.activations_bytes == pytest.approx(34 * 2048 * 12288 * 96 / 8)
    assert found.usable_bytes == 72e9


def test_each_figure_of_mpt_30b_by_hand() -> None:
    """LF, mpt-30b.yaml: 48 layers of 7168, 2048 tokens, activation checkpointing; FSDP divides 4 + 4 + 8 bytes."""
    shape = shape_of("mpt-30b")
    assert (shape.layers, shape.hidden, shape.sequence, shape.vocabulary) == (48, 7168, 2048, 50368)
    found = llm_foundry_memory(shape, Gpus(2, 8, H100), 3)
    # Two layers are gathered in 16 bit.
    assert found.weights_bytes == pytest.approx(4 * shape.parameters / 16 + 2 * 2 * (12 * 7168**2 + 13 * 7168))
    assert found.gradients_bytes == pytest.approx(4 * shape.parameters / 16)
    assert found.optimizer_bytes == pytest.approx(8 * shape.parameters / 16)
    # The input of each layer, all of one, and the logits in 16 and 32 bit.
    assert found.activations_bytes == pytest.approx(3 * 2048 * ((2 * 48 + 34) * 7168 + 6 * 50368))


def test_a_model_in_one_stage_has_its_logits_there() -> None:
    shape = shape_of("gpt3-13b")
    one, two = (megatron_memory(shape, Parallelism(8, n, 1), H100, Choices()).activations_bytes for n in (1, 2))
    assert one - two == pytest.approx(4 * shape.sequence * shape.vocabulary / 8)


@pytest.mark.parametrize(
    ("layout", "choices", "factor"),
    [
        (Parallelism(8, 4, 4), Choices(microbatch=2), 2),
        (Parallelism(8, 4, 2, context=2), Choices(), 1 / 2),
        # Two micro-batches never fill four stages.
        (Parallelism(8, 4, 4), Choices(batch=8), 1 / 2),
        (Parallelism(8, 4, 4), Choices(recompute="full"), (2 * 96 + 34 + 5 * 96 * 2048 / 12288) / (34 * 96)),
        (Parallelism(8, 4, 4), Choices(recompute="none"), (34 + 5 * 96 * 2048 / 12288) / 34),
    ],
)
def test_what_changes_activations(layout: Parallelism, choices: Choices, factor: float) -> None:
    """arXiv 2205.05198: 34·s·b·h + 5·a·s²·b a layer; 2·s·b·h where only its input is kept."""
    shape = shape_of("gpt3-175b")
    usual = megatron_memory(shape, Parallelism(8, 4, 4), H100, Choices()).activations_bytes
    assert megatron_memory(shape, layout, H100, choices).activations_bytes == pytest.approx(usual * factor)


def test_experts_are_divided_over_data_ranks() -> None:
    shape = replace(shape_of("gpt3-13b"), experts=8)
    dense = shape_of("gpt3-13b").parameters
    # Two matrices of 4h², and biases of 4h and h.
    assert shape.mlp_parameters == 40 * (8 * 5120**2 + 5 * 5120)
    assert shape.parameters == dense + 7 * shape.mlp_parameters + 8 * 5120 * 40
    one, eight = (megatron_memory(shape, Parallelism(1, 1, 8, expert=n), H100, Choices()) for n in (1, 8))
    assert one.weights_bytes - eight.weights_bytes == pytest.approx(2 * shape.mlp_parameters * 7)
    # Eight times as many replicas of an expert are one each, so that its optimizer state is the same.
    assert one.optimizer_bytes == pytest.approx(eight.optimizer_bytes)
    assert megatron_memory(shape, Parallelism(1, 1, 8), H100, Choices()).weights_bytes == one.weights_bytes


def test_a_token_passes_through_two_experts() -> None:
    """arXiv 2205.05198: of a layer's 34·s·b·h the MLP keeps 19, which is there once more; the logits stay."""
    dense = shape_of("gpt3-13b")
    layout = Parallelism(8, 4, 1)
    usual, expert = (
        megatron_memory(shape, layout, H100, Choices()).activations_bytes
        for shape in (dense, replace(dense, experts=8))
    )
    assert expert == pytest.approx(usual * (34 + 19) / 34)


# ---------------------------------------------------------------- micro-batches

PUBLISHED = [
    ("mpt-125m", A100_40, 8, 26),
    ("mpt-125m", A100, 8, 32),
    ("mpt-30b", A100_40, 32, 4),
    ("mpt-30b", A100_40, 128, 6),
    ("mpt-30b", A100, 8, 3),
    ("mpt-30b", H100, 8, 3),
    ("mpt-30b", H100, 16, 10),
    ("mpt-30b", H100, 32, 14),
    ("mpt-30b", H100, 128, 8),
    ("mpt-30b", H100, 512, 8),
    ("mpt-70b", A100_40, 64, 2),
    ("mpt-70b", A100_40, 128, 4),
    ("mpt-70b", A100, 32, 2),
    ("mpt-70b", A100, 64, 8),
    ("mpt-70b", H100, 512, 8),
]
"""LF: model, GB of a GPU, GPUs, largest micro-batch at sequence 2048."""


@pytest.mark.parametrize(("name", "memory_gb", "gpus", "microbatch"), PUBLISHED)
def test_what_others_ran_fits_by_our_estimate(name: str, memory_gb: int, gpus: int, microbatch: int) -> None:
    assert llm_foundry_memory(shape_of(name), Gpus(gpus // 8, 8, memory_gb), microbatch).fits


@pytest.mark.parametrize(
    ("name", "memory_gb", "gpus", "microbatch"),
    [
        ("mpt-30b", H100, 8, 2),  # 3 was published, 256 samples of a GPU divide by 2
        ("mpt-30b", H100, 16, 8),  # 10, and 128 samples
        ("mpt-30b", H100, 128, 8),
        ("mpt-70b", H100, 32, 2),
        ("mpt-70b", H100, 128, 8),
        ("mpt-70b", 141, 128, 8),  # H200: no table, that of 80 GB
        ("mpt-70b", A100_40, 64, 2),
        ("mpt-30b", A100_40, 16, 1),  # no table for so few: the estimate
    ],
)
def test_the_microbatch_is_the_published_one(name: str, memory_gb: int, gpus: int, microbatch: int) -> None:
    shape, nodes = shape_of(name), Gpus(gpus // 8, 8, memory_gb)
    assert models.llm_foundry_microbatch(shape, nodes) == microbatch


# ---------------------------------------------------------------- batches and rates

LADDER = {
    "opt-125m": (0.5, "6.0e-4"),
    "opt-350m": (0.5, "3.0e-4"),
    "opt-1.3b": (1, "2.0e-4"),
    "opt-2.7b": (1, "1.6e-4"),
    "opt-6.7b": (2, "1.2e-4"),
    "opt-13b": (4, "1.0e-4"),
    "opt-30b": (4, "1.0e-4"),
    "opt-66b": (2, "0.8e-4"),
    "opt-175b": (2, "1.2e-4"),
}
"""OPT, table 1: tokens of a batch in 2^20, and the peak learning rate."""


def test_the_ladder_of_opt_is_whole() -> None:
    found = recipe("opt-175b")
    assert found is not None
    assert found.models == tuple(LADDER)
    for name, (tokens, rate) in LADDER.items():
        shape = shape_of(name)
        assert (shape.batch_tokens, shape.learning_rate) == (tokens * 2**20, rate)


@pytest.mark.parametrize(
    ("name", "layout", "microbatch", "batch"),
    [
        ("opt-125m", Parallelism(1, 1, 8), 1, 256),
        ("opt-30b", Parallelism(8, 1, 2), 1, 2048),
        ("opt-175b", Parallelism(8, 4, 31), 1, 1023),
        # More replicas than the published batch has samples: one each.
        ("opt-125m", Parallelism(1, 1, 512), 1, 512),
        ("opt-125m", Parallelism(1, 1, 8), 3, 240),
        # AI: 16 samples a GPU.
        ("gpt3-175b", Parallelism(8, 4, 16), 1, 8192),
    ],
)
def test_batches(name: str, layout: Parallelism, microbatch: int, batch: int) -> None:
    assert models.megatron_global_batch(shape_of(name), layout, microbatch) == batch
