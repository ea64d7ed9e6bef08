"""Whatever the text: it is read or refused with a line, and the checks and the inheritance never fail."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from generator.cctemplate.checks import check
from generator.cctemplate.expressions import EvaluationError, parse_expression
from generator.cctemplate.syntax import read
from generator.cctemplate.values import evaluate
from tests.cluster_template.test_checks import GOOD, SPECS, VALUES

PIECES = st.sampled_from([
    "[cluster c]", "[[node defaults]]", "[[nodearray a]]", "[[[configuration]]]", "[[[cluster-init a:b]]]",
    "[parameters p]", "[[[parameter x]]]", "Extends = a", "Extends = $x", "Abstract = ${x}", "slurm.role = execute",
    'slurm.hpc = ${1 / 0 == regexp("(", "a")}', "MaxCount := -x", "x := f(", "y = '''", 'z = "', "", "'''", "\t# c",
    "DefaultValue := {[a=1], 2}", "Required = true", "Version = 1, 2", "Project := undefined", "a = 1e999", "b = $",
])  # fmt: skip
SIGNS = st.sampled_from("[]{}()$'\"`=:,;ab1. \n\\#")
LINES = GOOD.split("\n")


def read_and_check(text: str) -> None:
    template, unreadable = read(text)
    for problem in unreadable:
        assert problem.place is not None
        assert 1 <= problem.place.line <= text.count("\n") + 1
    for finding in check(template, values=VALUES, specs=SPECS):
        assert finding.message


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=20).map("\n".join) | st.text(SIGNS, max_size=80))
@example("[cluster c]\nx = " + "9" * 5000)
@example("[cluster c]\nx := " + "9" * 5000)
@example("[cluster c]\nx := " + "(" * 5000)
@example("[cluster c]\n[[node n]]\nMaxCount := " + "1+" * 5000 + "1")
def test_any_text(text: str) -> None:
    read_and_check(text)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(LINES) - 1), st.integers(0, len(LINES) - 1), PIECES)
def test_a_good_template_with_a_line_moved_or_replaced(source: int, target: int, piece: str) -> None:
    moved = [line for number, line in enumerate(LINES) if number != source]
    moved.insert(target, LINES[source])
    read_and_check("\n".join(moved))
    read_and_check("\n".join([*LINES[:source], piece, *LINES[source + 1 :]]))


@pytest.mark.parametrize("text", ["1" + "+1" * 5000, '1e308 * 10 > 0 || regexp("(", "a")', "9" * 400 + " / 3"])
def test_expressions_beyond_reason_have_no_value(text: str) -> None:
    with pytest.raises(EvaluationError):
        evaluate(parse_expression(text), {})
