"""The recipes' declarations, and the page that describes them."""

from __future__ import annotations

import json
import re

import pytest

from generator.files import assets
from generator.plan.job_settings import known_settings
from generator.recipes import Recipe, Step, recipe, recipe_names

PAGE = (assets.folder("recipes") / "README.md").read_text(encoding="utf-8")
OPTIONAL = {"every_partition", "figures", "needs_infiniband", "needs_no_gpu", "pins", "trains"}


@pytest.mark.parametrize("name", recipe_names())
def test_a_declaration_has_the_keys_that_the_page_describes(name: str) -> None:
    found = set(json.loads((assets.folder("recipes") / name / "recipe.json").read_text(encoding="utf-8")))
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", PAGE.split("## `recipe.json`")[1], re.MULTILINE)
    described = {key for row in rows for key in re.findall(r"`([a-z_]+)`", row)}
    assert described - OPTIONAL <= found <= described
    # The folder gives the name; two fields have shorter keys in the file.
    assert set(Recipe.__struct_fields__) - {"name", "default_settings", "sources"} <= described


def test_the_page_describes_steps_and_common_settings() -> None:
    assert all(f"`{name}`" in PAGE for name in Step.__struct_fields__)
    common = set.intersection(*(set(known_settings(found)) for name in recipe_names() if (found := recipe(name))))
    assert all(f"`{setting}`" in PAGE for setting in common - {"ALLOW_WARN", "RESULTS_DIR"})


@pytest.mark.parametrize("name", recipe_names())
def test_a_recipe_is_a_job_with_a_page(name: str) -> None:
    folder = assets.folder("recipes") / name
    found = recipe(name)
    assert found is not None
    assert {path.name for path in folder.iterdir()} >= {"README.md", *(step.script for step in found.steps)}
    assert len({step.stem for step in found.steps}) == len(found.steps)
    assert found.steps[-1].stem == "run"
