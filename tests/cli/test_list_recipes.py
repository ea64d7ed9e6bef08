"""`cycleforge list recipes`: what may be in `jobs:`, and what each needs of a partition."""

from __future__ import annotations

import pytest

from generator.cli import main
from generator.recipes import recipe, recipe_names
from tests.answers import data_of


def test_every_recipe_with_what_it_needs(capsys: pytest.CaptureFixture[str]) -> None:
    """Name, kind, needs and models are those of the recipe."""
    assert main(["list", "recipes", "--json"]) == 0
    rows = {row["name"]: row for row in data_of(capsys.readouterr().out)}
    assert tuple(rows) == recipe_names()
    for name, row in rows.items():
        known = recipe(name)
        assert known is not None
        assert (row["kind"], row["title"], tuple(row["models"])) == (known.kind, known.title, known.models)
        assert any("GPUs" in need for need in row["needs"]) is known.needs_gpu
        assert ("containers" in row["needs"]) is known.containers
    assert rows["smoke"]["needs"] == ["1 node", "x86_64 or aarch64"]
    assert rows["opt-175b"]["needs"] == ["1 node", "NVIDIA GPUs", "x86_64", "containers"]


def test_the_filter_looks_into_needs_and_models(capsys: pytest.CaptureFixture[str]) -> None:
    """A table with a head; lists are joined."""
    assert main(["list", "recipes", "MPT-70b"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "kind", "title", "needs", "models"]
    assert row.startswith("mpt ")
    assert "mpt-30b, mpt-70b" in row
