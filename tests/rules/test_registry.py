"""The registry: ids, texts and the page that is made of them."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import generator
from generator.azure.checks import all_checks
from generator.problems.rule import STAGES, SUBJECTS, registered
from generator.rules import all_rules, rule_ids, rules
from generator.rules.base import DefinitionRule, FilesRule, FindingsRule, PlanRule
from generator.rules.page import render

OWN = (*rules(DefinitionRule), *rules(PlanRule), *rules(FilesRule), *rules(FindingsRule))
DECIDED = ("text", "model", "template", "run")
"""Stages whose rules may be our own decision, without a source."""
PACKAGE = Path(generator.__file__).parent


def trees(text: str) -> Iterator[tuple[Path, ast.Module]]:
    """The modules of the package in which a text is, so that the others need not be parsed."""
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if text in source:
            yield path, ast.parse(source)


def test_ids_are_unique_also_without_their_letter() -> None:
    numbers = [info.id[1:] for info in (*all_rules(), *all_checks())]

    assert len(numbers) == len(set(numbers))
    assert rule_ids() == {info.id for info in all_rules()}


def test_every_rule_says_what_why_and_how() -> None:
    for rule in (*all_rules(), *all_checks()):
        assert re.fullmatch(r"[EWI]\d{4}", rule.id)
        assert rule.id[1:3] in SUBJECTS, rule.id
        for text in (rule.summary, rule.why, rule.fix):
            assert len(text) > (10 if rule.stage in DECIDED else 15), rule.id
            assert text == " ".join(text.split()), rule.id
        assert rule.summary.endswith("."), rule.id
        assert rule.why.endswith("."), rule.id
        if rule.stage in DECIDED:
            assert rule.source in ("", "docs/definition.md") or rule.source.startswith("https://"), rule.id
            assert rule.fix.endswith("."), rule.id
        else:
            assert rule.source.startswith("https://"), rule.id
        assert rule.level == {"E": "error", "W": "warning", "I": "info"}[rule.id[0]], rule.id


def test_class_names_are_unique() -> None:
    names = [type(rule).__name__ for rule in OWN]

    assert len(names) == len(set(names))


def test_the_page_names_every_rule_once() -> None:
    headings = re.findall(r"^### (\S+)$", render(all_checks()), re.MULTILINE)

    assert headings == [info.id for info in (*all_rules(), *all_checks())]


def test_importing_the_package_stays_light() -> None:
    late = {"generator.definition.model", "generator.rules.names"}
    program = f"import sys, generator.rules; sys.exit(not {late}.isdisjoint(sys.modules))"

    assert subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False).returncode == 0


def test_rules_are_found_by_the_folder_that_they_stand_in() -> None:
    """No list names them: every class with an id is registered, and runs at the stage of its base class."""
    written = {
        statement.value.value
        for _, tree in trees("id = ")
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign)
        and isinstance(statement.value, ast.Constant)
        and [target.id for target in statement.targets if isinstance(target, ast.Name)] == ["id"]
    }

    assert len(written) > 140
    assert written == rule_ids() | {check.id for check in all_checks()}
    assert {rule.stage for rule in all_rules()} <= set(STAGES)
    assert [rule.id for rule in registered(["files"])] == ["E1801"]


def test_an_id_belongs_to_one_rule() -> None:
    with pytest.raises(TypeError, match=r"Impostor and PartitionTwice both have the id E0205"):
        type("Impostor", (DefinitionRule,), {"id": "E0205"})

    assert next(rule for rule in all_rules() if rule.id == "E0205").__name__ == "PartitionTwice"


def test_every_problem_is_made_by_its_rule() -> None:
    """`Rule.problem` is the one place that makes a problem, so id and level cannot disagree."""
    makers = {
        path.relative_to(PACKAGE).as_posix()
        for path, tree in trees("Problem(")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Problem"
    }

    assert makers == {"problems/rule.py"}
