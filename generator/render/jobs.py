"""`jobs/<job>/`: the recipe's scripts, settings, NCCL variables and figures of the VM size, one batch file per step.

What the scripts share is in `jobs/lib/<digest>/`: a later one, copied beside it, changes nothing for jobs that run.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import TypeVar

from ..files import assets
from ..files.file import File, Files, text
from ..plan.deployment import Plan
from ..plan.job_steps import StepPlan
from ..plan.jobs import JobPlan
from ..plan.nccl_baselines import BaselinePlan
from ..projects.tree import is_dropping

JOBS = PurePosixPath("jobs")
_COMMON = "common.sh"
_SOURCED = re.compile(rb'\. "\$\{JOBS_LIB\}/([a-z-]+\.sh)"')
_DIGEST_DIGITS = 16
_NOT_COPIED = frozenset({"recipe.json"})
_BASELINES: dict[str, Callable[[BaselinePlan], object]] = {
    "kind": lambda row: row.kind,
    "collectives": lambda row: ",".join(row.collectives),
    "nodes": lambda row: f"{row.nodes}{'+' if row.or_more else ''}",
    "message": lambda row: f"{row.message_size}{'+' if row.or_larger else ''}",
    "metric": lambda row: row.metric,
    "algorithms": lambda row: ",".join(row.algorithms) or "any",
    "fabric": lambda row: row.fabric or "any",
    "expected": lambda row: row.expected,
    "warn": lambda row: row.warn,
    "fail": lambda row: row.fail,
    "formula": lambda row: row.formula,
    "source": lambda row: row.source,
}
_Row = TypeVar("_Row")


def render(plan: Plan) -> Files:
    scripts = {job.name: _static_files(assets.folder("recipes") / job.recipe) for job in plan.jobs}
    library = _library(file.content for static in scripts.values() for file in static.values())
    digest = _digest(library)
    files = {JOBS / "lib" / digest / name: File(content) for name, content in library.items()}
    for job in plan.jobs:
        for path, file in (scripts[job.name] | _planned_files(job, digest)).items():
            files[JOBS / job.name / path] = file
    return files


def _planned_files(job: JobPlan, digest: str) -> Files:
    finder = (assets.folder("recipes") / "lib/library.sh").read_bytes()
    files = {PurePosixPath("library.sh"): File(finder), PurePosixPath("library.digest"): text(digest)}
    files[PurePosixPath("settings.env")] = text(_environment_file(job.settings))
    files[PurePosixPath("nccl.env")] = text(_environment_file(job.nccl))
    if job.sharp:
        files[PurePosixPath("sharp.env")] = text(_environment_file(job.sharp))
    if job.baselines is not None:
        files[PurePosixPath("baselines.tsv")] = text(table(_BASELINES, job.baselines))
    for each in job.tables:
        columns = {name: itemgetter(place) for place, name in enumerate(each.columns)}
        files[PurePosixPath(each.file)] = text(table(columns, each.rows))
    for step in job.steps:
        files[PurePosixPath(step.file)] = text(_batch_script(job, step), executable=True)
    return files


def _static_files(folder: Path) -> Files:
    files: Files = {}
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        # Installers compile what is Python.
        if not path.is_file() or path.name in _NOT_COPIED or any(map(is_dropping, inside.parts)):
            continue
        content = path.read_bytes()
        # Modes of a checkout are not reliable everywhere: what starts with an interpreter line is a program.
        files[PurePosixPath(inside.as_posix())] = File(content, content.startswith(b"#!"))
    return files


def _library(scripts: Iterable[bytes]) -> dict[str, bytes]:
    """The library files that these scripts source, and those that they source themselves."""
    found: dict[str, bytes] = {}
    left = [script for script in scripts if b". ./library.sh" in script]
    names = {_COMMON} if left else set()
    while left:
        names |= {name.decode() for name in _SOURCED.findall(left.pop())}
        for name in names - found.keys():
            found[name] = (assets.folder("recipes") / "lib" / name).read_bytes()
            left.append(found[name])
    return dict(sorted(found.items()))


def _digest(library: dict[str, bytes]) -> str:
    lines = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in library.items())
    return hashlib.sha256(lines.encode()).hexdigest()[:_DIGEST_DIGITS]


def _environment_file(settings: tuple[tuple[str, str], ...]) -> str:
    """`NAME=value` lines, quoted for the shell."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings) or "# none\n"


def table(columns: Mapping[str, Callable[[_Row], object]], rows: Iterable[_Row]) -> str:
    """A line with the names of the columns, then the rows, tab separated.

    `-` stands where there is nothing, because a shell skips empty fields.
    """
    values = ([column(row) for column in columns.values()] for row in rows)
    lines = [[f"#{next(iter(columns))}", *list(columns)[1:]]]
    lines += [["-" if value in (None, "") else str(value) for value in line] for line in values]
    return "".join("\t".join(line) + "\n" for line in lines)


def sbatch_lines(options: tuple[tuple[str, str | int | bool], ...]) -> list[str]:
    """`#SBATCH` lines; true is an option without a value."""
    return [f"#SBATCH --{name}" if value is True else f"#SBATCH --{name}={value}" for name, value in options]


def _batch_script(job: JobPlan, step: StepPlan) -> str:
    return "\n".join(
        [
            "#!/usr/bin/env bash",
            *sbatch_lines(step.options),
            f"# {job.title}: {step.title}. Submit it from this folder.",
            "set -euo pipefail",
            'cd -- "${SLURM_SUBMIT_DIR:?submit this file with sbatch}"',
            *(f"export SET_{name}={shlex.quote(value)}" for name, value in step.settings),
            "unset JOBS_LIB  # that of the job which submitted this one",
            f"exec ./{step.script}",
            "",
        ]
    )
