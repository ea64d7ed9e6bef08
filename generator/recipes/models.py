"""Arithmetic of the training recipes: which model fits which GPUs, how it is divided over them, batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from .. import catalog
from . import Recipe
from .memory import RECOMPUTE, MemoryPlan, llm_foundry_memory, megatron_memory
from .shapes import Choices, Gpus, Model, Parallelism, family, family_of, model, names_of_family

__all__ = ["Choices", "Gpus", "Model", "Parallelism", "family", "family_of", "model", "names_of_family"]

NEEDED = {
    "llm-foundry": ("GLOBAL_BATCH", "MICRO_BATCH", "SEQUENCE"),
    "megatron": ("HIDDEN_SIZE", "NUM_ATTENTION_HEADS", "NUM_LAYERS", "SEQUENCE", "VOCABULARY"),
}
"""Settings without which a job cannot train a model that the catalogue does not know, by family."""
_FREE = Choices()
_PUBLISHED_SEQUENCE = 2048
"""That of the published micro-batches."""


# ---------------------------------------------------------------- fit


def parallelism(shape: Model, gpus: Gpus, choices: Choices = _FREE) -> Parallelism | None:
    """The layout with the fewest pipeline stages that fits the GPU memory; None when none does or nobody knows it.

    Tensor parallelism stays inside a node. Every divisor rule of `layout_problems` holds for the result.
    """
    if gpus.memory_gb is None or not gpus.count:
        return None
    for layout in _layouts(shape, gpus, choices):
        if megatron_memory(shape, layout, gpus.memory_gb, choices).fits:
            return layout
    return None


def _layouts(shape: Model, gpus: Gpus, choices: Choices) -> Iterator[Parallelism]:
    """Every layout that divides, those with few stages and little tensor parallelism first."""
    tensors = [
        count for count in range(1, gpus.per_node + 1) if gpus.per_node % count == 0 and shape.heads % count == 0
    ]
    for pipeline in (count for count in range(1, shape.layers + 1) if shape.layers % count == 0):
        for tensor in tensors:
            block = tensor * pipeline * choices.context
            if gpus.count % block or choices.tensor not in (None, tensor) or choices.pipeline not in (None, pipeline):
                continue
            if not (gpus.count // block * choices.context) % choices.expert:
                yield Parallelism(tensor, pipeline, gpus.count // block, choices.context, choices.expert)


def memory_of(shape: Model, gpus: Gpus, layout: Parallelism | None, choices: Choices) -> MemoryPlan | None:
    """What one GPU must hold; None where the layout or the GPU's memory is not known."""
    if gpus.memory_gb is None or not gpus.count:
        return None
    if shape.family == "llm-foundry":
        return llm_foundry_memory(shape, gpus, choices.microbatch or 1)
    return megatron_memory(shape, layout, gpus.memory_gb, choices) if layout else None


def fits(shape: Model, gpus: Gpus) -> bool:
    """Whether the model can be trained on these GPUs; False where their memory is unknown."""
    if shape.family == "megatron":
        return parallelism(shape, gpus) is not None
    needed = memory_of(shape, gpus, None, _FREE)
    return needed is not None and needed.fits


def largest_fitting_model(recipe: Recipe, gpus: Gpus) -> Model | None:
    """The recipe's own model where it fits, otherwise its largest smaller preset; None when not even that fits."""
    names = list(recipe.models)
    if recipe.default_model in names:
        names = names[: names.index(recipe.default_model) + 1]
    for name in reversed(names):
        shape = model(name)
        if shape is not None and fits(shape, gpus):
            return shape
    return None


def nodes_needed(shape: Model, gpus: Gpus, at_most: int = 1000) -> int | None:
    """The smallest number of such nodes on which the model fits, up to `at_most`."""
    return next((nodes for nodes in range(1, at_most + 1) if fits(shape, replace(gpus, nodes=nodes))), None)


def has_bf16(gpu_model: str | None) -> bool:
    """Whether GPUs of the model calculate in bf16; a model that nobody described is taken to be a new one."""
    return not set((gpu_model or "").upper().split()) & set(catalog.models().without_bf16.gpus)


# ---------------------------------------------------------------- checks


