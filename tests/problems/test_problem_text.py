"""The printed form, whole; carets under what they mean; JSON."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.definition.text.source import Source, load
from generator.problems.problem import Level, Place, Problem, Related
from generator.problems.text import LINE_WIDTH, as_json, render, summary
from generator.words.terminal import printable


def show(text: str, *problems: Problem, color: bool = False) -> str:
    """The problems of a text, printed."""
    return render(problems, load(text, "cluster.yaml", {}), color=color)


def test_whole_text() -> None:
    """As documented: place, id, sentence, line, caret, hint, explanation."""
    text = "name: x\nqueues:\n  - name: gpu\n    vm_sise: Standard_ND96isr_H100_v5\n"
    problem = Problem(
        "E0101",
        "error",
        ("queues", 0, "vm_sise"),
        "queue 'gpu' has no key 'vm_sise'",
        "did you mean 'vm_size'?",
        on_key=True,
    )
    assert show(text, problem) == (
        "cluster.yaml:4:5: error E0101: queue 'gpu' has no key 'vm_sise'\n"
        "    4 |     vm_sise: Standard_ND96isr_H100_v5\n"
        "      |     ^^^^^^^\n"
        "      = hint: did you mean 'vm_size'?\n"
        "      = more: cycleforge explain E0101\n"
    )


def test_related_place() -> None:
    problem = Problem("E0002", "error", ("b",), "twice", related=(Related("the first is here", ("a",), on_key=True),))
    assert "      |    ^\n      = note: cluster.yaml:1:1: the first is here\n      = more:" in show(
        "a: 1\nb: 2\n", problem
    )


def test_color_only_adds_escapes() -> None:
    problem = Problem("W0001", "warning", ("a",), "odd", "hint")
    colored, plain = show("a: 1\n", problem, color=True), show("a: 1\n", problem)
    for escape in ("\x1b[1;33m", "\x1b[1m", "\x1b[2m", "\x1b[0m"):
        assert escape in colored
        colored = colored.replace(escape, "")
    assert colored == plain


@pytest.mark.parametrize(
    ("line", "needle"),
    [
        ("a: {x: 1, key: VALUE}", "VALUE"),
        ("日本: {キー: 1, key: VALUE}", "VALUE"),
        ("a: {x: 日本語, key: 値値}", "値値"),
        ("e\u0301: {x: 1, key: VALUE}", "VALUE"),
        ("a: {x: 😀, key: VALUE}", "VALUE"),
        ("a: {x: 1,\tkey: VALUE}", "VALUE"),
    ],
)
def test_carets_stand_under_the_value(line: str, needle: str) -> None:
    """Wide, combining and tab characters take the columns that a terminal gives them."""
    column = line.index(needle)
    place = Place(1, column + 1, column + 1 + len(needle))
    _, source, carets, _ = show(line + "\n", Problem("E0101", "error", (), "x", place=place)).splitlines()
    before = source[: source.index(needle)]
    assert carets.index("^") == _columns(before)
    assert carets.count("^") == _columns(needle)


def _columns(text: str) -> int:
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )


@pytest.mark.parametrize("start", [0, 50, 119, 130, 400, 990])
def test_long_lines_are_cut_around_the_caret(start: int) -> None:
    line = "a: " + "x" * start + "NEEDLE" + "y" * 1000
    place = Place(1, line.index("NEEDLE") + 1, line.index("NEEDLE") + 7)
    _, source, carets, _ = show(line + "\n", Problem("E0101", "error", (), "x", place=place)).splitlines()
    assert len(source) <= LINE_WIDTH + 10
    assert source.endswith("…")
    at = carets.index("^")
    assert source[at : at + 6] == "NEEDLE"
    assert carets.count("^") == 6


def test_a_secret_is_not_printed() -> None:
    """Neither for its own problem nor for another one in the same line."""
    text = 'a: {password: "hunter2", colour: reddish} # hunter2\n'
    secret = Problem("E1301", "error", ("a", "password"), "a secret", hide_value=True)
    other = Problem("E0105", "error", ("a", "colour"), "not allowed")
    printed = show(text, secret, other)
    assert "hunter2" not in printed
    assert "a: {password: ********\n" in printed
    assert printed.count("cluster.yaml:1:") == 2


def test_control_characters_do_not_reach_the_terminal() -> None:
    """From the file, the message and the file name."""
    source = load("a: b\x1b[31m\n", "c\x1b.yaml", {})
    printed = render([*source.problems, Problem("E0101", "error", (), "odd \x1b]0;x\x07 and \u202e")], source)
    assert "\x1b" not in printed
    assert "\u202e" not in printed
    assert "c\\x1b.yaml:1:5" in printed
    assert printable("a\nb") == "a\\nb"


def test_places_beyond_the_text_are_printed_without_a_line() -> None:
    assert show("", Problem("E0006", "error", (), "empty", place=Place(1, 1, 1))).splitlines()[1] == (
        "      = more: cycleforge explain E0006"
    )


def test_json_is_stable() -> None:
    source = load("a: 1\nb: [2]\n", "c.yaml", {})
    problems = [
        Problem("W0001", "warning", ("b", 0), "odd", "a hint"),
        Problem("E0002", "error", ("a",), "bad", on_key=True, related=(Related("see", ("b",)),)),
    ]
    assert as_json(problems, source) == [
        {"file": "c.yaml", "line": 1, "column": 1, "end_column": 2, "level": "error", "rule": "E0002", "message": "bad",
         "hint": None, "path": ["a"], "related": [{"line": 2, "column": 4, "end_column": 7, "message": "see"}]},
        {"file": "c.yaml", "line": 2, "column": 5, "end_column": 6, "level": "warning", "rule": "W0001",
         "message": "odd", "hint": "a hint", "path": ["b", 0]},
    ]  # fmt: skip
    json.dumps(as_json(problems, source))


@pytest.mark.parametrize(
    ("ids", "expected"),
    [("", "no problems in c.yaml"), ("E", "1 error in c.yaml"), ("EEWI", "2 errors, 1 warning, 1 info in c.yaml"),
     ("WW", "2 warnings in c.yaml")],
)  # fmt: skip
def test_summary(ids: str, expected: str) -> None:
    levels = {"E": "error", "W": "warning", "I": "info"}
    assert summary([Problem("X", levels[each], (), "m") for each in ids], "c.yaml") == expected  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=200), st.integers(1, 220), st.integers(0, 220))
def test_any_line_and_place_can_be_printed(line: str, column: int, length: int) -> None:
    source = Source("c.yaml", (line,), {}, ())
    text = render([Problem("E0101", "error", (), line, place=Place(1, column, column + length))], source)
    assert len(text.splitlines()) == 4
    assert "^" in text.splitlines()[2]


def test_of_many_problems_the_most_severe_are_shown() -> None:
    text = "".join(f"k{number}: 1\n" for number in range(6))
    levels: list[Level] = ["info", "warning", "error", "warning", "error", "info"]
    problems = [Problem("E0400", level, (f"k{number}",), "odd") for number, level in enumerate(levels)]
    source = load(text, "cluster.yaml", {})

    shown = render(problems, source, limit=3)

    assert [line.split(":")[1] for line in shown.splitlines() if line.startswith("cluster.yaml")] == ["2", "3", "5"]
    assert shown.endswith("\nand 3 more: 1 warning, 2 infos; --all shows them\n")
    assert render(problems, source, limit=6) == render(problems, source)
    assert len(as_json(problems, source)) == 6


def test_every_secret_of_a_line_is_hidden() -> None:
    text = "tags: {password: hunter2, token: opensesame}\n"
    for order in (("password", "token"), ("token", "password")):
        shown = show(text, *(Problem("E1301", "error", ("tags", key), "a secret", hide_value=True) for key in order))
        assert "hunter2" not in shown
        assert "opensesame" not in shown
        assert "tags: {password: ********\n" in shown
