"""YAML that is written without PyYAML is what PyYAML would have written, byte for byte."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from generator import pipeline
from generator.files.yaml_text import yaml_text
from tests.definitions.build import NAMES, checked

WORDS = (
    "yes", "No", "TRUE", "off", "null", "Null", "~", "y", "n", "", " ", "a ", " a", "a: b", "a:", "a #b", "a#b",
    "a:b", "# a", "- a", "-", "?", "? a", ":", "@a", "`a`", "%a", "!a", "&a", "*a", "[a]", "{a}", "'a'", '"a"',
    "a'b", 'a"b', "a, b", "a  b", "0", "00", "08", "012", "12", "-1", "+1", "1_000", "0x1F", "0b1", "0o7", "1e3",
    "1.5", "1.", ".5", ".inf", "1:30", "00:30:00", "1-00:00:00", "2026-01-01", "2026-01-01T00:00:00Z", "1.2.3",
    "10.0.0.0/8", "6e-5", "878d65f", "16G", "1 x | y", "1a", "1 =", "=", "<<", "---", "...", "--- a", "/data", "/",
    "~/x", "a\\b", "a\tb", "a\nb", "a\n", "\n", "\x00", "\x85", "\u2028", "\ufeff", "é", "AAAA\u2026 x", "😀",
    "a" * 200, "a b " * 60 + "c", "a,[]{}b", "a|b>c", "a%b@c", "12 GB: x", "1,2", "1@2", "1/2", "1=2", "0x1,2",
    "1w", "1y", "1 g",
)  # fmt: skip
TEXT = st.one_of(st.sampled_from(WORDS), st.text(max_size=12), st.text("01e.:-+_xTZgw=/ #'", max_size=8))
KEYS = st.one_of(
    st.sampled_from(("name", "a.b", "A_B", "max-nodes", "yes", "", "1", "a b", "é", "k" * 130)), st.text(max_size=5)
)
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3))


DATA = st.dictionaries(KEYS, st.recursive(SCALARS, nested, max_leaves=8), max_size=4)


class Plain(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def by_library(value: dict[str, Any]) -> str:
    text: str = yaml.dump(
        value, Dumper=Plain, sort_keys=False, allow_unicode=True, width=100000, default_flow_style=False
    )
    return text


@given(DATA)
@example({})
@example({"a": [], "b": {}, "c": [[], {}, [1, [2, {"d": [3]}]], {"e": {"f": []}}]})
def test_any_data(value: dict[str, Any]) -> None:
    assert yaml_text(value) == by_library(value)


@pytest.mark.parametrize("word", WORDS)
def test_words(word: str) -> None:
    for value in ({"k": word}, {"k": [word, {"k": word}]}, {"a": word, "b": word}):
        assert yaml_text(value) == by_library(value)


@pytest.mark.parametrize("name", NAMES)
def test_effective_plans(name: str) -> None:
    plan = checked(name).plan
    assert plan is not None
    assert yaml_text(pipeline.effective(plan)) == by_library(pipeline.effective(plan))
