"""The place of `deploy`, in which every other verb works, too."""

from __future__ import annotations

import pytest

from tests.broken_off.verb import Verb
from tests.deploy.conftest import deployable, kept, place
from tests.what_if.place import Place

__all__ = ["deployable", "kept", "place"]


@pytest.fixture
def verb(deployable: Place) -> Verb:
    """Watching gives up at the first connection that is lost, and what the killed leave behind is in the folder."""
    deployable.patch.setattr("generator.azure.deployment.LOST_S", -1.0)
    deployable.patch.setattr("generator.azure.checks.providers.LOOK_AFTER_S", 0.0)
    (deployable.folder / "tmp").mkdir()
    deployable.patch.setenv("TMPDIR", str(deployable.folder / "tmp"))
    return Verb(deployable)
