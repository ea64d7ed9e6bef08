"""Plain data: the core schema of YAML 1.2, tags, merge keys, aliases, variables."""

from __future__ import annotations

import math
from typing import Any

import pytest

from generator.definition.text.source import MissingVariable, VariableUse, load

ENV = {"N": "4", "NAME": "lab", "EMPTY": "", "FLAG": "true", "KEY": "ssh-ed25519 AAAA user@host", "YAML": "{a: 1}"}


def value(text: str) -> Any:
    source = load(f"a: {text}\n", "c.yaml", ENV)
    assert source.problems == ()
    assert source.data is not None
    return source.data["a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("true", True), ("False", False), ("TRUE", True), ("null", None), ("~", None), ("", None),
        ("12", 12), ("-3", -3), ("+3", 3), ("0", 0), ("0x1F", 31), ("0o17", 15),
        ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0), ("-.inf", -math.inf), ("3.", 3.0),
        # the Norway problem and its relatives
        ("no", "no"), ("yes", "yes"), ("on", "on"), ("off", "off"), ("y", "y"), ("12:30", "12:30"), ("0755", "0755"),
        ("1_000", "1_000"), ("2020-01-01", "2020-01-01"), ("0b1", "0b1"), ("8.9.1", "8.9.1"), ("08.5", "08.5"),
        ("nan", "nan"), ("inf", "inf"), ("0x", "0x"), ("=", "="), ("tRue", "tRue"),
        ('"12"', "12"), ("'true'", "true"), ("'null'", "null"), ("|\n  x\n  y", "x\ny\n"), (">-\n  x\n  y", "x y"),
        ("!!str 12", "12"), ("! 12", 12), ('!!int "12"', 12), ("!!float 1", 1.0), ('!!bool "true"', True),
        ('!!null ""', None),
        ("!!map {b: 1}", {"b": 1}), ("!!seq [1]", [1]), ("[1, a, [no]]", [1, "a", ["no"]]),
        ("{b: {c: 1}}", {"b": {"c": 1}}),
    ],
)  # fmt: skip
def test_core_schema(text: str, expected: Any) -> None:
    """Type and value, both."""
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_huge_numbers_do_not_fail() -> None:
    """Python refuses to convert more than 4,300 digits; nobody means such a number."""
    assert isinstance(value("9" * 5000), float)
    assert value("1e999") == math.inf


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${N}", 4), ('"${N}"', "4"), ("'${N}'", "4"), ("${FLAG}", True), ("x${N}y", "x4y"), ("${N}${N}", 44),
        ("${NONE:-2}", 2), ('"${NONE:-2}"', "2"), ("${EMPTY:-2}", 2), ("${NONE:-}", None), ("${N:-9}", 4),
        ("$$", "$"), ("$${N}", "${N}"), ("$$$${N}", "$${N}"), ("$HOME", "$HOME"), ("5$", "5$"), ("a $ b", "a $ b"),
        ("${KEY}", ENV["KEY"]), ("${YAML}", "{a: 1}"), ("|\n  export A=${NAME}\n  ${N}", "export A=lab\n4\n"),
        ("{b: ${N}, c: ${NONE:-x:y}}", {"b": 4, "c": "x:y"}), ("[${N}, a${N}b, $${N}]", [4, "a4b", "${N}"]),
        ("{b: ${NONE}}", {"b": MissingVariable("NONE")}),
        ('{b: "${NONE:-a, b}"}', {"b": "a, b"}), ("\ue000${N}\ue001", "\ue0004\ue001"),
        ("${NONE}", MissingVariable("NONE")), ('"${NONE}"', MissingVariable("NONE")),
        ("${EMPTY}", MissingVariable("EMPTY")),
        ("|\n  ${NONE}", MissingVariable("NONE")), ('["${N}", 2]', ["4", 2]), ("${NONE:-a b}", "a b"),
    ],
)  # fmt: skip
def test_interpolation(text: str, expected: Any) -> None:
    """Plain scalars are resolved after substitution, quoted ones stay text; a lone missing one can be asked for."""
    found = value(text)
    assert found == expected
    assert type(found) is type(expected)


def test_variables_are_listed_in_order_with_defaults_and_paths() -> None:
    """What `.envrc.template` is made from."""
    source = load("b: ${X:-1}\na:\n  - ${N}-${X}\nc: $${Y}\n", "c.yaml", {"N": "1", "X": "2"})
    assert source.variables == (
        VariableUse("X", "1", ("b",)),
        VariableUse("N", None, ("a", 0)),
        VariableUse("X", None, ("a", 0)),
    )
    assert source.is_from_environment(("b",))
    assert not source.is_from_environment(("c",))
    assert source.written(("a", 0)) == "${N}-${X}"


def test_a_file_of_ours_is_read_without_variables() -> None:
    """`env=None` leaves every dollar alone."""
    source = load("a: ${X} $$\n", "effective.yaml", None)
    assert source.data == {"a": "${X} $$"}
    assert source.variables == ()


def test_written_keeps_what_numbers_lose() -> None:
    """`8.10` is 8.1 as a number."""
    source = load('a: 8.10\nb: "0x10"\nc: [1.50]\n', "c.yaml", {})
    assert (source.written(("a",)), source.written(("b",)), source.written(("c", 0))) == ("8.10", "0x10", "1.50")
    assert source.written(("c",)) is None


def test_merge_keys() -> None:
    """Own keys win, then the earlier mapping; a merged mapping may merge itself."""
    text = "a: &a {x: 1, y: 1}\nb: &b {<<: *a, y: 2}\nc:\n  <<: [*b, {z: 3, x: 9}]\n  w: 4\n"
    source = load(text, "c.yaml", {})
    assert source.problems == ()
    assert source.data is not None
    assert source.data["c"] == {"w": 4, "y": 2, "x": 1, "z": 3}


def test_a_quoted_merge_sign_is_a_key() -> None:
    """Only the plain `<<` merges."""
    assert load('a: {"<<": 1}\n', "c.yaml", {}).data == {"a": {"<<": 1}}


def test_aliases_repeat_values() -> None:
    """Each use is a value of its own."""
    source = load("a: &x [1, 2]\nb: *x\nc: &y no\nd: *y\n", "c.yaml", {})
    assert source.data == {"a": [1, 2], "b": [1, 2], "c": "no", "d": "no"}


@pytest.mark.parametrize("prefix", [b"\xef\xbb\xbf", b"---\n", b"%YAML 1.2\n---\n", b"# \xc3\xa4\n"])
def test_harmless_beginnings(prefix: bytes) -> None:
    """A byte order mark, a document start, a directive, a comment."""
    source = load(prefix + b"a: 1\n", "c.yaml", {})
    assert (source.data, source.problems) == ({"a": 1}, ())


@pytest.mark.parametrize(
    "text", ["a: 1\r\nb: 2\r\n", "a: 1\rb: 2\r", "a: 1\nb: 2", "a: 1\nb: 2\n...\n", "a: 1\n\n\nb: 2\n"]
)
def test_line_ends(text: str) -> None:
    """All kinds of line ends, and none at the end."""
    source = load(text, "c.yaml", {})
    assert source.data == {"a": 1, "b": 2}
    assert "b" in source.lines[source.position(("b",)).line - 1]
