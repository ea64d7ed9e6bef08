"""Every E00xx problem: id, place, sentence; and that no text at all makes `load` raise."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from generator.definition.text import tree as yaml_tree
from generator.definition.text.source import MAX_BYTES, Source, load
from generator.problems.problem import Problem, locate
from generator.problems.rule import registered
from generator.problems.text import render

ENV = {"SECRET": "hunter2", "ODD": "hunter2\x07", "BYTES": "hunter2\udcff"}

# text, id, (line, column, end column), words of the message
CASES: list[tuple[str | bytes, str, tuple[int, int, int], str]] = [
    ("a:\n\tb: 1\n", "E0001", (2, 1, 2), "a tab is used for indentation"),
    ("a: >\n\tb\n", "E0001", (2, 1, 2), "a tab is used for indentation"),
    ('a: "x\nb: 1\n', "E0001", (1, 4, 5), "is never closed"),
    ("a: 'x\n", "E0001", (1, 4, 5), "is never closed"),
    ("a: 1\n b: 2\n", "E0001", (2, 2, 3), "indented deeper than the line above"),
    ("a\nbcd: 1\n", "E0001", (2, 1, 4), "the text in the lines above"),
    ("a: b: c\n", "E0001", (1, 5, 6), "a second ':'"),
    ("a:\n  b: 1\n c: 2\n", "E0001", (3, 2, 6), "not indented like the keys"),
    ("a: 1\nbcd\ne: 2\n", "E0001", (2, 1, 4), "neither a key with ':' nor a list item"),
    ("a:\n - 1\n- 2\n", "E0001", (3, 1, 4), "this list item is among the keys"),
    ("a:\n  - 1\n  b: 2\n", "E0001", (3, 3, 7), "is not a list item"),
    ("a: - 1\n", "E0001", (1, 4, 5), "a list item cannot begin here"),
    ("a: [1, 2\nb: 3\n", "E0001", (1, 4, 5), "the list that '[' opens"),
    ("a: {x: 1\nb: 3\n", "E0001", (1, 4, 5), "the mapping that '{' opens"),
    ("a: [${SECRET:-a b}, 2]\n", "E0001", (1, 5, 6), "a variable between brackets needs quotes"),
    ("a: {b: ${SECRET}\n", "E0001", (1, 4, 5), "the mapping that '{' opens"),
    ("a: ]\n", "E0001", (1, 4, 5), "closes something that was not opened"),
    ("a: [1,,2]\n", "E0001", (1, 7, 8), "a value is missing before ','"),
    ("a: @x\n", "E0001", (1, 4, 5), "cannot begin with '@'"),
    ("a: `x`\n", "E0001", (1, 4, 5), "cannot begin with '`'"),
    ("a: %x\n", "E0001", (1, 4, 5), "cannot begin with '%'"),
    ("a: *\n", "E0001", (1, 4, 5), "means an alias"),
    ("a: & b\n", "E0001", (1, 4, 5), "means an anchor"),
    ('a: "\\q"\n', "E0001", (1, 5, 6), "a backslash in double quotes"),
    ("a: !x!y z\n", "E0001", (1, 4, 5), "means a tag"),
    ("a: |x\n  b\n", "E0001", (1, 4, 5), "begins a text of several lines"),
    ('a: "b" c\n', "E0001", (1, 8, 9), "text follows after the end"),
    ("a: b\n...\nc: d\n", "E0001", (3, 1, 5), "the document has ended"),
    ("%x\na: 1\n", "E0001", (1, 1, 3), "instruction to the YAML reader"),
    (": a\n", "E0001", (1, 1, 2), "a ':' without a key"),
    ("a: 1\nb: 2\na: 3\n", "E0002", (3, 1, 2), "the key 'a' is here a second time"),
    ("x: {b: 1, 'b': 2}\n", "E0002", (1, 11, 14), "the key 'b' is here a second time"),
    ("1: a\n", "E0003", (1, 1, 2), "the key 1 is not text but a whole number"),
    ("true: a\n", "E0003", (1, 1, 5), "the key true is not text"),
    ("? [a]\n: b\n", "E0003", (1, 3, 6), "a list cannot be a key"),
    ("a: {{ b }}\n", "E0003", (1, 5, 10), "a mapping cannot be a key"),
    ("${SECRET}: 1\n", "E0003", (1, 1, 10), "a variable is not allowed in a key"),
    ("a: !!python/object/apply:os.system [ls]\n", "E0004", (1, 4, 40), "the tag !!python/object/apply:os.system"),
    ("a: !x b\n", "E0004", (1, 4, 8), "the tag !x is not known"),
    ("a: !!int x\n", "E0004", (1, 4, 11), "does not fit its tag !!int"),
    ("a: !!timestamp 2020-01-01\n", "E0004", (1, 4, 26), "the tag !!timestamp"),
    ("a: !!map [1]\n", "E0004", (1, 4, 13), "the tag !!map"),
    ("a: 1\n---\nb: 2\n", "E0005", (2, 1, 4), "a second YAML document"),
    ("---\n---\n", "E0005", (2, 1, 4), "a second YAML document"),
    ("", "E0006", (1, 1, 1), "holds no definition"),
    ("# nothing\n\n", "E0006", (1, 1, 1), "holds no definition"),
    ("---\n", "E0006", (1, 1, 1), "holds no definition"),
    ("- a\n", "E0007", (1, 1, 2), "this is a list"),
    ("just text\n", "E0007", (1, 1, 10), "this is text"),
    ("null\n", "E0007", (1, 1, 5), "this is nothing"),
    (b"a: \xff\n", "E0008", (1, 4, 5), "byte 0xff is not UTF-8"),
    (b"\xc3\xa4: 1\nb: \xe4\n", "E0008", (2, 4, 5), "byte 0xe4 is not UTF-8"),
    ("a: b\n".encode("utf-16"), "E0008", (1, 1, 2), "the file is UTF-16"),
    ("a: b\x00\n", "E0009", (1, 5, 6), "U+0000"),
    ("a: 1\nb: \x1b[31m\n", "E0009", (2, 4, 5), "U+001B"),
    ("a: \ud800\n", "E0009", (1, 4, 5), "U+D800"),
    ("a: 1\n\xa0b: 1\n", "E0009", (2, 1, 3), "invisible character U+00A0"),
    ("a: x-${NONE}\n", "E0010", (1, 6, 13), "NONE is not set"),
    ("a: |\n  one\n  two ${NONE}\n", "E0010", (3, 7, 14), "NONE is not set"),
    ("a: ${SECRET}${NONE}${NONE}\n", "E0010", (1, 13, 20), "NONE is not set"),
    ("a: ${NONE-1}\n", "E0011", (1, 4, 6), "not followed by a variable name"),
    ("a: x ${\n", "E0011", (1, 6, 8), "not followed by a variable name"),
    ("a: ${1X} ${A:-${B}}\n", "E0011", (1, 4, 6), "not followed by a variable name"),
    (b"a" * (MAX_BYTES + 1), "E0012", (1, 1, 1), "larger than 1,048,576 bytes"),
    ("a: " + "[" * 60, "E0012", (1, 43, 64), "nested deeper than 40 levels"),
    ("a: [" + "1," * 100_001 + "]\n", "E0012", (1, 199_999, 200_000), "more than 100,000 values"),
    ("a: *x\n", "E0013", (1, 4, 6), "there is no anchor '&x'"),
    ("a: &x [*x]\n", "E0013", (1, 8, 10), "inside its own anchor"),
    ("a: &x {b: {c: *x}}\n", "E0013", (1, 15, 17), "inside its own anchor"),
    ("a: {<<: 1}\n", "E0014", (1, 9, 10), "adds the keys of a mapping"),
    ("a: &x [1]\nb: {<<: *x}\n", "E0014", (2, 9, 11), "adds the keys of a mapping"),
    ("a: ${ODD}\n", "E0015", (1, 4, 10), "ODD holds control characters"),
    ("a: b${BYTES}\n", "E0015", (1, 5, 13), "BYTES holds control characters"),
]  # fmt: skip


def only(source: Source) -> Problem:
    assert source.problems
    return source.problems[0]


@pytest.mark.parametrize(
    ("text", "rule_id", "place", "words"), CASES, ids=[f"{case[1]}-{case[3][:30]}" for case in CASES]
)
def test_problem(text: str | bytes, rule_id: str, place: tuple[int, int, int], words: str) -> None:
    """Id, place and sentence; the printed form holds neither a library's words nor a value of the environment."""
    source = load(text, "c.yaml", ENV)
    problem = only(source)
    found = locate(problem, source)
    assert (problem.rule_id, words in problem.message) == (rule_id, True), problem.message
    assert (found.line, found.column, found.end_column) == place
    printed = render(source.problems, source)
    assert f"c.yaml:{place[0]}:{place[1]}: error {rule_id}: " in printed
    assert "hunter2" not in printed
    assert "<block" not in printed
    assert "\x1b" not in printed