def layout_problems(
    shape: Model,
    tensor: int,
    pipeline: int,
    gpus: Gpus,
    batch: int,
    microbatch: int,
    choices: Choices = _FREE,
) -> list[str]:
    """Every divisor rule of Megatron that a layout breaks, as sentences; empty when it is sound."""
    problems = []
    context, expert = choices.context, choices.expert
    if tensor > gpus.per_node:
        problems.append(f"tensor parallelism {tensor} exceeds the node of {gpus.per_node} GPUs")
    if shape.layers % pipeline:
        problems.append(f"{shape.layers} layers cannot be divided into {pipeline} stages")
    if shape.heads % tensor:
        problems.append(f"{shape.heads} heads cannot be divided over {tensor} GPUs")
    if shape.hidden % shape.heads:
        problems.append(f"hidden size {shape.hidden} cannot be divided by {shape.heads} heads")
    # Each rank has a piece of the first half and one of the second, so that causal attention costs all the same.
    if context > 1 and shape.sequence % (2 * context):
        problems.append(f"a sequence of {shape.sequence} tokens cannot be divided into 2 x context {context} pieces")
    if expert > 1 and (not shape.experts or shape.experts % expert):
        problems.append(f"{shape.experts} experts cannot be divided over {expert} GPUs")
    if choices.recompute not in RECOMPUTE:
        problems.append(f"RECOMPUTE is '{choices.recompute}', not one of {', '.join(RECOMPUTE)}")
    block = tensor * pipeline * context
    product = f"tensor {tensor} x pipeline {pipeline}" + (f" x context {context}" if context > 1 else "")
    if gpus.count % block:
        return [*problems, f"{gpus.count} GPUs are not a multiple of {product}"]
    replicas = gpus.count // block
    if (replicas * context) % expert:
        problems.append(f"{replicas * context} data ranks are not a multiple of expert {expert}")
    if batch % (microbatch * replicas):
        problems.append(f"global batch {batch} is not a multiple of micro-batch {microbatch} x {replicas} replicas")
    return problems


def batch_problems(gpus: Gpus, batch: int, microbatch: int) -> list[str]:
    """What LLM Foundry refuses of a batch size, as sentences; empty when it is sound."""
    if batch % gpus.count:
        return [f"global batch {batch} is not a multiple of {gpus.count} GPUs"]
    if (batch // gpus.count) % microbatch:
        return [f"batch {batch // gpus.count} of a GPU is not a multiple of micro-batch {microbatch}"]
    return []


# ---------------------------------------------------------------- batches


def megatron_global_batch(shape: Model, layout: Parallelism, microbatch: int = 1) -> int:
    """Samples of a step that can be divided: what was published for the model, else what the reference suggests."""
    at_once = layout.data * microbatch
    if shape.batch_tokens is not None:
        wanted = shape.batch_tokens // shape.sequence
    else:
        wanted = int(family(shape).samples_per_gpu.value) * layout.gpus
    return max(wanted // at_once, 1) * at_once


def llm_foundry_global_batch(shape: Model, gpus: int) -> int | None:
    """The preset's global batch, lowered to the next multiple of the GPUs; None when that leaves nothing."""
    if shape.global_batch is None:
        return None
    return shape.global_batch // gpus * gpus or None


def llm_foundry_microbatch(shape: Model, gpus: Gpus, batch: int | None = None) -> int | None:
    """Largest micro-batch that divides the batch of one GPU and fits; None when there is no batch.

    At most what was published for the model on as many GPUs or fewer with that memory or less. Where nothing was, at
    most the preset's, as far as the estimate of the memory holds it.
    """
    batch = batch or llm_foundry_global_batch(shape, gpus.count)
    if batch is None or shape.microbatch is None:
        return None
    per_gpu = max(batch // gpus.count, 1)
    published = _published_microbatch(shape, gpus)
    most = published or shape.microbatch
    sizes = [size for size in range(1, min(most, per_gpu) + 1) if per_gpu % size == 0]
    if published is None and gpus.memory_gb is not None:
        sizes = [size for size in sizes if llm_foundry_memory(shape, gpus, size).fits] or sizes[:1]
    return max(sizes)


def _published_microbatch(shape: Model, gpus: Gpus) -> int | None:
    if gpus.memory_gb is None or shape.sequence > _PUBLISHED_SEQUENCE:
        return None
    rows = [
        (row.microbatch, row.model == shape.name, row.memory_gb <= gpus.memory_gb, row.gpus <= gpus.count)
        for row in catalog.models().microbatches.rows
    ]
    return max((size for size, *holds in rows if all(holds)), default=None)
