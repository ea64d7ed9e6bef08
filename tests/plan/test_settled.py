"""The hand-made plans of tests get what follows from their parts as the planner computes it."""

from __future__ import annotations

import pytest

from tests.bed import parts
from tests.definitions.build import NAMES, checked


@pytest.mark.parametrize("name", NAMES)
def test_what_is_settled_again_stays_as_it_is(name: str) -> None:
    plan = checked(name).plan
    assert plan is not None
    assert parts.settled(plan) == plan
