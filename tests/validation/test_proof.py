"""`prove.json`: the gates of a proof, and the nodes that it took out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from generator.validation.assess import Assessment, assess
from generator.validation.gather import gather
from generator.validation.machine import as_json
from generator.validation.page import report_page
from generator.validation.text import Report
from tests.validation import records
from tests.validation.records import check, proved, record, text_of, write_proof

OUT = {"name": "gpu-3", "physical_host": "AMS07000", "gate": "pairs", "how": "drained", "why": "40.1 of 47.2 GB/s"}


def judged(folder: Path, *values: dict[str, Any]) -> Assessment:
    for value in values:
        write_proof(folder, value)
    return assess(gather([str(folder)]))


def test_the_worst_gate_decides(tmp_path: Path) -> None:
    found = judged(tmp_path, proved(1, ("smoke", "pass", "16 nodes"), ("training", "no_baseline", "no job yet")))
    assert found.verdict == "no_baseline"


def test_a_gate_that_was_left_out_does_not_count(tmp_path: Path) -> None:
    assert (
        judged(tmp_path, proved(1, ("smoke", "pass", ""), ("pairs", "skipped", ""), verdict="pass")).verdict == "pass"
    )


def test_a_proof_of_nothing_proves_nothing(tmp_path: Path) -> None:
    assert judged(tmp_path, proved(1, ("pairs", "skipped", ""), verdict="pass")).verdict == "error"


def test_the_newest_proof_of_a_place_counts(tmp_path: Path) -> None:
    old = proved(1, ("smoke", "fail", ""), started="2026-11-01T08:00:00Z", replace=[OUT])
    assert judged(tmp_path, old, proved(2, ("smoke", "pass", ""))).verdict == "pass"


def test_a_node_that_was_taken_out_is_to_replace(tmp_path: Path) -> None:
    found = judged(tmp_path, proved(1, ("pairs", "pass", "without gpu-3"), replace=[OUT], verdict="pass"))
    (view,) = found.nodes
    assert (view.name, view.state, view.physical_host) == ("gpu-3", "replace", "AMS07000")
    assert view.findings[0].text == "40.1 of 47.2 GB/s; drained"
    assert found.verdict == "fail"


def test_another_vm_of_that_name_is_not(tmp_path: Path) -> None:
    """Once a later run has seen the name on another physical host."""
    nodes = [{"name": "gpu-3", "physical_host": "AMS07777", "facts": {}}]
    records.write(tmp_path, record("smoke-gpu", 1, check("gpu-3", nodes=["gpu-3"])) | {"nodes": nodes})
    found = judged(tmp_path, proved(1, ("pairs", "pass", ""), replace=[OUT], verdict="pass"))
    assert [view.state for view in found.nodes] == ["good"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"format": 2}, "format 2"),
        ({"started": "soon"}, "'started' is \"soon\", not a valid date"),
        ({"started": "2026-11-15"}, "'started' has no time zone"),
        ({"hours": "4"}, "'hours' is \"4\", not a number of hours"),
        ({"verdict": "good"}, "'verdict' is \"good\", not one of"),
        ({"gates": [{"gate": "x"}]}, "'gates[0].job' is missing"),
        ({"gates": "none"}, "'gates' is \"none\", not a list"),
        ({"nodes": [1]}, "'nodes[0]' is 1, not a text"),
        ({"cost": 3}, "'cost' is not a key of this format"),
        ({"gates": [{"gate": "x", "job": "", "verdict": "x", "summary": "", "runs": []}]}, "'gates[0].verdict' is"),
        ({"replace": [{**OUT, "why": 7}]}, "'replace[0].why' is 7, not a text"),
    ],
)  # fmt: skip
def test_a_proof_of_another_form_is_a_problem(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    found = judged(tmp_path, proved(1, ("smoke", "pass", "")) | change)
    (problem,) = found.problems
    assert words in problem.message
    assert found.verdict == "error"


def test_a_proof_that_is_cut_off_is_a_problem(tmp_path: Path) -> None:
    folder = write_proof(tmp_path, proved(1, ("smoke", "pass", "")))
    path = next(folder.rglob("prove.json"))
    path.write_text(text_of(proved(1, ("smoke", "pass", "")))[:300])
    assert [problem.kind for problem in gather([str(tmp_path)]).problems] == ["truncated"]


def test_every_form_of_the_report_has_the_gates(tmp_path: Path) -> None:
    found = judged(tmp_path, proved(1, ("smoke", "pass", "16 of 16"), ("pairs", "skipped", ""), verdict="pass"))
    assert "PROOF: standard on lab gpu" in Report(found).text()
    assert "16 of 16" in report_page(found)
    assert json.loads(json.dumps(as_json(found)))["proofs"][0]["gates"][1]["verdict"] == "skipped"
