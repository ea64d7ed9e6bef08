"""Silenced rules."""

from __future__ import annotations

from collections.abc import Iterator

from ..problems.problem import UNKNOWN_SIZE, Problem, can_be_silenced
from .base import DefinitionRule, Findings, FindingsRule, Path, RunRule, Site, quoted

_CUSTOM_SIZES = "custom_vm_sizes, as `cycleforge explain E0401` says, and remove the entry"
_SOURCE = "https://github.com/Azure/cyclecloud-slurm-workspace"


def _entries(site: Site) -> Iterator[tuple[Path, str, str]]:
    for index, entry in enumerate(site.definition.silence):
        yield ("silence", index), entry.rule, entry.reason


def _same_number(rule: str, known: frozenset[str]) -> str | None:
    """A hint at the rule whose number was written; other likeness of ids means nothing."""
    number = rule[1:9].upper().translate(str.maketrans("OIL", "011")) if rule[:1].isalpha() else rule[:8]
    return next((f"did you mean '{each}'?" for each in sorted(known) if each[1:] == number), None)


class UnknownRule(DefinitionRule):
    id = "E1701"
    summary = "A silenced rule does not exist."
    why = "A misspelt id silences nothing."
    fix = "Write the id that the problem shows; `cycleforge list rules` prints all."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        from . import rule_ids

        known = rule_ids()
        for path, rule, _ in _entries(site):
            if rule not in known:
                yield self.problem((*path, "rule"), f"there is no rule {quoted(rule)}", _same_number(rule, known))


class NotSilenceable(DefinitionRule):
    id = "E1702"
    summary = "A rule is silenced that always counts."
    why = (
        "What is not YAML, or has unknown keys and wrong types, leaves nothing to build from, and nothing can be "
        "planned with a VM size that nobody has described."
    )
    fix = "Fix what the rule reports, and remove the entry. An unknown VM size is described in custom_vm_sizes."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        from . import rule_ids

        for path, rule, _ in _entries(site):
            if rule in rule_ids() and not can_be_silenced(rule):
                hint = f"describe the VM size in {_CUSTOM_SIZES}" if rule == UNKNOWN_SIZE else None
                yield self.problem((*path, "rule"), f"the rule {rule} cannot be silenced", hint)


class StaleSilence(FindingsRule):
    id = "W1703"
    summary = "A silenced rule finds nothing."
    why = "The reason has gone, and the entry would hide the next finding of that rule."
    fix = "Remove the entry."
    source = _SOURCE

    def check(self, found: Findings) -> Iterator[Problem]:
        from . import rule_ids, rules
        from .projects import OF_THE_MACHINE

        of_the_run = {rule.id for rule in rules(RunRule)}
        seen = {problem.rule_id for problem in found.problems} | OF_THE_MACHINE | of_the_run
        for path, rule, _ in _entries(found.site):
            if rule not in seen and rule in rule_ids() and can_be_silenced(rule):
                yield self.problem(
                    (*path, "rule"), f"the rule {rule} is silenced, but finds nothing in this definition"
                )


class SilencedTwice(DefinitionRule):
    id = "W1704"
    summary = "A rule is silenced twice."
    why = "One reason is enough, and two may contradict each other."
    fix = "Remove one of the entries."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        seen: set[str] = set()
        for path, rule, _ in _entries(site):
            if rule in seen:
                yield self.problem((*path, "rule"), f"the rule {quoted(rule)} is silenced twice")
            seen.add(rule)


class EmptyReason(DefinitionRule):
    id = "E1705"
    summary = "A rule is silenced without a reason."
    why = "Whoever reads the file next must be able to judge whether the reason still holds."
    fix = "Write why the rule does not apply here."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        for path, rule, reason in _entries(site):
            if not reason.strip():
                yield self.problem((*path, "reason"), f"the reason for silencing {quoted(rule)} is empty")
