"""The client against the stand-in: the certificate, the login, what is asked again and what never is."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path

import pytest
from msgspec.structs import replace

from generator.cyclecloud import cluster, requests
from generator.cyclecloud.requests import Request
from generator.cyclecloud.site import Site
from generator.cyclecloud.wire import Login, LoginRefused, Lost, NotAsked, Refused
from tests.bed.cyclecloud import PASSWORD, USER, Failing, SiteStandIn
from tests.bed.cyclecloud.exchange import FailureError, Form
from tests.bed.cyclecloud.table import rows
from tests.cyclecloud.conftest import site_of

STATUS = requests.STATUS({"nodes": "true"}, cluster="demo")
WRONG = "wr0ng-of-the-test"


# ---------------------------------------------------------------- what there is


def test_each_request_is_a_row_of_its_own_table() -> None:
    known = {(row.method, row.path, row.is_documented): row for row in rows()}
    declared = {name: value for name, value in vars(requests).items() if isinstance(value, Request)}
    assert len(declared) == 6
    for name, request in declared.items():
        is_documented = request.source.startswith("https://learn.microsoft.com/")
        row = known[request.method, request.path, is_documented]
        assert {*request.query} <= {*row.query}, name
        assert request.source.startswith("https://"), name


def test_a_name_stays_one_part_of_the_path() -> None:
    assert requests.STATUS(cluster="a/../b?c").path == "/clusters/a%2F..%2Fb%3Fc/status"
    for bad in ("", ".", ".."):
        with pytest.raises(ValueError, match="not a part of a path"):
            requests.STATUS(cluster=bad)
    with pytest.raises(TypeError, match="has no what"):
        requests.STATUS({"what": "1"}, cluster="a")
    assert requests.conditions('a"b').query[0][1].endswith(r'where ClusterName == "a\"b"')


# ---------------------------------------------------------------- the certificate


def test_a_cluster_is_read(portal: SiteStandIn, site: Site) -> None:
    portal.state.cluster("demo", hpc=4).starts()
    portal.state.clusters["demo"].add("hpc", 2)
    found = cluster.cluster(site, "demo")
    assert (found.state, [each.name for each in found.arrays]) == ("Started", ["hpc"])
    assert [(node.name, node.status) for node in found.nodes or ()] == [
        ("scheduler", "Ready"), ("demo-hpc-1", "Acquiring"), ("demo-hpc-2", "Acquiring")
    ]  # fmt: skip
    assert portal.changes == []


@pytest.mark.parametrize("names", ["Name", "name"])
def test_names_of_attributes_have_no_case(portal: SiteStandIn, site: Site, names: str) -> None:
    portal.state.names = names
    portal.state.cluster("demo", hpc=1).add("hpc", 1)
    (_, node) = cluster.cluster(site, "demo").nodes or ()
    assert (node.array, node.target, node.machine_type) == ("hpc", "Started", "Standard_D64ds_v5")


def test_a_server_that_lists_no_nodes(portal: SiteStandIn, site: Site) -> None:
    portal.state.lists_nodes = False
    portal.state.cluster("demo", hpc=1)
    assert cluster.cluster(site, "demo").nodes is None


def test_another_certificate_gets_nothing(portal: SiteStandIn) -> None:
    site = Site(portal.address, portal.port, ":".join(["AB"] * 32), Login(USER, PASSWORD))
    with pytest.raises(NotAsked, match="a different certificate") as raised:
        site.get(STATUS)
    assert portal.fingerprint in raised.value.reason
    assert "someone is in between" in str(raised.value.hint)
    assert portal.requests == []


def test_without_a_fingerprint_the_certificate_must_be_trusted(portal: SiteStandIn) -> None:
    with pytest.raises(NotAsked, match="not trusted"):
        Site(portal.address, portal.port, None, Login(USER, PASSWORD)).get(STATUS)
    with pytest.raises(NotAsked, match="an invalid fingerprint"):
        Site(portal.address, portal.port, "AB:CD", Login(USER, PASSWORD))
    assert portal.requests == []


def test_nobody_there(portal: SiteStandIn) -> None:
    with pytest.raises(NotAsked, match="was not reached: connection refused"):
        Site("127.0.0.1", 1, portal.fingerprint, None).get(STATUS)


@pytest.mark.parametrize("error", [TimeoutError, ConnectionRefusedError])
def test_where_no_way_leads_is_not_tried_three_times(
    portal: SiteStandIn, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    tries = []

    def connect(*_: object, **__: object) -> None:
        tries.append(1)
        raise error

    monkeypatch.setattr("urllib3.util.connection.create_connection", connect)
    with pytest.raises(NotAsked):
        site_of(portal).get(STATUS)
    assert len(tries) == 1


# ---------------------------------------------------------------- the login


@pytest.mark.parametrize("form", ["json", "page", "empty"])
def test_a_refused_login_is_never_repeated(portal: SiteStandIn, form: Form, tmp_path: Path) -> None:
    portal.form = form
    note = tmp_path / "cache" / "refused"
    for _ in range(3):  # three commands of one user
        site = Site(portal.address, portal.port, portal.fingerprint, Login(USER, WRONG), remembered=note)
        asked = [threading.Thread(target=_refused, args=(site,)) for _ in range(6)]
        for each in asked:
            each.start()
        for each in asked:
            each.join()
    assert (len(portal.requests), len(portal.wrong)) == (1, 1)
    assert note.read_bytes() == b""


def test_a_refused_login_is_not_repeated_by_who_keeps_no_note(portal: SiteStandIn) -> None:
    site = site_of(portal, WRONG)
    for _ in range(3):
        _refused(site)
    assert len(portal.requests) == 1


def _refused(site: Site) -> None:
    with pytest.raises(LoginRefused):
        site.get(STATUS)


def test_a_minute_later_it_is_tried_again(portal: SiteStandIn, tmp_path: Path) -> None:
    note = tmp_path / "refused"
    portal.state.cluster("demo", hpc=1)

    def site() -> Site:
        return Site(portal.address, portal.port, portal.fingerprint, Login(USER, PASSWORD), remembered=note)

    note.touch()
    with pytest.raises(LoginRefused, match="s ago; it was not tried again"):
        site().get(STATUS)
    os.utime(note, (time.time() - 61,) * 2)
    assert site().get(STATUS)["nodes"]


@pytest.mark.parametrize("status", [401, 403])
def test_a_locked_account(portal: SiteStandIn, status: int) -> None:
    now = [0.0]
    portal.clock, portal.locked_status = lambda: now[0], status
    portal.state.cluster("demo", hpc=1)
    for _ in range(5):
        _refused(site_of(portal, WRONG))
    with pytest.raises((LoginRefused, Refused)):
        site_of(portal).get(STATUS)
    assert len(portal.requests) == 6
    now[0] = 301.0
    assert site_of(portal).get(STATUS)["nodes"]


def test_an_answer_that_is_lost_before_the_login_is_known_is_not_asked_for_again(portal: SiteStandIn) -> None:
    portal.lose("GET", "*", after_effect=True, times=9)
    with pytest.raises(NotAsked, match="ended the connection"):
        site_of(portal, WRONG).get(STATUS)
    assert len(portal.requests) == 1


def test_no_text_has_the_password(portal: SiteStandIn, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    site = site_of(portal, WRONG)
    with pytest.raises(LoginRefused) as raised:
        site.get(STATUS)
    texts = [repr(site), repr(Login(USER, WRONG)), repr(raised.value), str(raised.value.hint), caplog.text]
    texts += [repr(vars(site))]
    assert WRONG not in "".join(texts)


# ---------------------------------------------------------------- asked again, or not


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_a_busy_server_is_asked_again(portal: SiteStandIn, site: Site, status: int) -> None:
    portal.state.cluster("demo", hpc=1)
    portal.fail("GET", "*", FailureError(status, "Busy", "not now", {"Retry-After": "0"}), times=2)
    assert site.get(STATUS)["nodes"]
    portal.fail("GET", "*", FailureError(status, "Busy", "not now", {"Retry-After": "0"}), times=3)
    with pytest.raises(Refused, match="not now"):
        site.get(STATUS)


def test_a_lost_answer_is_asked_for_again(portal: SiteStandIn, site: Site) -> None:
    portal.state.cluster("demo", hpc=1)
    assert site.get(STATUS)["nodes"]
    portal.lose("GET", "*", after_effect=False, times=2)
    assert site.get(STATUS)["nodes"]


def test_no_redirect_is_followed(portal: SiteStandIn, site: Site) -> None:
    portal.fail("GET", "*", FailureError(302, "Found", "", {"Location": "https://elsewhere.example/"}))
    with pytest.raises(NotAsked, match="redirects"):
        site.get(STATUS)
    assert len(portal.requests) == 1


def test_a_page_is_no_answer(portal: SiteStandIn, site: Site) -> None:
    with pytest.raises(NotAsked, match="is not CycleCloud: it answered HTTP 200 without JSON"):
        site.get(Request("GET", "/health_monitor", "https://example.org")())


@pytest.mark.parametrize("form", ["json", "page", "empty"])
def test_errors_in_every_form(portal: SiteStandIn, site: Site, form: Form) -> None:
    portal.form = form
    with pytest.raises(Refused) as raised:
        cluster.cluster(site, "demo")
    assert raised.value.is_missing
    assert raised.value.code == ("NotFoundException" if form == "json" else "HTTP 404")


def test_an_unknown_machine_type_fails_the_whole_status(portal: SiteStandIn, site: Site) -> None:
    portal.state.cluster("demo", hpc=1)
    portal.state.unknown_types.add("Standard_D64ds_v5")
    with pytest.raises(Refused, match="InvalidAttributeException: MachineType Standard_D64ds_v5 is not recognized"):
        cluster.cluster(site, "demo")


def test_a_query_is_not_sent_as_json(portal: SiteStandIn, site: Site) -> None:
    portal.state.cluster("demo", hpc=1).starts()
    assert [row["Name"] for row in site.get(requests.nodes("demo"))] == ["scheduler"]
    call = requests.nodes("demo")
    with pytest.raises(Refused) as raised:
        site.get(replace(call, request=replace(call.request, accept="application/json")))
    assert raised.value.status == 406


def test_server_texts_cannot_steer_a_terminal(portal: SiteStandIn, site: Site) -> None:
    portal.state.cluster("demo", hpc=1).add("hpc", 1)
    portal.state.failing.append(Failing("*", "Preparing", "no \x1b[2J\u202eway\nout"))
    cluster.cluster(site, "demo")
    (failed,) = cluster.cluster(site, "demo").failed
    assert failed.message == "no \\x1b[2J\\u202eway out"
    portal.fail("GET", "*", FailureError(400, "Bad\x07", "a\x1b]0;b"))
    with pytest.raises(Refused) as raised:
        cluster.cluster(site, "demo")
    assert (raised.value.code, raised.value.message) == ("Bad\\x07", "a\\x1b]0;b")


# ---------------------------------------------------------------- changes


@pytest.mark.parametrize("after_effect", [True, False])
def test_a_change_whose_answer_is_lost_is_not_sent_again(portal: SiteStandIn, site: Site, after_effect: bool) -> None:
    portal.state.cluster("demo", hpc=4)
    portal.lose("POST", "*", after_effect=after_effect)
    with pytest.raises(Lost, match="it may have had its effect"):
        site.change(requests.start("demo"))
    assert len(portal.changes) == 1
    assert portal.state.clusters["demo"].target == ("Started" if after_effect else "")


def test_a_busy_server_is_not_asked_to_change_again(portal: SiteStandIn, site: Site) -> None:
    portal.state.cluster("demo", hpc=4)
    portal.fail("POST", "*", FailureError(503, "Busy", "not now"))
    with pytest.raises(Refused, match="not now"):
        site.change(requests.terminate("demo"))
    assert len(portal.changes) == 1


def test_a_question_is_no_change(portal: SiteStandIn, site: Site) -> None:
    with pytest.raises(TypeError, match="only asks"):
        site.change(STATUS)
    with pytest.raises(TypeError, match="changes something"):
        site.get(requests.RETRY(cluster="demo"))
    assert portal.requests == []
