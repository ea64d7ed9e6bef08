"""Sorting, silencing, suggestions, exit decisions, the table of exit codes."""

from __future__ import annotations

import difflib
import inspect

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator import errors
from generator.definition.text.source import load
from generator.problems.problem import Problem, can_be_silenced, fails, silence
from generator.problems.sorting import sort_problems
from generator.words.suggestions import did_you_mean, suggestion

SOURCE = load("a: 1\nb: 2\nc: {d: 3, e: 4}\n", "c.yaml", {})


def problem(rule_id: str, *path: str, message: str = "wrong") -> Problem:
    """A problem whose level follows from its id."""
    level = {"E": "error", "W": "warning", "I": "info"}[rule_id[0]]
    return Problem(rule_id, level, path, message)  # type: ignore[arg-type]


def test_sorted_by_place_then_level_then_id() -> None:
    given = [
        problem("E0900", "c", "e"), problem("I0200", "b"), problem("W0300", "b"), problem("E0500", "b"),
        problem("E0400", "b"), problem("E0901", "a"),
    ]  # fmt: skip
    assert [each.rule_id for each in sort_problems(given, SOURCE)] == [
        "E0901",
        "E0400",
        "E0500",
        "W0300",
        "I0200",
        "E0900",
    ]


def test_equal_problems_are_reported_once() -> None:
    assert len(sort_problems([problem("E0400", "a"), problem("E0400", "a")], SOURCE)) == 1


def test_silence_takes_out_whole_rules_only() -> None:
    kept = silence([problem("E0400", "a"), problem("W0300", "a"), problem("E0400", "b")], [("E0400", "known")])
    assert [each.rule_id for each in kept] == ["W0300"]


@pytest.mark.parametrize(
    ("rule_id", "expected"),
    [
        ("E0001", False),
        ("E0101", False),
        ("E0401", False),
        ("E0402", True),
        ("E0201", True),
        ("W1201", True),
        ("E4101", False),
    ],
)
def test_what_cannot_be_read_cannot_be_silenced(rule_id: str, expected: bool) -> None:
    assert can_be_silenced(rule_id) is expected
    assert (silence([problem(rule_id, "a")], [(rule_id, "no")]) == ()) is expected


def test_strict_lets_warnings_fail() -> None:
    warning, note, error = problem("W0300", "a"), problem("I0200", "a"), problem("E0400", "a")
    assert not fails([warning, note])
    assert fails([warning], strict=True)
    assert not fails([note], strict=True)
    assert fails([error])


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("vm_sise", "vm_size"),
        ("VM_SIZE", "vm_size"),
        ("vm-size", "vm_size"),
        ("maxnodes", "max_nodes"),
        ("zzz", None),
        ("", None),
    ],
)
def test_did_you_mean(word: str, expected: str | None) -> None:
    assert did_you_mean(word, ["name", "vm_size", "max_nodes"]) == expected


def test_did_you_mean_keeps_the_case_of_the_allowed_word() -> None:
    sizes = ["Standard_ND96asr_v4", "Standard_ND96amsr_A100_v4"]
    assert did_you_mean("standard_nd96amsr_a100_v4", sizes) == sizes[1]
    assert suggestion("Standard_ND96amsr_A10_v4", sizes) == f"did you mean '{sizes[1]}'?"
    assert suggestion("x", sizes) is None


def test_exit_codes_are_distinct_and_documented() -> None:
    classes = [
        each
        for _, each in inspect.getmembers(errors, inspect.isclass)
        if issubclass(each, errors.CycleForgeError) and each is not errors.CycleForgeError
    ]
    table = errors.exit_codes()
    codes = [code for code, _ in table]
    assert len(codes) == len(set(codes))
    assert codes == sorted(codes)
    assert all(when for _, when in table)
    assert len({each.exit_code for each in classes}) == len(classes)
    assert {each.exit_code for each in classes} | {0, errors.BUG, errors.INTERRUPTED, errors.OUTPUT_CLOSED} == set(
        codes
    )


WORDS = st.text(alphabet="abcdABC-_12é", max_size=8)


@given(WORDS, st.lists(WORDS, max_size=8))
def test_the_suggestion_is_the_closest_of_difflib(word: str, allowed: list[str]) -> None:
    """Without case, and with - and _ alike."""
    same = [choice for choice in allowed if choice.casefold() == word.casefold()]
    plain = {choice.casefold().replace("-", "_"): choice for choice in reversed(allowed)}
    close = difflib.get_close_matches(word.casefold().replace("-", "_"), plain, n=1, cutoff=0.7)

    assert did_you_mean(word, allowed) == (same[0] if same else plain[close[0]] if close else None)


def test_values_of_the_environment_do_not_stand_in_sentences() -> None:
    """Whole values everywhere; parts of them and other spellings where the value itself is the problem."""
    source = load(
        "a: ${TOKEN}\nb: x/${TOKEN}\nc: ${SHORT}\n", "c.yaml", {"TOKEN": "Hunter2-secretsecretsecret", "SHORT": "abc"}
    )

    def shown(*path: str, message: str, hint: str | None = None) -> tuple[str, str | None]:
        (found,) = sort_problems([Problem("E0400", "error", path, message, hint)], source)
        return found.message, found.hint

    assert shown("a", message="'Hunter2-secretsecretsecret' is wrong", hint="try 'hunter2_x'") == (
        "'${TOKEN}' is wrong",
        "try '…'",
    )
    assert shown("b", message="x/Hunter2-secretsecretsecret", hint="Hunter2-secretsecr…") == ("x/${TOKEN}", "…-……")
    assert shown("d", message="hub Hunter2-secretsecretsecret is full") == ("hub ${TOKEN} is full", None)
    assert shown("c", message="'abc' is too short; alphabet", hint="abcd") == ("'abc' is too short; alphabet", "abcd")
