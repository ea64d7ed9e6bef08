"""The rules: one class per check, one module per subject. Modules are imported when the first rule is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING

from ..problems.problem import Problem, RuleInfo

if TYPE_CHECKING:
    from ..definition.model.definition import Definition
    from ..files.file import Files
    from ..plan.types import Plan
    from .base import Rule, Site
    from .capacity import PlanRule

SUBJECTS = {
    "00": "the file",
    "01": "keys and types",
    "02": "names",
    "03": "network",
    "04": "VM sizes and scale sets",
    "05": "partitions",
    "06": "storage",
    "07": "releases and images",
    "08": "containers",
    "09": "slurm.conf",
    "10": "accounting",
    "11": "high availability",
    "12": "spot",
    "13": "secrets",
    "14": "monitoring",
    "15": "projects",
    "16": "jobs",
    "17": "silence",
    "18": "size budgets",
}
"""First two digits of a rule's id → its subject."""


@cache
def rules() -> tuple[Rule, ...]:
    """All rules of this package, in the order in which they run."""
    from . import (
        accounting,
        addresses,
        availability,
        azure_names,
        budgets,
        containers,
        jobs,
        monitoring,
        mount_points,
        names,
        network,
        partitions,
        prefixes,
        projects,
        releases,
        scale_sets,
        secrets,
        silence,
        slurm_settings,
        spot,
        storage,
        vm_sizes,
    )

    classes = (
        *names.RULES,
        *azure_names.RULES,
        *prefixes.RULES,
        *addresses.RULES,
        *network.RULES,
        *vm_sizes.RULES,
        *scale_sets.RULES,
        *partitions.RULES,
        *storage.RULES,
        *mount_points.RULES,
        *releases.RULES,
        *containers.RULES,
        *slurm_settings.RULES,
        *accounting.RULES,
        *availability.RULES,
        *spot.RULES,
        *secrets.RULES,
        *monitoring.RULES,
        *projects.RULES,
        *jobs.RULES,
        *silence.RULES,
        *budgets.RULES,
    )
    return tuple(each() for each in classes)


@cache
def all_rules() -> tuple[RuleInfo, ...]:
    """What `explain`, `list rules` and docs/rules.md print: YAML, keys and types, and our rules, sorted by number."""
    from ..definition.model_problems import MODEL_RULES
    from ..definition.text.rules import SOURCE_RULES

    own = tuple(
        RuleInfo(
            id=rule.id,
            level=rule.level,
            subject=SUBJECTS[rule.id[1:3]],
            summary=rule.summary,
            why=rule.why,
            fix=rule.fix,
            source=rule.source,
        )
        for rule in (*rules(), *plan_rules())
    )
    return tuple(sorted((*SOURCE_RULES, *MODEL_RULES, *own), key=lambda info: (info.id[1:], info.id[0])))


@cache
def rule_ids() -> frozenset[str]:
    """Ids of all rules."""
    return frozenset(info.id for info in all_rules())


def run(site: Site) -> Iterator[Problem]:
    """Every problem that the rules find; values may be anything that the model lets through."""
    for rule in rules():
        yield from rule.check(site)


@cache
def plan_rules() -> tuple[PlanRule, ...]:
    """The rules that look at the finished plan."""
    from . import blobs, capacity, released

    return (*capacity.PLAN_RULES, released.ChangedWithoutVersion(), *blobs.RULES)


def check_plan(plan: Plan) -> Iterator[Problem]:
    """Problems that show only in derived figures; for definitions without errors."""
    for rule in plan_rules():
        yield from rule.check_plan(plan)


def check_files(files: Files, definition: Definition | None = None) -> Iterator[Problem]:
    """Problems that show only in the rendered files: the size of what travels with the deployment."""
    from .budgets import PayloadTooLarge

    return PayloadTooLarge().check_files(files, definition)


def payload_too_large(message: str, site: Site) -> Problem:
    """The problem of a payload that could not even be rendered, at the largest local project."""
    from .budgets import PayloadTooLarge

    return PayloadTooLarge().refused(message, site)


def stale_silences(site: Site, problems: Iterable[Problem]) -> Iterator[Problem]:
    """Warnings about silenced rules that found nothing; `problems` are all findings before silencing."""
    from . import silence

    return silence.stale_silences(site, problems)
