"""The place of `what-if`, in which something can be deployed."""

from __future__ import annotations

import pytest

from tests.what_if.conftest import kept, place
from tests.what_if.place import PASSWORD, Place

__all__ = ["kept", "place"]


@pytest.fixture
def deployable(place: Place) -> Place:
    """Built, with the password in the environment, and no pauses."""
    place.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    place.patch.setattr("generator.azure.deployment.PAUSE_S", 0.0)
    place.arm.state.pace = 5
    return place.built()
