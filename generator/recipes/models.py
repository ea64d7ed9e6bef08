"""Arithmetic of the training recipes: which model fits which GPUs, its memory, how it is divided over them, batches."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from .. import catalog
from ..catalog.training_facts import Family
from . import Recipe

NEEDED = {
    "llm-foundry": ("GLOBAL_BATCH", "MICRO_BATCH", "SEQUENCE"),
    "megatron": ("HIDDEN_SIZE", "NUM_ATTENTION_HEADS", "NUM_LAYERS", "SEQUENCE", "VOCABULARY"),
}
"""Settings without which a job cannot train a model that the catalogue does not know, by family."""
_PUBLISHED_SEQUENCE = 2048
"""That of the published micro-batches."""
RECOMPUTE = ("none", "selective", "full")
"""What Megatron calculates again in the backward pass: nothing, the attention scores, everything but a layer's input.
Fused attention never stores the scores, so that `selective` is also what it needs."""
_LOGIT_BYTES = {"llm-foundry": 6, "megatron": 4}
"""Of each token and word of the vocabulary: Megatron's fp32 logits; LLM Foundry has them in bf16 as well."""
_ACTIVE_EXPERTS = 2
"""Experts that each token passes through, the default of Megatron's router."""


# ---------------------------------------------------------------- shapes


class Model(Struct, frozen=True):
    """Shape of a decoder-only transformer, and how its authors trained it."""

    name: str
    family: str
    layers: int
    hidden: int
    heads: int
    sequence: int
    vocabulary: int
    global_batch: int | None = None
    """Samples per step that the preset of the family uses; None = the recipe derives it from the GPUs."""
    microbatch: int | None = None
    batch_tokens: int | None = None
    """Tokens per step that its authors published; None = not published."""
    learning_rate: str | None = None
    """Peak learning rate that its authors published, as they wrote it."""
    checkpointing: bool = False
    """Whether the preset keeps only the input of each layer and calculates the rest again (LLM Foundry)."""
    experts: int = 0
    """Experts of each layer's MLP; 0 = an ordinary one."""

    @property
    def parameters(self) -> int:
        """Weights and embeddings: 12·L·h²·(1 + 13/(12h)) + V·h + S·h; more for experts."""
        dense = 12 * self.layers * self.hidden**2 + 13 * self.layers * self.hidden - self.mlp_parameters
        blocks = dense + self.mlp_parameters * max(self.experts, 1) + self.experts * self.hidden * self.layers
        return blocks + self.embedding_parameters

    @property
    def mlp_parameters(self) -> int:
        """Weights and biases of one MLP of every layer, four times as wide as the hidden size."""
        return self.layers * (8 * self.hidden**2 + 5 * self.hidden)

    @property
    def embedding_parameters(self) -> int:
        """Of words and positions; the output layer shares the former."""
        return (self.vocabulary + self.sequence) * self.hidden


class Gpus(Struct, frozen=True):
    """The GPUs of a job: so many nodes of one kind."""

    nodes: int
    per_node: int
    memory_gb: int | None
    """Of one GPU; None if it is not published."""

    @property
    def count(self) -> int:
        return self.nodes * self.per_node


class Parallelism(Struct, frozen=True):
    """How a model is spread: tensor × pipeline × context × data = number of GPUs; experts divide the data ranks."""

    tensor: int
    pipeline: int
    data: int
    context: int = 1
    expert: int = 1

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline * self.context * self.data


class Choices(Struct, frozen=True):
    """What the settings of a job fix of its division; None: CycleForge chooses."""

    tensor: int | None = None
    pipeline: int | None = None
    context: int = 1
    expert: int = 1
    microbatch: int | None = None
    batch: int | None = None
    recompute: str = "selective"


_FREE = Choices()


@cache
def model(name: str) -> Model | None:
    """One preset of the model catalogue, for example `opt-175b`."""
    row = catalog.models().models.get(name)
    if row is None:
        return None
    return Model(
        name=name,
        family=row.family,
        layers=row.layers,
        hidden=row.hidden,
        heads=row.heads,
        sequence=row.sequence,
        vocabulary=row.vocabulary,
        global_batch=row.global_batch,
        microbatch=row.microbatch,
        batch_tokens=row.batch_tokens,
        learning_rate=row.learning_rate,
        checkpointing=row.checkpointing,
    )


def family(shape: Model) -> Family:
    return catalog.models().families[shape.family]


def family_of(recipe: Recipe) -> str | None:
    """Return None for a recipe that trains no model."""
    shapes = (model(name) for name in recipe.models)
    return next((shape.family for shape in shapes if shape is not None), None)


def names_of_family(family_name: str) -> tuple[str, ...]:
    """Models of the catalogue that a recipe of the family can train, sorted."""
    rows = catalog.models().models
    return tuple(sorted(name for name, row in rows.items() if row.family == family_name))


# ---------------------------------------------------------------- memory of one GPU


class MemoryPlan(Struct, frozen=True):
    """What one GPU of a training job must hold at its fullest, in bytes; an estimate."""

    weights_bytes: int
    gradients_bytes: int
    optimizer_bytes: int
    activations_bytes: int
    usable_bytes: int
    """What is counted on of the GPU's memory; the rest is for NCCL, the CUDA context and fragmentation."""

    @property
    def needed_bytes(self) -> int:
        return self.weights_bytes + self.gradients_bytes + self.optimizer_bytes + self.activations_bytes

    @property
    def fits(self) -> bool:
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


# ---------------------------------------------------------------- fit


def parallelism(shape: Model, gpus: Gpus, choices: Choices = _FREE) -> Parallelism | None:
    """The layout with the fewest pipeline stages that fits the GPU memory; None when none does or that is unknown.

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


def nodes_needed(shape: Model, gpus: Gpus) -> int | None:
    """The smallest number of such nodes on which the model fits, up to 1,000."""
    return next((nodes for nodes in range(1, 1001) if fits(shape, replace(gpus, nodes=nodes))), None)


def has_bf16(gpu_model: str | None) -> bool:
    """Whether GPUs of the model calculate in bf16; an unknown model is taken to be a new one."""
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
