"""What is written is read back unchanged, whatever it contains."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from generator.cctemplate.values import known_value
from generator.cctemplate.writing import Raw, Verbatim, Writable, assignment
from tests.cluster_template.rendered import parse

# Surrogates are not text; everything else may come from a definition.
TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NASTY = st.text(st.sampled_from("$\"'\\`{}[]()#;,:= \n\r\t\x00\x1c\x85\u2028ab10.-"))
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT | NASTY


def read_back(value: Writable) -> object:
    """The value after writing it between others and reading the file."""
    template = parse(f"[cluster c]\nBefore = 1\nX {assignment(value)}\nAfter = 2\n")
    before, found, after = template.clusters[0].attributes
    assert (before.name, found.name, found.line, after.name) == ("Before", "X", 3, "After")
    return known_value(found.value, {})


@given(SCALAR)
@example("")
@example("true")
@example("'''")
@example("$Parameter")
@example("${1}")
@example("a\\")
@example("=undefined")
@example(":= 1")
@example("1,2")
@example("1e5")
@example(" padded ")
@example("0")
@example("inf")
def test_a_scalar_survives(value: Writable) -> None:
    found = read_back(value)
    assert found == value
    assert type(found) is type(value)


@given(st.lists(TEXT | NASTY | st.booleans() | st.integers(min_value=0)))
def test_a_list_survives(value: list[Writable]) -> None:
    assert read_back(value) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("htc", "= htc"), ("/nvme", "= /nvme"), (True, "= true"), (3, "= 3"), ("3", '= "3"'), ("False", '= "False"'),
        ("two words", '= "two words"'), ("a,b", '= "a,b"'), ("say \"$5\"", ':= "say \\"$5\\""'), (None, ":= undefined"),
        (["1", "2"], ':= {"1", "2"}'), (Raw("A isnt true"), ":= A isnt true"), (Verbatim("$A"), "= $A"),
        ("Grüße", '= "Grüße"'), ("a\nb\x01", ':= "a\\nb\\001"'),
    ],
)  # fmt: skip
def test_plain_values_stay_plain(value: Writable, text: str) -> None:
    assert assignment(value) == text


def test_what_has_no_written_form_is_refused() -> None:
    with pytest.raises(ValueError, match="nan"):
        assignment(float("nan"))
