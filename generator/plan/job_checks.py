"""Steps that train a smaller model first, with the image, source, tokenizer and data of the job, so that the large run
does not find out on all its nodes what two of them could have told."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..recipes import Recipe, Step, models
from .job_settings import SETTINGS_OF_A_MODEL, Place, job_settings
from .job_steps import batch_file, step_plan
from .storage import FileSystems
from .types import NodeArrayPlan, StepPlan

_OF_THE_JOB = SETTINGS_OF_A_MODEL | {"EXTRA_ARGUMENTS"}
"""What the definition gives for the job's own model; arguments of the framework may hold for its layout alone."""


def step_plans(
    job: str,
    recipe: Recipe,
    place: Place,
    arrays: tuple[NodeArrayPlan, ...],
    given: Mapping[str, str],
    settings: Mapping[str, str],
    shape: models.Model | None,
    shared: FileSystems,
) -> Iterator[StepPlan]:
    """Every batch file of the job; `settings` are its final ones, `given` those of the definition."""
    for step in recipe.steps:
        if step.model is None:
            yield step_plan(job, step, place, arrays, settings)
        elif shape is not None and (tried := models.model(step.model)) and tried.parameters < shape.parameters:
            few = replace(place, nodes=min(step.nodes or place.nodes, place.array.max_nodes))
            kept = {name: value for name, value in given.items() if name not in _OF_THE_JOB}
            own = job_settings(job, recipe, few, kept | dict(step.settings), tried, shared)
            yield step_plan(job, replace(step, nodes=few.nodes), few, arrays, own, _difference(step, own, settings))


def _difference(step: Step, own: Mapping[str, str], settings: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    found = {name: value for name, value in own.items() if settings.get(name) != value}
    return tuple(sorted((found | {"BATCH_FILE": batch_file(step)}).items()))
