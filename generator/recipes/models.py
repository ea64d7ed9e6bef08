"""Arithmetic of the training recipes: parameters, memory, parallel layout, batches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from .. import catalog
from ..records import record
from . import Recipe


@record
class Model:
    """Shape of a decoder-only transformer."""

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

    @property
    def parameters(self) -> int:
        """Weights and embeddings: 12·L·h²·(1 + 13/(12h)) + V·h + S·h."""
        blocks = 12 * self.layers * self.hidden**2 + 13 * self.layers * self.hidden
        return blocks + (self.vocabulary + self.sequence) * self.hidden


@record
class Gpus:
    """The GPUs of a job: so many nodes of one kind."""

    nodes: int
    per_node: int
    memory_gb: int | None
    """Of one GPU; None if it is not published."""

    @property
    def count(self) -> int:
        """GPUs of the whole job."""
        return self.nodes * self.per_node


@record
class Parallelism:
    """How a model is spread: tensor × pipeline × data = number of GPUs."""

    tensor: int
    pipeline: int
    data: int

    @property
    def gpus(self) -> int:
        """GPUs of the whole job."""
        return self.tensor * self.pipeline * self.data


NEEDED = {
    "llm-foundry": ("GLOBAL_BATCH", "MICRO_BATCH", "SEQUENCE"),
    "megatron": ("HIDDEN_SIZE", "NUM_ATTENTION_HEADS", "NUM_LAYERS", "SEQUENCE", "VOCABULARY"),
}
"""Settings without which a job cannot train a model that the catalogue does not know, by family."""


@cache
def model(name: str) -> Model | None:
    """One preset of the model catalogue, for example `opt-175b`."""
    row = catalog.models()["models"].get(name)
    if row is None:
        return None
    return Model(
        name=name,
        family=row["family"],
        layers=row["layers"],
        hidden=row["hidden"],
        heads=row["heads"],
        sequence=row["sequence"],
        vocabulary=row["vocabulary"],
        global_batch=row.get("global_batch"),
        microbatch=row.get("microbatch"),
    )


def family(shape: Model) -> Mapping[str, Any]:
    """The family's figures of the catalogue: bytes per parameter, rules of thumb."""
    content: Mapping[str, Any] = catalog.models()["families"][shape.family]
    return content


def family_of(recipe: Recipe) -> str | None:
    """The family of a recipe's models; None for a recipe that trains none."""
    shapes = (model(name) for name in recipe.models)
    return next((shape.family for shape in shapes if shape is not None), None)


def names_of_family(family_name: str) -> tuple[str, ...]:
    """Models of the catalogue that a recipe of the family can train, sorted."""
    rows = catalog.models()["models"]
    return tuple(sorted(name for name, row in rows.items() if row["family"] == family_name))


# ---------------------------------------------------------------- fit


def training_bytes_per_gpu(shape: Model, layout: Parallelism) -> float:
    """Weights, gradients and optimizer state on one GPU with the distributed optimizer of Megatron (bf16)."""
    rule = family(shape)["training_bytes_per_parameter"]
    per_parameter = rule["replicated"] + rule["sharded"] / layout.data
    return float(shape.parameters * per_parameter / (layout.tensor * layout.pipeline))


def parallelism(shape: Model, gpus: Gpus) -> Parallelism | None:
    """The layout with the fewest pipeline stages that fits the GPU memory; None when none does or nobody knows it.

    Tensor parallelism stays inside a node. Every divisor rule of `layout_problems` holds for the result.
    """
    if gpus.memory_gb is None or not gpus.count:
        return None
    world = gpus.count
    usable = gpus.memory_gb * 1e9 * float(family(shape)["usable_memory_share"]["value"])
    tensors = [
        count for count in range(1, gpus.per_node + 1) if gpus.per_node % count == 0 and shape.heads % count == 0
    ]
    for pipeline in (count for count in range(1, shape.layers + 1) if shape.layers % count == 0):
        for tensor in tensors:
            if world % (tensor * pipeline):
                continue
            layout = Parallelism(tensor, pipeline, world // (tensor * pipeline))
            if training_bytes_per_gpu(shape, layout) <= usable:
                return layout
    return None


def fits(shape: Model, gpus: Gpus) -> bool:
    """Whether the model can be trained on these GPUs; False where their memory is unknown."""
    if gpus.memory_gb is None or not gpus.count:
        return False
    if shape.family == "megatron":
        return parallelism(shape, gpus) is not None
    # LLM Foundry's rule of thumb: total GPU memory in GB above 12 x parameters in 10^9.
    rule = float(family(shape)["memory_gb_per_billion_parameters"]["value"])
    return gpus.count * gpus.memory_gb > rule * shape.parameters / 1e9


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


# ---------------------------------------------------------------- checks


def layout_problems(shape: Model, tensor: int, pipeline: int, gpus: Gpus, batch: int, microbatch: int) -> list[str]:
    """Every divisor rule of Megatron that a layout breaks, as sentences; empty when it is sound."""
    problems = []
    if tensor > gpus.per_node:
        problems.append(f"tensor parallelism {tensor} exceeds the node of {gpus.per_node} GPUs")
    if shape.layers % pipeline:
        problems.append(f"{shape.layers} layers cannot be divided into {pipeline} stages")
    if shape.heads % tensor:
        problems.append(f"{shape.heads} heads cannot be divided over {tensor} GPUs")
    if shape.hidden % shape.heads:
        problems.append(f"hidden size {shape.hidden} cannot be divided by {shape.heads} heads")
    if gpus.count % (tensor * pipeline):
        problems.append(f"{gpus.count} GPUs are not a multiple of tensor {tensor} x pipeline {pipeline}")
    elif batch % (microbatch * (replicas := gpus.count // (tensor * pipeline))):
        problems.append(f"global batch {batch} is not a multiple of micro-batch {microbatch} x {replicas} replicas")
    return problems


def batch_problems(gpus: Gpus, batch: int, microbatch: int) -> list[str]:
    """What LLM Foundry refuses of a batch size, as sentences; empty when it is sound."""
    if batch % gpus.count:
        return [f"global batch {batch} is not a multiple of {gpus.count} GPUs"]
    if (batch // gpus.count) % microbatch:
        return [f"batch {batch // gpus.count} of a GPU is not a multiple of micro-batch {microbatch}"]
    return []


def megatron_global_batch(shape: Model, layout: Parallelism) -> int:
    """Global batch that the reference suggests for that many GPUs; a multiple of the data-parallel size."""
    return int(family(shape)["samples_per_gpu"]["value"]) * layout.gpus


def llm_foundry_global_batch(shape: Model, gpus: int) -> int | None:
    """The preset's global batch, lowered to the next multiple of the GPUs; None when that leaves nothing."""
    if shape.global_batch is None:
        return None
    return shape.global_batch // gpus * gpus or None


def llm_foundry_microbatch(shape: Model, gpus: int) -> int | None:
    """Largest micro-batch, up to the preset's, that divides the batch of one GPU; None when there is no batch."""
    batch = llm_foundry_global_batch(shape, gpus)
    if batch is None or shape.microbatch is None:
        return None
    per_gpu = batch // gpus
    return max(size for size in range(1, min(shape.microbatch, per_gpu) + 1) if per_gpu % size == 0)
