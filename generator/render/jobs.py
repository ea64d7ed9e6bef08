"""`jobs/<job>/`: the recipe's scripts, settings, NCCL variables and figures of the VM size, one batch file per step."""

from __future__ import annotations

import re
import shlex
from pathlib import Path, PurePosixPath

from ..files import assets
from ..files.file import File, Files, text
from ..plan.types import BaselinePlan, JobPlan, Plan, StepPlan, TablePlan
from ..projects.tree import is_dropping

_LIBRARY = re.compile(rb"^\. \./lib/([a-z-]+\.sh)$", re.MULTILINE)
_NOT_COPIED = frozenset({"recipe.json"})
_BASELINE_COLUMNS = (
    "#kind",
    "collectives",
    "nodes",
    "message",
    "metric",
    "algorithms",
    "fabric",
    "expected",
    "warn",
    "fail",
    "formula",
    "source",
)


def render(plan: Plan) -> Files:
    """Every job folder of the plan."""
    files: Files = {}
    for job in plan.jobs:
        folder = PurePosixPath("jobs") / job.name
        for path, file in _job_files(job).items():
            files[folder / path] = file
    return files


def _job_files(job: JobPlan) -> Files:
    files = _static_files(assets.folder("recipes") / job.recipe)
    files[PurePosixPath("settings.env")] = text(_environment_file(job.settings))
    files[PurePosixPath("nccl.env")] = text(_environment_file(job.nccl))
    if job.sharp:
        files[PurePosixPath("sharp.env")] = text(_environment_file(job.sharp))
    if job.baselines is not None:
        files[PurePosixPath("baselines.tsv")] = text(_baseline_table(job.baselines))
    for table in job.tables:
        files[PurePosixPath(table.file)] = text(_table(table))
    for step in job.steps:
        files[PurePosixPath(step.file)] = text(_batch_script(job, step), executable=True)
    return files


def _static_files(folder: Path) -> Files:
    """The recipe's files as they stand, and the library files that its scripts read."""
    files: Files = {}
    libraries: set[str] = set()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        # Installers compile what is Python.
        if not path.is_file() or path.name in _NOT_COPIED or any(map(is_dropping, inside.parts)):
            continue
        content = path.read_bytes()
        # Modes of a checkout are not reliable everywhere: what starts with an interpreter line is a program.
        files[PurePosixPath(inside.as_posix())] = File(content, content.startswith(b"#!"))
        libraries |= {name.decode() for name in _LIBRARY.findall(content)}
    for name in sorted(_with_their_own(libraries, folder.parent / "lib")):
        files[PurePosixPath("lib") / name] = File((folder.parent / "lib" / name).read_bytes())
    return files


def _with_their_own(libraries: set[str], folder: Path) -> set[str]:
    """The library files, and those that they read themselves."""
    known: set[str] = set()
    while new := libraries - known:
        known |= new
        found = (_LIBRARY.findall((folder / name).read_bytes()) for name in new)
        libraries = libraries | {name.decode() for names in found for name in names}
    return known


def _environment_file(settings: tuple[tuple[str, str], ...]) -> str:
    """`NAME=value` lines, quoted for the shell."""
    return "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings) or "# none\n"


def _table(table: TablePlan) -> str:
    """A line with the names of the columns, then the rows, tab separated."""
    lines = [("#" + table.columns[0], *table.columns[1:]), *table.rows]
    return "".join("\t".join(line) + "\n" for line in lines)


def _baseline_table(rows: tuple[BaselinePlan, ...]) -> str:
    """One line per figure, tab separated; `-` where a figure says nothing, because a shell skips empty fields."""
    lines = [_BASELINE_COLUMNS, *(_baseline_columns(row) for row in rows)]
    return "".join("\t".join(line) + "\n" for line in lines)


def _baseline_columns(row: BaselinePlan) -> tuple[str, ...]:
    def given(value: float | str | None) -> str:
        return "-" if value is None else str(value)

    return (
        row.kind,
        ",".join(row.collectives),
        f"{row.nodes}{'+' if row.or_more else ''}",
        f"{row.message_size}{'+' if row.or_larger else ''}",
        row.metric,
        ",".join(row.algorithms) or "any",
        row.fabric or "any",
        given(row.expected),
        given(row.warn),
        given(row.fail),
        given(row.formula),
        row.source,
    )


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
            f"exec ./{step.script}",
            "",
        ]
    )
