"""Values of the environment do not reach sentences, whatever they are and however many there are."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from generator.problems.problem import Problem
from generator.problems.sorting import Concealment

LETTERS = st.text(alphabet="abAB1_-. $\\+", min_size=0, max_size=9)
NAMES = st.sampled_from(["ONE", "TWO", "THREE"])


def conceal(environment: dict[str, str], text: str, *, parts: bool = False) -> Problem:
    """A problem with that text as message and hint, without the values."""
    return Concealment(environment).of(Problem("E0400", "error", ("a",), text, text), is_from_environment=parts)


def one_by_one(environment: dict[str, str], text: str, *, parts: bool) -> str:
    """What `Concealment` promises, one variable after the other."""
    values = {name: value for name, value in environment.items() if len(value) >= 4}
    for name, value in values.items():
        text = re.sub(rf"(?<![\w-]){re.escape(value)}(?![\w-])", f"${{{name}}}", text)
    if parts:
        stems = sorted({word[:8] for value in values.values() for word in re.findall(r"\w{4,}", value)}, key=len)
        if stems:
            pattern = "|".join(map(re.escape, stems))
            text = re.sub(rf"(?<!\$\{{)(?:{pattern})\w*", "…", text, flags=re.IGNORECASE)
    return text


@given(
    st.dictionaries(NAMES, LETTERS, max_size=3),
    st.lists(st.one_of(LETTERS, st.integers(0, 2)), max_size=6),
    st.booleans(),
)
def test_the_index_finds_what_looking_for_each_variable_finds(
    environment: dict[str, str], pieces: list[str | int], parts: bool
) -> None:
    values = list(environment.values())
    text = "".join(piece if isinstance(piece, str) else "".join(values[piece : piece + 1]) for piece in pieces)

    shown = conceal(environment, text, parts=parts)

    assert shown.message == one_by_one(environment, text, parts=parts)
    assert (shown.hint or "") == shown.message


def test_values_with_common_words_are_told_apart() -> None:
    names = {f"SIZE{number}": f"size-{number}-secret" for number in range(300)}

    assert conceal(names, "size-7-secret is not size-77-secret").message == "${SIZE7} is not ${SIZE77}"


def test_a_value_of_signs_only_is_found() -> None:
    assert conceal({"SIGNS": "+++++"}, "a +++++ b").message == "a ${SIGNS} b"
