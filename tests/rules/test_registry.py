"""The registry: ids, texts and the page that is made of them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from generator.files import assets
from generator.problems.problem import RuleInfo
from generator.rules import SUBJECTS, all_rules, plan_rules, rule_ids, rules
from generator.rules.base import Rule
from generator.rules.page import render

OWN = (*rules(), *plan_rules())


def test_ids_are_unique_also_without_their_letter() -> None:
    numbers = [info.id[1:] for info in all_rules()]

    assert len(numbers) == len(set(numbers))
    assert rule_ids() == {info.id for info in all_rules()}


@pytest.mark.parametrize("rule", OWN, ids=[rule.id for rule in OWN])
def test_every_rule_says_what_why_and_how(rule: Rule) -> None:
    assert re.fullmatch(r"[EWI]\d{4}", rule.id)
    assert rule.id[1:3] in SUBJECTS
    for text in (rule.summary, rule.why, rule.fix):
        assert len(text) > 15
        assert text == " ".join(text.split())
    assert rule.summary.endswith(".")
    assert rule.why.endswith(".")
    assert rule.source.startswith("https://")
    assert rule.level == {"E": "error", "W": "warning", "I": "info"}[rule.id[0]]


def test_class_names_are_unique() -> None:
    names = [type(rule).__name__ for rule in OWN]

    assert len(names) == len(set(names))


def test_the_page_is_up_to_date() -> None:
    assert (assets.root() / "docs/rules.md").read_text(encoding="utf-8") == render(), "run `make reference`"


def test_the_page_names_every_rule_once() -> None:
    headings = re.findall(r"^### (\S+)$", render(), re.MULTILINE)

    assert headings == [info.id for info in all_rules()]
    assert all(isinstance(info, RuleInfo) for info in all_rules())


def test_importing_the_package_stays_light() -> None:
    program = (
        "import sys, generator.rules; sys.exit('pydantic' in sys.modules or 'generator.rules.names' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program], cwd=Path(__file__).parents[2], check=False).returncode == 0