def test_every_rule_has_a_case() -> None:
    """A rule without a bad case might as well not exist."""
    assert {rule.id for rule in registered(["text"])} == {case[1] for case in CASES}


@pytest.mark.parametrize(("text", "rule_id", "place", "words"), [case for case in CASES if case[1] == "E0001"])
def test_the_slower_parser_gives_a_sentence_too(
    monkeypatch: pytest.MonkeyPatch, text: str, rule_id: str, place: tuple[int, int, int], words: str
) -> None:
    """Where PyYAML lacks its C part, lines are the same and the sentences ours."""
    monkeypatch.delattr("yaml.CSafeLoader", raising=False)
    source = load(text, "c.yaml", ENV)
    if text.startswith("%x"):
        return  # PyYAML's own scanner skips unknown directives, as YAML 1.2 asks for
    problem = only(source)
    assert problem.rule_id == rule_id
    assert locate(problem, source).line == place[0]
    assert "not valid YAML" not in problem.message


def test_all_problems_at_once() -> None:
    """One run shows everything that is wrong; a duplicate points at both."""
    source = load("a: 1\n1: x\na: ${NONE}!\nb: !y z\nc: *q\n", "c.yaml", {})
    assert sorted(each.rule_id for each in source.problems) == ["E0002", "E0003", "E0004", "E0013"]
    assert source.data is not None
    duplicate = next(each for each in source.problems if each.rule_id == "E0002")
    assert [locate(other, source).line for other in duplicate.related] == [1]
    assert duplicate.path == ("a",)


