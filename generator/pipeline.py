"""The way from text to files: source → model → rules → plan → render.

Pure but for reading local project folders and the store of fetched blobs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from .definition.text.source import Source, load
from .problems.problem import Problem, fails, silence
from .problems.sorting import sort_problems

if TYPE_CHECKING:
    from .definition.model.definition import Definition
    from .files.file import Files
    from .plan.deployment import Plan
    from .rules.base import Site

KeyPath = tuple[str | int, ...]
_SECRET_NAME = re.compile(r"PASSWORD|PASSWD|SECRET|TOKEN|PRIVATE_KEY|CONNECTION_STRING", re.IGNORECASE)


class Checked(Struct, frozen=True):
    """A definition with its problems; `plan` is None when an error stops it."""

    source: Source
    problems: tuple[Problem, ...]
    plan: Plan | None


def check(text: bytes, filename: str, env: Mapping[str, str], folder: Path) -> Checked:
    """Read and check one definition; `folder` is where it is, for the local projects that it names."""
    source = load(text, filename, env)
    if source.data is None:
        return Checked(source, sort_problems(source.problems, source), None)
    return check_source(source, env, folder)


def check_source(source: Source, env: Mapping[str, str], folder: Path) -> Checked:
    """The same, of what was read already, or of other data in its place."""
    from .definition.read import read_model

    reading = read_model(source.data, source.written, source.from_one_variable)
    problems = [*source.problems, *(each for each in reading.problems if not source.is_doubtful(each.path))]
    plan = None
    if reading.definition is not None:
        site = site_of(reading.definition, source, folder, secret_values(env))
        found, plan = _judge(site, source, folder, problems, reading.replaced)
        problems += found
    return Checked(source, sort_problems(problems, source), plan)


def check_together(found: Sequence[Checked]) -> list[Checked]:
    """Definitions of one run, with what rules say of two of them beside each other.

    A rule that either of the two silences says nothing of them.
    """
    if sum(each.plan is not None for each in found) < 2:
        return list(found)
    from . import rules
    from .rules.base import Together

    beside = [None if each.plan is None else Together(each.source.filename, each.plan) for each in found]
    judged = []
    for checked, this in zip(found, beside, strict=True):
        problems: list[Problem] = []
        for other in beside:
            if this is not None and other is not None and other is not this:
                silenced = (*this.plan.silenced, *other.plan.silenced)
                problems += silence(rules.check_together(this, other), silenced)
        if problems:
            kept = sort_problems([*checked.problems, *problems], checked.source)
            checked = replace(checked, problems=kept, plan=None if fails(problems) else checked.plan)
        judged.append(checked)
    return judged


def _judge(
    site: Site, source: Source, folder: Path, before: Sequence[Problem], replaced: tuple[KeyPath, ...]
) -> tuple[list[Problem], Plan | None]:
    """What the rules find, and the plan when nothing stops it; `before` is what is known already."""
    from . import rules

    definition = site.definition
    repaired = _Repaired(replaced)
    found = [problem for problem in rules.check_definition(site) if not repaired.touches(problem.path)]
    silenced = [(entry.rule, entry.reason) for entry in definition.silence]
    plan = None
    if not fails([*before, *silence(found, silenced)]):
        plan = plan_of(definition, source, folder)
        found += rules.check_plan(plan)
        if plan.server is not None and _may_be_too_large(plan):
            found += _size_problems(site, plan, folder)
        found += rules.check_findings(site, found)
    left = list(silence(found, silenced))
    return left, None if fails(left) else plan


def _may_be_too_large(plan: Plan) -> bool:
    """Whether more travels than what CycleForge brings, which takes less than a quarter of the room.

    Rendering only to measure costs as much as the build, so a few small blobs do not ask for it.
    """
    from .rules.budgets import job_budget_bytes

    blobs = sum(blob.size_bytes for project in plan.projects for blob in project.blobs if blob.state == "present")
    return any(project.is_local for project in plan.projects) or blobs > job_budget_bytes() * 3 // 4


def _size_problems(site: Site, plan: Plan, folder: Path) -> Iterable[Problem]:
    """Whether the content fits the deployment; only local projects and blobs can make it too large."""
    from . import rules
    from .rules.base import Rendered

    return rules.check_files(Rendered(site, render(plan, folder)))


def site_of(definition: Definition, source: Source, folder: Path, secrets: tuple[str, ...] = ()) -> Site:
    """What the rules look at; `secrets` are values that must not be in the definition."""
    from .definition.certificate import certificate_of
    from .plan.network import layout_of
    from .projects.local import local_projects
    from .rules.base import Site

    local, certificate = local_projects(definition, folder), certificate_of(definition, folder)
    return Site(definition, source.data, layout_of(definition), local, secrets, certificate)


def secret_values(env: Mapping[str, str]) -> tuple[str, ...]:
    """Values of the environment variables that hold a secret by their name."""
    return tuple(value for name, value in sorted(env.items()) if _SECRET_NAME.search(name) and value)


def plan_of(definition: Definition, source: Source, folder: Path) -> Plan:
    """The plan of a definition without errors."""
    from .definition.certificate import certificate_of
    from .plan.planner import make_plan
    from .projects.local import available_projects

    variables = [(variable.name, variable.default) for variable in source.variables]
    # What came by a pipe has no name that a user could go back to.
    filename = f"{definition.name}.yaml" if source.filename == "<stdin>" else Path(source.filename).name
    certificate = certificate_of(definition, folder)
    text = certificate.text if certificate else None
    return make_plan(definition, filename, variables, available_projects(definition, folder), text)


def effective(plan: Plan) -> dict[str, Any]:
    """The plan as plain data."""
    from .plan.effective import effective as plain

    return plain(plan)


def render(plan: Plan, folder: Path) -> Files:
    """The whole deployment folder, including its manifest; nothing is written."""
    from .render.deployment import deployment_files

    return deployment_files(plan, folder)


class _Repaired:
    """The values that a repair put there."""

    def __init__(self, paths: Iterable[KeyPath]) -> None:
        self._paths = frozenset(paths)
        self._above = frozenset(path[:length] for path in self._paths for length in range(len(path)))

    def touches(self, path: KeyPath) -> bool:
        """Whether a finding at this path is about one of them, or about something that contains one."""
        return path in self._above or any(path[:length] in self._paths for length in range(len(path) + 1))
