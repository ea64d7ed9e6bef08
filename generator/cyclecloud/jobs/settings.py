"""Settings of one run of a job: what `--set` says, held against what the recipe knows, in `settings.env`."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping

from ...errors import CannotRead
from ...plan.job_settings import known_settings
from ...plan.jobs import JobPlan
from ...recipes import recipe
from ...words.suggestions import suggestion

NODES = "NODES"
"""Also an option of sbatch."""
_DECIDED = {"JOB", "PARTITION", "RECIPE", "RUNS_DIR", "VM_SIZE"}
"""What follows from the definition: the batch file would ask Slurm for one thing, and settings.env contain another."""
_OF_LONG_RUNS = ("RUN_NAME",)
_NUMBER = re.compile(r"-?[0-9]+([.][0-9]+)?([eE][-+]?[0-9]+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_LINE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=")
_FEW = 12


def given(words: Iterable[str]) -> dict[str, str]:
    """`K=V` words. Raises CannotRead."""
    settings: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise CannotRead(f"--set takes NAME=VALUE, not '{word}'", "for example --set NODES=2")
        if not all(sign.isprintable() or sign == "\t" for sign in value):
            raise CannotRead(f"--set {name}: the value has a line break or control character")
        if settings.get(name, value) != value:
            raise CannotRead(f"--set {name} is given twice, with different values")
        settings[name] = value
    return settings


def check(job: JobPlan, settings: Mapping[str, str], max_nodes: int | None) -> None:
    """Raises CannotRead for a name that the recipe does not know, and for a value that it cannot mean."""
    source = recipe(job.recipe)
    have = dict(job.settings)
    long_run = source is not None and source.steps[-1].restarts
    known = {*have, *(known_settings(source) if source else ()), *(_OF_LONG_RUNS if long_run else ())} - _DECIDED
    for name, value in settings.items():
        if name in _DECIDED:
            raise CannotRead(f"--set {name}: that follows from the definition", "change it there, and build again")
        if name not in known:
            raise CannotRead(f"job '{job.name}' has no setting '{name}'", _hint(name, known))
        if _NUMBER.fullmatch(have.get(name, "")) and not _NUMBER.fullmatch(value):
            raise CannotRead(f"--set {name} takes a number, not '{value}'", f"it is {have[name]} in this deployment")
    if NODES in settings:
        _check_nodes(job, settings[NODES], max_nodes)


def _hint(name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    return suggestion(name, names) or f"settings: {', '.join(names[:_FEW])}{', …' if len(names) > _FEW else ''}"


def _check_nodes(job: JobPlan, text: str, max_nodes: int | None) -> None:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise CannotRead(f"--set NODES takes a number of nodes, not '{text}'")
    if max_nodes is not None and int(text) > max_nodes:
        raise CannotRead(f"--set NODES={text}: partition '{job.partition}' has up to {max_nodes}")
    source = recipe(job.recipe)
    least = source.min_nodes if source is not None else 1
    if int(text) < least:
        raise CannotRead(f"--set NODES={text}: the job needs at least {least}")


def node_options(job: JobPlan, settings: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """By batch file: what sbatch gets because the run has another number of nodes."""
    source = recipe(job.recipe)
    if NODES not in settings or source is None:
        return {}
    spare = settings.get("SPARE_NODES", dict(job.settings).get("SPARE_NODES", ""))
    options: dict[str, tuple[str, ...]] = {}
    for step in source.steps:
        if step.nodes is None and step.partition == "job" and step.model is None:
            nodes = int(settings[NODES]) + (int(spare) if step.restarts and spare.isdigit() else 0)
            file = "job.sbatch" if step is source.steps[-1] else f"{step.stem}.sbatch"
            options[file] = (f"--nodes={nodes}",)
    return options


def changed(text: str, settings: Mapping[str, str]) -> str:
    """`settings.env` with these values; a name that it did not have comes last."""
    left = dict(settings)
    lines = []
    for line in text.splitlines():
        found = _LINE.match(line)
        if found and found[1] in settings:
            left.pop(found[1], None)
            lines.append(f"{found[1]}={shlex.quote(settings[found[1]])}")
        else:
            lines.append(line)
    lines += [f"{name}={shlex.quote(value)}" for name, value in sorted(left.items())]
    return "".join(f"{line}\n" for line in lines)
