"""Memory of one GPU in training: weights, gradients, optimizer state and activations, by framework and division."""

from __future__ import annotations

from .. import catalog
from ..records import record
from .shapes import Choices, Gpus, Model, Parallelism, family

RECOMPUTE = ("none", "selective", "full")
"""What Megatron calculates again in the backward pass: nothing, the attention scores, everything but a layer's input.
Fused attention never stores the scores, so that `selective` is also what it needs."""
_LOGIT_BYTES = {"llm-foundry": 6, "megatron": 4}
"""Of each token and word of the vocabulary: Megatron's fp32 logits; LLM Foundry has them in bf16 as well."""
_ACTIVE_EXPERTS = 2
"""Experts that each token passes through, the default of Megatron's router."""


@record
class MemoryPlan:
    """What one GPU of a training job must hold at its fullest, in bytes; an estimate."""

    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    usable_bytes: int
    """What is counted on of the GPU's memory; the rest is for NCCL, the CUDA context and fragmentation."""

    @property
    def needed_bytes(self) -> int:
        """All of it."""
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.activations_bytes

    @property
    def fits(self) -> bool:
        """Whether it is within what is usable."""
        return self.needed_bytes <= self.usable_bytes


def megatron_memory(shape: Model, layout: Parallelism, memory_gb: int, choices: Choices) -> MemoryPlan:
    """The first stage of the pipeline, which holds the embeddings and the activations of most micro-batches.

    16-bit weights and fp32 gradients are on every rank; the distributed optimizer divides its state over the data
    ranks. Source: `theoretical_memory_usage.py` of Megatron-LM, which counts the same.
    """
    per = family(shape).training_bytes_per_parameter
    experts = shape.mlp_parameters * shape.experts
    stage = layout.tensor * layout.pipeline
    shared = (shape.parameters - shape.embedding_parameters - experts) / stage
    shared += shape.embedding_parameters / layout.tensor
    own = experts / stage / layout.expert
    replicas = layout.data * layout.context
    optimizer = shared / replicas + own / max(replicas / layout.expert, 1)
    return MemoryPlan(
        weights_bytes=round((shared + own) * per.weights),
        gradients_bytes=round((shared + own) * per.gradients),
        optimizer_bytes=round(optimizer * per.optimizer),
        activations_bytes=round(_megatron_activations(shape, layout, choices)),
        usable_bytes=_usable(memory_gb),
    )


def llm_foundry_memory(shape: Model, gpus: Gpus, microbatch: int) -> MemoryPlan:
    """FSDP with FULL_SHARD: all state is divided over all GPUs; two layers at a time are gathered in 16 bit."""
    per = family(shape).training_bytes_per_parameter
    figures = catalog.models().activations
    tokens = shape.sequence * microbatch
    layer = tokens * shape.hidden * figures.layer.value
    held = tokens * shape.hidden * figures.full_recompute.value
    kept = shape.layers * held + layer if shape.checkpointing else shape.layers * layer
    logits = tokens * shape.vocabulary * _LOGIT_BYTES[shape.family]
    gathered = 2 * 2 * (12 * shape.hidden**2 + 13 * shape.hidden)
    return MemoryPlan(
        weights_bytes=round(shape.parameters * per.weights / gpus.count) + gathered,
        gradients_bytes=round(shape.parameters * per.gradients / gpus.count),
        optimizer_bytes=round(shape.parameters * per.optimizer / gpus.count),
        activations_bytes=kept + logits,
        usable_bytes=_usable(gpus.memory_gb or 0),
    )


def _megatron_activations(shape: Model, layout: Parallelism, choices: Choices) -> float:
    """Of all micro-batches that the first stage has under way: as many as there are stages, if there are so many."""
    figures = catalog.models().activations
    microbatch = choices.microbatch or 1
    tokens = shape.sequence * microbatch / layout.context
    total: float
    layer = tokens * shape.hidden * figures.layer.value
    if shape.experts:
        layer += tokens * shape.hidden * figures.layer.mlp * (_ACTIVE_EXPERTS - 1)
    scores = figures.scores.value * shape.heads * shape.sequence * tokens
    # Layers of a stage × micro-batches under way: the number of stages cancels out.
    if choices.recompute == "full":
        total = tokens * shape.hidden * figures.full_recompute.value * shape.layers + layer + scores
    else:
        total = (layer + (scores if choices.recompute == "none" else 0)) * shape.layers
    if choices.batch and layout.pipeline > 1:
        total *= min(1.0, choices.batch / (microbatch * layout.data) / layout.pipeline)
    if layout.pipeline == 1:
        total += tokens * shape.vocabulary * _LOGIT_BYTES[shape.family]
    return float(total / layout.tensor)


def _usable(memory_gb: int) -> int:
    return round(memory_gb * 1e9 * float(catalog.models().activations.usable_share.value))
