"""The tags of all resources."""

from __future__ import annotations

import pytest

from tests.bed.plans import plan_from


def test_usual_tags_are_there() -> None:
    assert dict(plan_from().tags) == {"created-by": "cycleforge", "cycleforge": "minimal", "deployment": "minimal"}


@pytest.mark.parametrize("name", ["deployment", "Deployment", "Created-By"])
def test_a_tag_of_the_definition_takes_the_place_of_a_usual_one_whatever_its_case(name: str) -> None:
    """Azure does not tell names apart by case, and refuses a resource that has one twice."""
    tags = dict(plan_from(f"tags: {{{name}: mine}}").tags)
    assert tags[name] == "mine"
    assert len({each.lower() for each in tags}) == len(tags) == 3
