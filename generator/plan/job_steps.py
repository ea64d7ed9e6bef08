"""The batch files of a job: options of sbatch, and the command lines that submit them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..recipes import Recipe, Step, models
from ..words.slurm_time import whole_minutes
from .job_settings import SETTINGS_OF_A_MODEL, Place, job_settings, whole
from .nodes import NodeArrayPlan
from .storage import FileSystems

_LONGEST_NOTICE_S = 65535
"""Source: man sbatch, --signal."""
_JOB = "run"
"""The last step of a recipe, which is the job itself."""


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


class StepPlan(Struct, frozen=True):
    """One batch job of a job folder: a file for sbatch that runs one of the recipe's scripts."""

    script: str
    file: str
    title: str
    options: tuple[tuple[str, str | int | bool], ...]
    """Options of sbatch in the order in which the file has them; true is an option without a value."""
    settings: tuple[tuple[str, str], ...]
    """What the step has instead of the lines of `settings.env`, sorted."""

    @property
    def nodes(self) -> int:
        return int(dict(self.options)["nodes"])

    @property
    def minutes(self) -> int:
        """Return its time limit, rounded up."""
        return whole_minutes(str(dict(self.options)["time"]))

    def place(self, arrays: Iterable[NodeArrayPlan]) -> NodeArrayPlan:
        """Return the partition that it runs on, with the one VM size that it asks for."""
        options = dict(self.options)
        wanted = options["partition"], options.get("constraint")
        sizes = (each for array in arrays for each in array.of_each_size)
        return next(each for each in sizes if (each.partition, each.constraint) == wanted)


def step_plan(
    job: str,
    step: Step,
    place: Place,
    arrays: tuple[NodeArrayPlan, ...],
    settings: Mapping[str, str],
    own: tuple[tuple[str, str], ...] = (),
) -> StepPlan:
    """One batch file; `job.sbatch` is the job itself. `own`: those of the `settings` that this step alone has."""
    array = _array_of(step, place, arrays)
    nodes = step.nodes or (place.nodes if array is place.array else array.max_nodes)
    spare = (whole(settings.get("SPARE_NODES")) or 0) if step.restarts else 0
    tasks, cpus, gpus = _per_node(step, place, array)
    options: dict[str, str | int | bool | None] = {
        "job-name": job if step.stem == _JOB else f"{job}-{step.stem}",
        "partition": array.partition,
        "constraint": array.constraint,
        "nodes": nodes + spare,
        "ntasks-per-node": tasks,
        "cpus-per-task": cpus if step.exclusive else None,
        "gpus-per-node": gpus,
        "exclusive": step.exclusive,
        "mem": 0 if step.exclusive else None,
        "time": step.time_limit,
        "wait-all-nodes": 1 if nodes > 1 else None,
        "output": "%x_%j.out",
        **(_restart_options(settings, spare) if step.restarts else {}),
    }
    return StepPlan(
        script=step.script,
        file=batch_file(step),
        title=step.title,
        options=tuple((name, value) for name, value in options.items() if value is not None and value is not False),
        settings=own,
    )


def batch_file(step: Step) -> str:
    """Its name in the job's folder."""
    return "job.sbatch" if step.stem == _JOB else f"{step.stem}.sbatch"


def _restart_options(settings: Mapping[str, str], spare: int) -> dict[str, str | int | bool | None]:
    """A long run: Slurm puts it back into the queue when it takes it a node, and signals before the time limit.

    The framework ends by its own clock first, STOP_BEFORE_END_S before the limit; the signal comes when half of that
    has passed, up to 60 s early. With spare nodes the loss of one does not end the job. Source: man sbatch, --signal,
    --requeue, --open-mode, --no-kill.
    """
    before = whole(settings.get("STOP_BEFORE_END_S")) or 0
    return {
        "requeue": True,
        "open-mode": "append",
        "signal": f"B:USR1@{min(max(before // 2, 1), _LONGEST_NOTICE_S)}",
        "no-kill": spare > 0,
    }


def shared_folders(kind: str, stage_path: str) -> tuple[str, ...]:
    """Folders that all users of a training job share, as they share /tmp: each adds files and removes only his own."""
    return tuple(f"{stage_path}{below}" for below in ("", "/data", "/images", "/runs")) if kind == "training" else ()


def installed(folders: tuple[str, ...]) -> str:
    return f"install -d -m 1777 {shlex.join(folders)}"


def submission(job: str, kind: str, steps: tuple[StepPlan, ...], shared: tuple[str, ...]) -> tuple[str, ...]:
    """Shell lines that submit a job, each step after the one before; a validation job ends with its verdict."""
    folder = f"~/jobs/{shlex.quote(job)}"
    before, after = [], ""
    for step in steps[:-1]:
        variable = step.file.removesuffix(".sbatch").lstrip("0123456789-").replace("-", "_")
        before.append(f"{variable}=$(sbatch --parsable {after}{step.file})")
        after = f'--dependency=afterok:"${{{variable}}}" '
    last = f"{after}{steps[-1].file}"
    if kind == "validation":
        wait = f'sbatch --wait {last}; echo "exit status $?"'
        return (f"cd {folder}", *before, wait) if before else (f"cd {folder} && {wait}",)
    return (f"sudo {installed(shared)}", f"cd {folder}", *before, f"sbatch {last}")


def _array_of(step: Step, place: Place, arrays: tuple[NodeArrayPlan, ...]) -> NodeArrayPlan:
    """The job's own node array, or the first without GPUs for work that needs none."""
    if step.partition == "cpu":
        sizes = (each for array in arrays for each in array.of_each_size)
        return next((other for other in sizes if other.hardware.gpu_count == 0), place.array)
    return place.array


def _per_node(step: Step, place: Place, array: NodeArrayPlan) -> tuple[int, int | None, int | None]:
    """Tasks of a node, CPUs of a task, GPUs of a node."""
    size = array.hardware
    own = array is place.array
    gpus = (place.gpus_per_node if own else size.gpu_count) if step.gpus else 0
    tasks = step.tasks_per_node or (place.tasks_per_node if own else size.tasks_per_node or size.gpu_count or 1)
    cpus = size.vcpus // tasks if size.vcpus is not None else None
    if own and gpus and tasks > 1 and tasks == place.tasks_per_node:
        cpus = place.cpus_per_task or cpus
    return tasks, cpus, gpus or None
