"""What a model, the GPUs below it and its division over them are; the arithmetic is in `models` and `memory`."""

from __future__ import annotations

from functools import cache

from .. import catalog
from ..catalog.training_facts import Family
from ..records import record
from . import Recipe


@record
class Model:
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
    """Tokens per step that its authors published; None = nobody did."""
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
    """How a model is spread: tensor × pipeline × context × data = number of GPUs; experts divide the data ranks."""

    tensor: int
    pipeline: int
    data: int
    context: int = 1
    expert: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of the whole job."""
        return self.tensor * self.pipeline * self.context * self.data


@record
class Choices:
    """What the settings of a job fix of its division; None: CycleForge chooses."""

    tensor: int | None = None
    pipeline: int | None = None
    context: int = 1
    expert: int = 1
    microbatch: int | None = None
    batch: int | None = None
    recompute: str = "selective"


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
    """The family's figures of the catalogue."""
    return catalog.models().families[shape.family]


def family_of(recipe: Recipe) -> str | None:
    """The family of a recipe's models; None for a recipe that trains none."""
    shapes = (model(name) for name in recipe.models)
    return next((shape.family for shape in shapes if shape is not None), None)


def names_of_family(family_name: str) -> tuple[str, ...]:
    """Models of the catalogue that a recipe of the family can train, sorted."""
    rows = catalog.models().models
    return tuple(sorted(name for name, row in rows.items() if row.family == family_name))
