"""Every case file: exactly the findings that its comments name, at those places, in those words."""

from __future__ import annotations

from pathlib import Path

import pytest

from generator.rules import all_rules
from tests.rules.annotations import CASES, annotate, annotated_findings, findings_of, without_annotations

LANDING_ZONES = sorted((CASES.parent / "landing_zones").glob("*.yaml"))
"""The same, each with the policy that would refuse it; tests/rules/test_landing_zones.py says more."""
FILES = [*sorted(CASES.glob("*.yaml")), *(path for path in LANDING_ZONES if "preflight" not in path.name)]
OF_DEFINITIONS = ("definition", "plan", "files", "findings")
"""Stages whose rules have case files here; tests/source, tests/model and tests/cluster_template show the rest."""
WITHOUT_CASE = {
    "E1590": "tests/test_pipeline.py: it needs a project that changed",
    "I1591": "tests/blobs/test_carried.py: it needs a store of blobs",
    "W1592": "tests/blobs/test_carried.py: it needs a store of blobs",
    "E1801": "tests/rules/test_budgets.py: it needs rendered files",
}


@pytest.mark.parametrize("path", FILES, ids=[path.stem for path in FILES])
def test_findings_are_the_annotated_ones(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    assert findings_of(text) == annotated_findings(text)
    assert path.name[:5] in {finding.rule_id for finding in annotated_findings(text)}, (
        "a case shows the rule of its name"
    )


def test_every_rule_has_a_case() -> None:
    shown = {finding.rule_id for path in FILES for finding in annotated_findings(path.read_text(encoding="utf-8"))}

    expected = {rule.id for rule in all_rules() if rule.stage in OF_DEFINITIONS}
    assert expected - set(WITHOUT_CASE) == shown
    assert not shown & set(WITHOUT_CASE)


def test_annotations_survive_being_written_anew() -> None:
    text = (CASES / "E0212-sign.yaml").read_text(encoding="utf-8")

    assert annotate(without_annotations(text)) == text


def test_a_wrong_annotation_is_seen() -> None:
    text = (CASES / "E0204-underscore.yaml").read_text(encoding="utf-8")

    assert findings_of(text) != annotated_findings(text.replace("#            ^", "#           ^"))
    assert findings_of(text) != annotated_findings(text.replace("E0204", "E0205"))
    assert findings_of(text) != annotated_findings(without_annotations(text))
