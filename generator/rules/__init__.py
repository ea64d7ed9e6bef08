"""The rules: one class per check, one module per subject. Modules are imported when the first rule is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, TypeVar

from ..problems.problem import Problem
from ..problems.rule import STAGES, Rule, instances, registered

if TYPE_CHECKING:
    from ..plan.deployment import Plan
    from .base import Rendered, Site, Together

_ELSEWHERE = ("..definition.text.rules", "..definition.model_problems", "..cctemplate.rules")
"""Modules of the rules whose problems the readers of definitions and of cluster templates find."""
_Kind = TypeVar("_Kind", bound=Rule)


@cache
def _import_own() -> None:
    """Import every module of this package, so that its rules are registered."""
    for module in iter_modules(__path__):
        import_module(f".{module.name}", __name__)


@cache
def rules(kind: type[_Kind]) -> tuple[_Kind, ...]:
    """The rules below the class of a stage (`DefinitionRule`, …), by number, which is the order in which they run."""
    _import_own()
    return instances(kind)


@cache
def all_rules() -> tuple[type[Rule], ...]:
    """Every rule by number; the checks of preflight, which `generator.azure` has, come after them."""
    _import_own()
    for module in _ELSEWHERE:
        import_module(module, __name__)
    return registered([stage for stage in STAGES if stage != "azure"])


@cache
def rule_ids() -> frozenset[str]:
    return frozenset(rule.id for rule in all_rules())


def check_definition(site: Site) -> Iterator[Problem]:
    """Every problem of a definition that shows without a plan; values may be anything that the model lets through."""
    from .base import DefinitionRule

    for rule in rules(DefinitionRule):
        yield from rule.check(site)


def check_plan(plan: Plan) -> Iterator[Problem]:
    """Problems that show only in derived figures; for definitions without errors."""
    from .base import PlanRule

    for rule in rules(PlanRule):
        yield from rule.check(plan)


def check_files(rendered: Rendered) -> Iterator[Problem]:
    """Problems that show only in the rendered files: the size of what travels with the deployment."""
    from .base import FilesRule

    for rule in rules(FilesRule):
        yield from rule.check(rendered)


def check_together(this: Together, other: Together) -> Iterator[Problem]:
    """Problems of one definition beside another one of the same run."""
    from .base import RunRule

    for rule in rules(RunRule):
        yield from rule.check(this, other)


def check_findings(site: Site, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Problems about what the rules found, such as silences of nothing; `problems` are from before silencing."""
    from .base import Findings, FindingsRule

    found: Sequence[Problem] = tuple(problems)
    for rule in rules(FindingsRule):
        yield from rule.check(Findings(site, found))
