"""`jobs/<job>/`: the recipe's scripts, settings and NCCL variables of the VM size, and one batch file per step."""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath

from ..files import assets
from ..files.file import File, Files, text
from ..plan.types import JobPlan, NodeArrayPlan, Plan
from ..recipes import Recipe, Step, recipe
from ..recipes.settings import job_settings, nccl_variables

_LIBRARY = re.compile(rb"^\. \./lib/([a-z-]+\.sh)$", re.MULTILINE)
_NOT_COPIED = frozenset({"recipe.json"})


def render(plan: Plan) -> Files:
    """Every job folder of the plan."""
    files: Files = {}
    for job in plan.jobs:
        folder = PurePosixPath("jobs") / job.name
        for path, file in _job_files(plan, job).items():
            files[folder / path] = file
    return files


def _job_files(plan: Plan, job: JobPlan) -> Files:
    source = recipe(job.recipe)
    if source is None:
        raise LookupError(f"job {job.name} names the recipe {job.recipe}, which does not exist")
    array = next(array for array in plan.slurm.node_arrays if array.name == job.node_array)
    files = _static_files(assets.folder("recipes") / source.name)
    files[PurePosixPath("settings.env")] = text(_environment_file(job_settings(plan, job, array, source)))
    files[PurePosixPath("nccl.env")] = text(_environment_file(nccl_variables(array.hardware)))
    for step in source.steps:
        files[PurePosixPath(batch_file(step))] = text(_batch_script(plan, job, array, source, step), executable=True)
    return files


def _static_files(folder: Path) -> Files:
    """The recipe's files as they stand, and the library files that its scripts read."""
    files: Files = {}
    libraries: set[str] = set()
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or path.name in _NOT_COPIED:
            continue
        content = path.read_bytes()
        # Modes of a checkout are not reliable everywhere: what starts with an interpreter line is a program.
        files[PurePosixPath(path.relative_to(folder).as_posix())] = File(content, content.startswith(b"#!"))
        libraries |= {name.decode() for name in _LIBRARY.findall(content)}
    for name in sorted(libraries):
        files[PurePosixPath("lib") / name] = File((folder.parent / "lib" / name).read_bytes())
    return files


def _environment_file(settings: dict[str, str]) -> str:
    """Sorted `NAME=value` lines, quoted for the shell."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in sorted(settings.items())) or "# none\n"


# ---------------------------------------------------------------- batch files


def batch_file(step: Step) -> str:
    """Name of the file that is given to sbatch; the job itself is `job.sbatch`."""
    return "job.sbatch" if step.script == "run.sh" else step.script.removesuffix(".sh") + ".sbatch"


def step_array(plan: Plan, array: NodeArrayPlan, step: Step) -> NodeArrayPlan:
    """The node array of a step: the job's own, or the first without GPUs for work that needs none."""
    if step.partition == "cpu":
        return next((other for other in plan.slurm.node_arrays if other.hardware.gpu_count == 0), array)
    return array


def sbatch_lines(options: dict[str, str | int | bool | None]) -> list[str]:
    """`#SBATCH` lines; None and False are left out, True is an option without a value."""
    lines = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        lines.append(f"#SBATCH --{name}" if value is True else f"#SBATCH --{name}={value}")
    return lines


def _batch_script(plan: Plan, job: JobPlan, array: NodeArrayPlan, source: Recipe, step: Step) -> str:
    place = step_array(plan, array, step)
    nodes = step.nodes or (job.nodes if place is array else place.max_nodes)
    hardware = place.hardware
    gpus = hardware.gpu_count if step.gpus and hardware.gpu_count else None
    tasks = step.tasks_per_node or (hardware.tasks_per_node or hardware.gpu_count or 1)
    is_job = step.script == "run.sh"
    cpus = None
    if step.exclusive and hardware.vcpus is not None:
        cpus = hardware.cpus_per_task if gpus and tasks > 1 and hardware.cpus_per_task else hardware.vcpus // tasks
    options: dict[str, str | int | bool | None] = {
        "job-name": job.name if is_job else f"{job.name}-{step.script.removesuffix('.sh')}",
        "partition": place.partition,
        "nodes": nodes,
        "ntasks-per-node": tasks,
        "cpus-per-task": cpus,
        "gpus-per-node": gpus,
        "exclusive": step.exclusive,
        "mem": 0 if step.exclusive else None,
        "time": step.time_limit,
        "wait-all-nodes": 1 if nodes > 1 else None,
        "output": "%x_%j.out",
    }
    return "\n".join(
        [
            "#!/usr/bin/env bash",
            *sbatch_lines(options),
            f"# {source.title}: {step.title}. Submit it from this folder.",
            "set -euo pipefail",
            'cd -- "${SLURM_SUBMIT_DIR:?submit this file with sbatch}"',
            f"exec ./{step.script}",
            "",
        ]
    )
