"""The place of `what-if`, whose compiler gives a real compiled template."""

from __future__ import annotations

import json

import pytest

from tests.azure.compiled import template
from tests.what_if.conftest import arm, kept, place
from tests.what_if.place import PASSWORD, TEMPLATE, Place

__all__ = ["arm", "kept", "place"]


@pytest.fixture
def deployable(place: Place) -> Place:
    """Built, with the password in the environment, a template to deploy, and no pauses."""
    program = place.folder / "home" / ".azure" / "bin" / "bicep"
    given = place.folder / "template.json"
    content = template("minimal")
    # The copy is older than the tag by which a deployment knows what is its own.
    tags = content["variables"]["tags"] | {"cycleforge": "minimal"}
    given.write_text(json.dumps(content | {"variables": content["variables"] | {"tags": tags}}))
    program.write_text(program.read_text().replace(repr(TEMPLATE), f"json.load(open({str(given)!r}))"))
    place.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    place.patch.setattr("generator.azure.deployment.PAUSE_S", 0.0)
    place.arm.state.pace = 5
    return place.built()
