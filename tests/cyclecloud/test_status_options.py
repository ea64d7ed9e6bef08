"""`cycleforge status` of several deployments, watched, printed, with what is asked for beyond, and killed."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest
from msgspec.structs import replace

from generator.plan.billed import billed
from generator.plan.billing import Billed
from generator.plan.deployment import Plan
from generator.prices import costs, service
from tests.answers import data_of
from tests.bed.arm import Arm
from tests.bed.arm.exchange import RefusedError
from tests.bed.cyclecloud import SiteStandIn
from tests.cyclecloud.asked_directly import STATUS, living, nothing_changed
from tests.cyclecloud.deployed import CLUSTER, asked_json, server_id
from tests.prices.list import PriceServer, serving_prices
from tests.prices.test_cost import FIXED, ITEMS
from tests.what_if.conftest import kept, place
from tests.what_if.place import Place

__all__ = ["kept", "living", "place"]
DIRECT = FIXED - 0.3
"""Without a Bastion."""


# ---------------------------------------------------------------- many, --watch, --print


def test_a_line_for_each(living: Place) -> None:
    other = (living.folder / "minimal.yaml").read_text().replace("name: minimal", "name: second")
    folder = living.folder / "cluster_defs"
    folder.mkdir()
    (living.folder / "minimal.yaml").rename(folder / "minimal.yaml")
    (folder / "second.yaml").write_text(other)
    (folder / "third.yaml").write_text("name: 3\n")
    code, out, _ = living("status")
    assert code == 1
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "name deployment server first boot cluster nodes failed",
        "cluster_defs/third.yaml not known: the definition has errors",
        "minimal deployed running done Started 1 Ready 0",
        "second none",
    ]
    rows = data_of(living("status", "--json")[1])
    assert [row["name"] for row in rows["deployments"]] == ["cluster_defs/third.yaml", "minimal", "second"]


def test_it_is_watched_until_ctrl_c(living: Place, portal: SiteStandIn) -> None:
    portal.state.clusters[CLUSTER].add("htc", 1)
    pauses = iter(range(5))

    def pause(_: float) -> None:
        if next(pauses, None) is None:
            raise KeyboardInterrupt

    living.patch.setattr("generator.cli.status.time.sleep", pause)
    code, out, _ = living(*STATUS, "--watch")
    assert code == 130
    assert [word for word in ("Acquiring", "Preparing", "1 Ready") if word in out] == [
        "Acquiring",
        "Preparing",
        "1 Ready",
    ]
    assert out.count("minimal in southcentralus") == 3
    code, _, err = living(*STATUS, "--watch", "--json")
    assert (code, "--watch draws a screen" in err) == (2, True)


def test_the_lines_that_ask_the_same(living: Place, portal: SiteStandIn) -> None:
    code, out, _ = living(*STATUS, "--print")
    assert (code, living.arm.requests, portal.requests) == (0, [], [])
    assert out.splitlines() == [
        "az deployment sub show --name minimal-southcentralus",
        "az vm get-instance-view --resource-group minimal-rg --name minimal-server",
        "az vm extension show --resource-group minimal-rg --vm-name minimal-server --name cycleforge-bootstrap "
        "--instance-view",
        "ssh -F output/minimal/ssh_config server 'cyclecloud show_cluster minimal --long'",
    ]
    assert living(*STATUS, "--print", "--usage")[1].splitlines()[-1] == (
        "ssh -F output/minimal/ssh_config -t server 'curl --insecure --user ccadmin "
        """'"'"'https://localhost/clusters/minimal/usage?timeframe=monthToDate&granularity=total'"'"''"""
    )


def test_errors_of_the_definition_are_shown(living: Place) -> None:
    (living.folder / "minimal.yaml").write_text("name: 3\n")
    code, _, err = living(*STATUS)
    assert (code != 0, "minimal.yaml" in err) == (True, True)


# ---------------------------------------------------------------- --cost, --drift


@pytest.fixture
def prices(living: Place) -> Iterator[PriceServer]:
    """A price list that has all that `minimal` is billed for."""
    living.patch.setenv("NO_PROXY", "127.0.0.1,localhost")
    living.patch.delenv("HTTPS_PROXY")
    with serving_prices(list(ITEMS)) as server:
        living.patch.setattr(service, "LIMITS", server.limits())
        yield server


def test_no_title_decides_what_is_billed_now(living: Place, portal: SiteStandIn, prices: PriceServer) -> None:
    portal.state.clusters[CLUSTER].add("htc", 2)
    portal.state.clusters[CLUSTER].settle([])
    usual = asked_json(living, "--cost")["cost"]

    def reworded(plan: Plan) -> tuple[Billed, ...]:
        return tuple(replace(each, title=each.title[::-1]) for each in billed(plan))

    living.patch.setattr(costs, "billed", reworded)
    assert asked_json(living, "--cost")["cost"] == usual
    assert usual["per_hour"] == pytest.approx(DIRECT + 0.2 + 2 * 4.0)


