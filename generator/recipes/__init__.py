"""What the recipes offer: kind, needs, default settings and steps, read from `recipes/<name>/recipe.json`."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Literal

from msgspec import Struct

from ..files import assets
from .versions import pin

Kind = Literal["validation", "training"]
Figures = Literal[
    "latency", "links", "mounts", "nccl", "node-health", "node-performance", "pairs", "ports", "throughput"
]


class Step(Struct, frozen=True):
    """One batch job of a recipe; `<script>` becomes `<script without .sh>.sbatch`, or `<name>.sbatch`."""

    script: str
    title: str
    partition: Literal["job", "cpu"]
    """`job`: the job's own partition; `cpu`: one without GPUs where the cluster has one."""
    nodes: int | None
    """None: as many as the job has."""
    tasks_per_node: int | None
    """None: one task per GPU, or one on nodes without GPUs."""
    gpus: bool
    exclusive: bool
    time_limit: str
    """HH:MM:SS or D-HH:MM:SS."""
    restarts: bool = False
    """True: a long run, which Slurm may requeue and tells before its time limit (`lib/long-runs.sh`)."""
    name: str | None = None
    """Of the batch file, without its suffix; None: that of the script, which no other step runs."""
    model: str | None = None
    """A smaller model that this step trains, to try everything; left out where the job's own is no larger."""
    settings: tuple[tuple[str, str], ...] = ()
    stage: str | None = None
    """The stage of the data that it writes, and that stays; None: it writes no data."""
    """Sorted; what the step has instead of the job's."""

    @property
    def stem(self) -> str:
        """Name of the step's batch file, without its suffix."""
        return self.name or self.script.removesuffix(".sh")


class Recipe(Struct, frozen=True, kw_only=True):
    name: str
    kind: Kind
    trains: bool = False
    """True: a validation recipe that a definition may also list among its training jobs."""
    title: str
    needs_gpu: bool
    gpu_vendors: tuple[str, ...]
    architectures: tuple[str, ...]
    every_partition: bool = False
    """True: written for every partition that fits, also without GPUs; else one without need of GPUs is written once."""
    needs_infiniband: bool = False
    """True: for nodes that InfiniBand connects, with GPUs or without, and written for all of them."""
    needs_no_gpu: bool = False
    """True: not for nodes with GPUs, whose ports other jobs test."""
    containers: bool
    """True: needs pyxis and enroot."""
    min_nodes: int
    default_nodes: int
    models: tuple[str, ...]
    """Keys of the model catalogue, smallest first; empty for recipes without a model."""
    default_model: str | None
    figures: tuple[Figures, ...] = ()
    """Published figures of the VM size that the job judges by; they become settings."""
    default_settings: tuple[tuple[str, str], ...]
    """Sorted, with the versions that the catalogue pins; a job may override each."""
    steps: tuple[Step, ...]
    """In the order in which they are submitted; the last one is the job itself."""
    sources: tuple[str, ...]
    """Keys of the catalogue's sources for images, commits, data sets and procedure."""

    @property
    def uses_gpus(self) -> bool:
        """Whether a step asks Slurm for GPUs."""
        return any(step.gpus for step in self.steps)


@cache
def recipe_names(kind: Kind | None = None) -> tuple[str, ...]:
    """Names of all recipes, or of one kind, sorted."""
    names = sorted(path.parent.name for path in assets.folder("recipes").glob("*/recipe.json"))
    return tuple(name for name in names if kind is None or _read(name).kind == kind)


def recipe(name: str) -> Recipe | None:
    """One recipe, or None when no folder of that name holds one."""
    return _read(name) if name in recipe_names() else None


@cache
def _read(name: str) -> Recipe:
    text = (assets.folder("recipes") / name / "recipe.json").read_text(encoding="utf-8")
    raw: dict[str, Any] = json.loads(text)
    pins = {setting: pin(place) for setting, place in raw.pop("pins", {}).items()}
    settings = raw.pop("settings") | pins
    steps = [Step(**step | {"settings": tuple(sorted(step.get("settings", {}).items()))}) for step in raw.pop("steps")]
    sources = tuple(raw.pop("source"))
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in raw.items()}
    return Recipe(
        name=name,
        default_settings=tuple(sorted(settings.items())),
        steps=tuple(steps),
        sources=sources,
        **values,
    )
