"""A deployment whose site is asked directly, and what a verb that only asks leaves as it was."""

from __future__ import annotations

import pytest

from tests.bed.cyclecloud import SiteStandIn
from tests.cyclecloud.deployed import CLUSTER, PUBLIC, deployed
from tests.what_if.place import PASSWORD, Place

STATUS = ("status", "minimal.yaml")


@pytest.fixture
def living(place: Place, portal: SiteStandIn) -> Place:
    """Deployed, with a running cluster and the password in the environment."""
    place.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    place.built()
    (place.folder / "minimal.yaml").write_text(PUBLIC)
    # Who comes through ssh has a bed of their own: test_status_ssh.py.
    (place.folder / "output" / "minimal" / "ssh_config").unlink(missing_ok=True)
    deployed(place, portal)
    portal.state.cluster(CLUSTER, htc=2).starts()
    place.arm.requests.clear()
    return place


def nothing_changed(place: Place, portal: SiteStandIn) -> None:
    assert (place.arm.changes, place.arm.posts, place.arm.refused, portal.changes) == ([], [], [], [])