def test_what_is_billed_now(living: Place, portal: SiteStandIn, prices: PriceServer) -> None:
    """Server, scheduler and two nodes of the partition; the login node is off, the third node has no VM yet."""
    cluster = portal.state.clusters[CLUSTER]
    cluster.arrays["htc"].most = 3
    cluster.add("htc", 2)
    cluster.settle([])
    cluster.add("htc", 1)
    row = asked_json(living, "--cost")
    assert row["cost"] == {
        "currency": "USD", "per_hour": pytest.approx(DIRECT + 0.2 + 2 * 4.0), "missing": [], "not_known": []
    }  # fmt: skip
    assert f"cost        {DIRECT + 0.2 + 3 * 4.0:.2f} USD an hour now" in living(*STATUS, "--cost")[1]
    living.arm.state.power[server_id(living.arm).lower()] = "deallocated"
    row = asked_json(living, "--cost")
    assert row["cost"]["per_hour"] == pytest.approx(DIRECT - 0.2)
    assert row["cost"]["not_known"] == ["scheduler", "login nodes", "partition htc"]
    assert "  cost        at least " in living(*STATUS, "--cost")[1]
    nothing_changed(living, portal)


def test_without_the_price_list_the_cost_is_not_known(living: Place, prices: PriceServer) -> None:
    prices.refusals += ["0"] * 99
    code, out, _ = living(*STATUS, "--cost")
    assert (code, "cost        not known: the price list was not reached" in out) == (4, True)


def test_drift_when_asked(living: Place, portal: SiteStandIn) -> None:
    living.arm.state.what_if = {"changes": [{"resourceId": server_id(living.arm), "changeType": "Create"}]}
    code, out, _ = living(*STATUS, "--drift")
    assert (code, living.arm.changes, portal.changes) == (0, [], []), out
    assert "    missing in Azure:\n" in out
    assert asked_json(living, "--drift")["drift"]["drift"] is True
    assert living("status", "minimal.yaml", "minimal.yaml")[0] == 0
    living.arm.fail("POST", "*/whatIf", RefusedError(403, "AuthorizationFailed", "no"))
    code, out, _ = living(*STATUS, "--drift")
    assert (code, "  drift       not known: Azure refused: AuthorizationFailed: no\n" in out) == (4, True)


def test_a_column_for_each_that_was_asked_for(living: Place, prices: PriceServer) -> None:
    """Of a deployment that is not there they stay empty; what is not known of one is known of the others."""
    other = (living.folder / "minimal.yaml").read_text().replace("name: minimal", "name: second")
    (living.folder / "second.yaml").write_text(other)
    living.arm.state.what_if = {"changes": [{"resourceId": server_id(living.arm), "changeType": "Create"}]}
    words = ("status", "minimal.yaml", "second.yaml", "--drift", "--cost", "--usage")
    code, out, err = living(*words)
    assert code == 1, err
    assert [" ".join(line.split()) for line in out.splitlines()] == [
        "name deployment server first boot cluster nodes failed this month an hour drift",
        f"minimal deployed running done Started 1 Ready 0 10.0 core hours, about 10.00 USD {DIRECT + 0.2:.2f} USD yes",
        "second none",
    ]
    heads, row, _ = out.splitlines()
    assert row[heads.index("drift") :] == "yes"
    prices.refusals += ["0"] * 99
    living.arm.fail("POST", "*/whatIf", RefusedError(403, "AuthorizationFailed", "no"))
    living.patch.setenv("XDG_CACHE_HOME", str(living.folder / "other-cache"))
    assert living(*words)[1].splitlines()[1].split("USD")[-1].split() == ["not", "known", "not", "known"]


def test_a_terminal_is_drawn_over(living: Place, portal: SiteStandIn) -> None:
    """A real one: each look is drawn over the one before, and Ctrl-C leaves the last."""
    portal.state.clusters[CLUSTER].add("htc", 1)
    text = "import generator.cli.status as s; s.PAUSE_S = 0.0; from generator.cli import process; process()"
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    command = subprocess.Popen(
        [sys.executable, "-c", text, *STATUS, "--watch"], stdin=theirs, stdout=theirs, stderr=theirs, env=environment,
        start_new_session=True,
    )  # fmt: skip
    os.close(theirs)
    said = b""
    try:
        while b"1 Ready" not in said and (more := os.read(ours, 65536)):
            said += more
        command.send_signal(signal.SIGINT)
        with suppress(OSError):  # EIO is the end of a terminal
            while more := os.read(ours, 65536):
                said += more
        assert command.wait(30) == 130
    finally:
        command.kill()
        command.wait()
        os.close(ours)
    assert [word for word in (b"Acquiring", b"Preparing", b"1 Ready") if word in said] == [
        b"Acquiring", b"Preparing", b"1 Ready"
    ]  # fmt: skip
    assert b"\x1b[1A\x1b[2K" in said, "lines are taken away again"
    assert b"Traceback" not in said
    nothing_changed(living, portal)


# ---------------------------------------------------------------- ended anywhere


@pytest.mark.parametrize("where", ["Azure", "the site"])
def test_it_is_killed_and_typed_again(living: Place, portal: SiteStandIn, where: str) -> None:
    """Nothing of a killed one is in the way of the next, and neither has changed anything."""
    portal.state.clusters[CLUSTER].add("htc", 1)
    asked = living.arm.requests if where == "Azure" else portal.requests
    stand_in: Arm | SiteStandIn = living.arm if where == "Azure" else portal
    stand_in.answer_s = 0.3
    command = subprocess.Popen([sys.executable, "-m", "generator", *STATUS], stdout=subprocess.DEVNULL)
    try:
        while not asked:
            assert command.poll() is None
            time.sleep(0.01)
    finally:
        command.kill()
        command.wait()
    stand_in.answer_s = 0.0
    assert living(*STATUS)[0] == 0
    nothing_changed(living, portal)
