"""Which way a verb takes to CycleCloud: the site's requests, `cyclecloud` through ssh, Azure's run command.

The stand-ins of the site and of the command line know different clusters, so that what was asked shows who was asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.answers import data_of
from tests.bed.arm import Arm
from tests.bed.cyclecloud import Failing, SiteStandIn
from tests.bed.cyclecloud.exchange import FailureError
from tests.cyclecloud.conftest import _running_site, portal
from tests.cyclecloud.deployed import CLUSTER, PUBLIC, deployed
from tests.verbs.place import Living
from tests.what_if.conftest import kept
from tests.what_if.place import PASSWORD

__all__ = ["_running_site", "kept", "portal"]
NODES = ("nodes", "minimal.yaml", "--json")
START = ("start", "minimal.yaml", "--yes")
STOP = ("stop", "minimal.yaml", "--yes", "--end-jobs")
RETRY = ("retry", "minimal.yaml", "--yes")
STARTED, ENDED = "POST /cloud/actions/startcluster/minimal", "POST /cloud/actions/terminatecluster/minimal"


@pytest.fixture
def living(
    arm: Arm, tmp_path: Path, kept: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
    portal: SiteStandIn,
) -> Iterator[Living]:  # fmt: skip
    """The password is exported, and the site is reached directly."""
    place = Living(arm, tmp_path, capsys, monkeypatch, kept)
    (place.folder / "minimal.yaml").write_text(PUBLIC)
    deployed(place, portal)
    place.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    portal.state.cluster(CLUSTER, htc=2)
    place.arm.requests.clear()
    yield place
    place.end()


def names(living: Living) -> set[str]:
    return {row["name"] for row in data_of(living(*NODES)[1])["nodes"]}


def test_nodes_come_from_the_documented_request(living: Living, portal: SiteStandIn) -> None:
    portal.state.clusters[CLUSTER].starts().add("htc", 2)
    assert names(living) == {"scheduler", "minimal-htc-1", "minimal-htc-2"}
    assert (portal.lines, living.changes) == (["GET /clusters/minimal/status"], [])
    assert {call["name"] for call in living.site.calls} == {"scontrol", "squeue"}
    assert {call.method for call in living.arm.requests} == {"GET"}


def test_without_a_password_neither_azure_nor_the_site_is_asked(living: Living, portal: SiteStandIn) -> None:
    living.patch.delenv("CYCLECLOUD_ADMIN_PASSWORD")
    living.runs()
    assert names(living) == {"scheduler", "login-1"}
    assert (portal.requests, living.arm.requests) == ([], [])


@pytest.mark.parametrize("why", ["the password", "the connection", "the cluster", "the nodes"])
def test_a_site_that_does_not_say_it_is_named_and_ssh_goes_on(living: Living, portal: SiteStandIn, why: str) -> None:
    living.runs()
    if why == "the password":
        living.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", "wr0ng-of-the-test")
    elif why == "the connection":
        portal.lose("GET", "*", after_effect=False, times=9)
    elif why == "the cluster":
        portal.state.clusters.clear()
    else:
        portal.state.lists_nodes = False
    code, out, err = living("nodes", "minimal.yaml")
    assert (code, "login-1" in out, err.count("`cyclecloud` on the server was asked instead")) == (0, True, 1), err
    assert len(portal.wrong) == (why == "the password")


def test_a_start_goes_through_ssh_although_the_site_answers(living: Living, portal: SiteStandIn) -> None:
    """No request that does it is documented."""
    portal.state.clusters[CLUSTER].starts().terminates()
    portal.state.clusters[CLUSTER].settle([])
    code, _, err = living(*START)
    assert (living.changes, portal.changes) == (["cyclecloud start_cluster minimal"], []), err
    assert (code, "is still 'terminated'" in err) == (4, True), "the site is asked what is true, and knows another one"


def test_without_ssh_the_undocumented_request_is_sent_once_and_read_back(living: Living, portal: SiteStandIn) -> None:
    living.has_no_path_to("server")
    code, out, err = living(*START)
    assert (code, portal.changes, living.changes) == (0, [STARTED], []), err
    assert "an undocumented request to the site, once" in err
    assert living.arm.changes == []
    assert portal.lines.index(STARTED) < len(portal.lines) - 1, "it is read back"
    assert "nothing was done" in living(*START)[1]
    living.has_no_path_to("scheduler")
    code, out, err = living(*STOP)
    assert (code, portal.changes) == (0, [STARTED, ENDED]), out + err


@pytest.mark.parametrize("after_effect", [True, False])
def test_a_lost_undocumented_request_is_never_sent_again(
    living: Living, portal: SiteStandIn, after_effect: bool
) -> None:
    living.has_no_path_to("server")
    portal.lose("POST", "*", after_effect=after_effect)
    code, _, err = living(*START)
    sent = portal.changes if after_effect else []
    assert (code, sent, living.changes) == (0 if after_effect else 4, [STARTED] if after_effect else [], []), err
    assert "checking whether `cyclecloud start_cluster minimal` arrived" in err
    assert living(*START)[0] == 0
    assert portal.state.clusters[CLUSTER].target == "Started"


def test_what_the_site_refuses_is_said(living: Living, portal: SiteStandIn) -> None:
    living.has_no_path_to("server")
    portal.fail("POST", "*", FailureError(403, "Forbidden", "no\x1b[2J"))
    code, _, err = living(*START)
    assert (code, "the site refused: Forbidden: no\\x1b[2J" in err) == (4, True)


def test_with_neither_ssh_nor_the_site_it_is_azures_run_command(living: Living, portal: SiteStandIn) -> None:
    living.has_no_path_to("server")
    portal.lose("GET", "*", after_effect=False, times=9)
    code, _, err = living(*START)
    assert (code, living.changes, portal.changes) == (0, ["cyclecloud start_cluster minimal"], []), err
    assert "Azure's run command" in err


def test_a_retry_shows_what_the_site_says_at_length(living: Living, portal: SiteStandIn) -> None:
    living.has_no_path_to("server")
    portal.state.failing.append(
        Failing("minimal-htc-1", "Preparing", "Failed to execute '1.sh'", "boom", "Edit the script", times=1)
    )
    cluster = portal.state.clusters[CLUSTER].starts()
    cluster.add("htc", 1)
    cluster.settle(portal.state.failing)
    code, out, err = living(*RETRY)
    assert (code, portal.changes) == (0, ["POST /cloud/actions/retry/minimal"]), err
    assert "    | boom\n    CycleCloud advises: Edit the script\n" in out.partition("retried; now:")[0]
