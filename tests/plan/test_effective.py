"""The plan as plain data: the same shape whether or not there is something in it."""

from __future__ import annotations

from msgspec.structs import replace

from generator.plan.effective import effective
from tests.bed.parts import minimal
from tests.bed.plans import slurm_of


def test_pairs_are_mappings_also_when_there_are_none() -> None:
    """So that the first tag or attribute is one line in `diff` and not a list that became a mapping."""
    plan = minimal()
    full = replace(plan, tags=(("a", "1"),), silenced=(("W0321", "ours"),))
    empty = replace(plan, tags=(), silenced=())
    login = replace(slurm_of(plan).login, attributes=(("site.owner", "x"), ("site.size", 3)))
    with_attributes = replace(plan, slurm=replace(slurm_of(plan), login=login))
    assert (effective(full)["derived"]["tags"], effective(empty)["derived"]["tags"]) == ({"a": "1"}, {})
    assert effective(full)["derived"]["silenced"] == {"W0321": "ours"}
    assert effective(empty)["derived"]["silenced"] == {}
    attributes = effective(with_attributes)["derived"]["slurm"]["login"]["attributes"]
    assert attributes == {"site.owner": "x", "site.size": 3}
    without = replace(login, attributes=())
    nothing = replace(plan, slurm=replace(slurm_of(plan), login=without))
    assert effective(nothing)["derived"]["slurm"]["login"]["attributes"] == {}