def test_problems_before_a_syntax_error_are_kept() -> None:
    """The parser stops at the error, what it found before stays."""
    source = load("a: *x\nb: [1\n", "c.yaml", {})
    assert [each.rule_id for each in source.problems] == ["E0013", "E0001"]
    assert source.data is None


def test_unreadable_and_readable_files_differ() -> None:
    """Only what could not be understood at all has no data."""
    assert load("a: {b: 1, b: 2}\n", "c.yaml", {}).data == {"a": {"b": 1}}
    assert load("a: {b: 1\n", "c.yaml", {}).data is None


def test_doubtful_values() -> None:
    """A value with a problem of ours is not judged again."""
    source = load("a: x${NONE}\nb: 1\n", "c.yaml", {})
    assert source.is_doubtful(("a",))
    assert not source.is_doubtful(("b",))
    assert not source.is_doubtful(())


def test_an_alias_bomb_is_refused_quickly() -> None:
    """Nine times nine to the ninth."""
    lines = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    problem = only(load("\n".join(lines), "c.yaml", {}))
    assert problem.rule_id == "E0012"


def test_a_merge_bomb_is_refused_quickly() -> None:
    """The same with merge keys, which leave no values behind."""
    lines = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 12)]
    problem = only(load("\n".join(lines), "c.yaml", {}))
    assert problem.rule_id == "E0012"


def test_aliases_cannot_nest_deeper_than_the_limit() -> None:
    """Each anchor is flat, the chain is not."""
    lines = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} {{b: *a{n - 1}}}" for n in range(1, 60)]
    problem = only(load("\n".join(lines), "c.yaml", {}))
    assert (problem.rule_id, "of its aliases" in problem.message) == ("E0012", True)


def test_a_duplicate_in_a_repeated_mapping_is_reported_once() -> None:
    """An alias visits the mapping again; the mistake is one."""
    source = load("a: &x {b: 1, b: 2}\nc: *x\nd: *x\n", "c.yaml", {})
    assert [each.rule_id for each in source.problems] == ["E0002"]


def test_the_lines_hold_no_value_of_the_environment() -> None:
    """They are printed."""
    assert "hunter2" not in "".join(load("a: ${SECRET}\n", "c.yaml", ENV).lines)


_PIECES = st.sampled_from(
    [
        *[
            "a",
            "b: ",
            ": ",
            "- ",
            "\n",
            "\n  ",
            " ",
            "\t",
            "[",
            "]",
            "{",
            "}",
            ",",
            "'",
            '"',
            "&x ",
            "*x",
            "!",
            "!!str ",
        ],
        *["|", ">", "#", "%", "@", "?", "? ", "<<: ", "${", "${A}", "${A:-1}", "$$", "}", "\\", "---\n", "...\n", "1"],
        *["0x", "~", "é", "😀", "\u2028", "\x85", "\ufeff", "\x00", "\ud800"],
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.one_of(st.lists(_PIECES, max_size=40).map("".join), st.text(max_size=60)))
def test_any_text_gives_data_or_problems(text: str) -> None:
    """Never an exception; every problem has a place in the file and can be printed."""
    source: Any = load(text, "c.yaml", {"A": "x"})
    assert source.data is not None or source.problems
    for problem in source.problems:
        place = locate(problem, source)
        assert 1 <= place.line <= max(1, len(source.lines))
        assert 1 <= place.column <= place.end_column
    render(source.problems, source, color=True).encode("utf-8")


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60))
def test_any_bytes_give_data_or_problems(content: bytes) -> None:
    """The same for what is not even text."""
    source = load(content, "c.yaml", {})
    assert source.data is not None or source.problems
    render(source.problems, source)


def test_a_thousand_partitions_are_far_from_the_limits() -> None:
    """The limits stop accidents, not users."""
    items = "\n".join(f"  - {{name: p{n}, vm_size: X, max_nodes: {n}, zone: 1, spot: false}}" for n in range(1000))
    source = load(f"partitions:\n{items}\n", "c.yaml", {})
    assert source.problems == ()
    assert yaml_tree.MAX_NODES > 5 * 11_000
