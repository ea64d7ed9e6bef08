"""A record behaves as the frozen dataclass that it stands for."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.records import computed_once, record


@record
class Ours:
    """The record of the comparison."""

    a: Any
    b: Any = 2
    c: list[Any] = field(default_factory=list)
    d: Any = field(default=0, compare=False)
    e: Any = field(default=0, repr=False)


@dataclass(frozen=True)
class Theirs:
    """The same as Python makes it."""

    a: Any
    b: Any = 2
    c: list[Any] = field(default_factory=list)
    d: Any = field(default=0, compare=False)
    e: Any = field(default=0, repr=False)


@record
class Heir(Ours):
    """Fields of the class above it come first; what it defines itself stays."""

    f: int = 5

    def __repr__(self) -> str:
        return f"heir of {self.a}"

    @cached_property
    def double(self) -> int:
        """Computed once."""
        return 2 * self.f


VALUES = st.one_of(st.integers(0, 2), st.text(max_size=1), st.none(), st.floats(0, 1))
NAMED = st.dictionaries(st.sampled_from(["a", "b", "d", "e", "x"]), VALUES)


@given(st.lists(VALUES, max_size=6), NAMED)
def test_the_same_calls_are_taken(values: list[Any], named: dict[str, Any]) -> None:
    """Positional and named, too few, too many, doubled, unknown."""
    try:
        theirs: Any = Theirs(*values, **named)
    except TypeError:
        with pytest.raises(TypeError):
            Ours(*values, **named)
        return
    ours = Ours(*values, **named)
    assert asdict(ours) == asdict(theirs)
    assert repr(ours) == repr(theirs).replace("Theirs", "Ours")
    assert asdict(replace(ours, b=7)) == asdict(replace(theirs, b=7))


@given(VALUES, VALUES, VALUES, VALUES, VALUES, VALUES)
def test_equal_as_dataclasses_are(a: Any, b: Any, d: Any, a2: Any, b2: Any, d2: Any) -> None:
    """By the fields that take part in comparison; equal ones have one hash."""
    ours, others = Ours(a, b, (), d), Ours(a2, b2, (), d2)  # type: ignore[arg-type]
    theirs = Theirs(a, b, (), d) == Theirs(a2, b2, (), d2)  # type: ignore[arg-type]
    assert (ours == others) == theirs
    assert not theirs or hash(ours) == hash(others)


def test_another_class_is_never_equal() -> None:
    """Not even with the same values."""
    theirs: Any = Theirs(1)
    assert Ours(1) != theirs
    assert Ours(1) != Heir(1)


def test_nothing_can_be_assigned() -> None:
    """As with any frozen dataclass."""
    ours: Any = Ours(1)
    with pytest.raises(FrozenInstanceError, match="'a'"):
        ours.a = 2
    with pytest.raises(FrozenInstanceError, match="'a'"):
        del ours.a


def test_inheritance_and_copies() -> None:
    """Field order, own methods, cached properties, copies and pickles."""
    heir = Heir(1, f=4)
    assert [each.name for each in fields(heir)] == ["a", "b", "c", "d", "e", "f"]
    assert (repr(heir), heir.double) == ("heir of 1", 8)
    assert copy.deepcopy(Ours([1])) == Ours([1])
    assert pickle.loads(pickle.dumps(Ours([1]))) == Ours([1])
    assert Ours(1).c is not Ours(1).c


def test_a_record_without_a_docstring_is_as_cheap_as_one_with(monkeypatch: pytest.MonkeyPatch) -> None:
    """`dataclass` would write down its signature in words, which takes longer than all else."""

    def refuse(*_: object) -> None:
        raise AssertionError("nobody reads it")

    monkeypatch.setattr("inspect.signature", refuse)

    @record
    class Bare:
        a: int

    assert (Bare.__doc__, Bare(1).a) == ("Bare", 1)


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
