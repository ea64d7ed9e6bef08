"""`jobs/<job>/`: the recipe's scripts, settings, NCCL variables and figures of the VM size, one batch file per step.

What the scripts share is in `jobs/lib/<digest>/`: a later one, copied beside it, changes nothing for jobs that run.
"""

from __future__ import annotations

import hashlib
import re
import shlex
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from ..files import assets
from ..files.file import File, Files, text
from ..plan.deployment import Plan
from ..plan.job_steps import StepPlan
from ..plan.jobs import JobPlan
from ..plan.nccl_baselines import BaselinePlan
from ..plan.node_benchmarks import TablePlan
from ..projects.tree import is_dropping

JOBS = PurePosixPath("jobs")
_COMMON = "common.sh"
_SOURCED = re.compile(rb'\. "\$\{JOBS_LIB\}/([a-z-]+\.sh)"')
_DIGEST_DIGITS = 16
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
        files[PurePosixPath("baselines.tsv")] = text(_baseline_table(job.baselines))
    for table in job.tables:
        files[PurePosixPath(table.file)] = text(_table(table))
    for step in job.steps:
        files[PurePosixPath(step.file)] = text(_batch_script(job, step), executable=True)
    return files


def _static_files(folder: Path) -> Files:
    """The recipe's files as they stand."""
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
            "unset JOBS_LIB  # that of the job which submitted this one",
            f"exec ./{step.script}",
            "",
        ]
    )
