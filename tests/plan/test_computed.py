"""What is computed once."""

from __future__ import annotations

import pytest

from generator.plan.computed import computed_once


def test_what_is_computed_once_is_computed_again_for_another_object() -> None:
    """Equal objects are different objects: whoever asks about a new definition gets an answer about it."""
    asked: list[list[str]] = []

    @computed_once
    def size(about: list[str]) -> int:
        asked.append(about)
        return len(about)

    first, equal, other = ["a"], ["a"], ["a", "b"]
    assert [size(about) for about in (first, first, equal, other, other, first)] == [1, 1, 1, 2, 2, 1]
    assert [id(about) for about in asked] == [id(about) for about in (first, equal, other, first)]


def test_a_computation_that_failed_is_tried_again() -> None:
    tries: list[object] = []

    @computed_once
    def fails_at_first(about: object) -> int:
        tries.append(about)
        if len(tries) == 1:
            raise ValueError("not yet")
        return len(tries)

    about = object()
    with pytest.raises(ValueError, match="not yet"):
        fails_at_first(about)
    assert [fails_at_first(about), fails_at_first(about)] == [2, 2]
