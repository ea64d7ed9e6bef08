"""The stand-in of the site itself: every row of its tables is answered, and nothing else is."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from generator.cyclecloud import requests
from tests.bed.arm.exchange import Asked
from tests.bed.cyclecloud import PASSWORD, USER, Failing, SiteStandIn
from tests.bed.cyclecloud.table import Row, rows

HEADERS = {"accept": "*/*"}
QUERIES = {"/exec/query/": dict(requests.nodes("demo").query)}


@pytest.fixture
def filled(portal: SiteStandIn) -> SiteStandIn:
    portal.state.cluster("demo", hpc=4).starts()
    portal.state.clusters["demo"].add("hpc", 2)
    return portal


def send(portal: SiteStandIn, method: str, path: str, body: object = None, **query: str) -> tuple[int, object]:
    """One request of the administrator."""
    login = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    answer = portal.answer(Asked(method, path, query, body, HEADERS, base="https://site"), login)
    return answer.status, answer.body


def ids() -> Iterator[str]:
    yield from (f"{row.method} {row.path}" for row in rows())


@pytest.mark.parametrize("row", rows(), ids=ids())
def test_each_row_is_answered(filled: SiteStandIn, row: Row) -> None:
    status, _ = send(filled, row.method, row.path.format(cluster="demo"), **QUERIES.get(row.path, {}))
    assert (status, filled.refused) == (200, [])
    assert row.source.startswith("https://")


@pytest.mark.parametrize(
    ("method", "path", "body", "query"),
    [
        ("GET", "/clusters/demo", None, {}),
        ("DELETE", "/clusters/demo/status", None, {}),
        ("GET", "/clusters/demo/status", None, {"verbose": "true"}),
        ("POST", "/clusters/demo/nodes/create", {"requestId": "r"}, {}),
        ("GET", "/exec/query/", None, {"q": "select * from Cloud.Node"}),
    ],
)
def test_anything_else_is_refused(
    filled: SiteStandIn, method: str, path: str, body: object, query: dict[str, str]
) -> None:
    assert send(filled, method, path, body, **query)[0] == 400
    assert len(filled.refused) == 1
    filled.refused.clear()


def test_a_cluster_goes_up_and_down_by_answers(portal: SiteStandIn) -> None:
    portal.state.cluster("demo", hpc=4)
    portal.state.failing.append(Failing("scheduler", "Preparing", "no", times=1))
    send(portal, "POST", "/cloud/actions/startcluster/demo")
    scheduler = portal.state.clusters["demo"].nodes[0]
    seen = []
    for _ in range(3):
        send(portal, "GET", "/clusters/demo/status", nodes="true")
        seen.append(scheduler.status)
    assert seen == ["Acquiring", "Failed", "Failed"]
    send(portal, "POST", "/cloud/actions/retry/demo")
    for _ in range(3):
        send(portal, "GET", "/clusters/demo/status", nodes="true")
    assert (scheduler.status, scheduler.retries) == ("Ready", 1)
    send(portal, "POST", "/cloud/actions/terminatecluster/demo")
    for _ in range(2):
        send(portal, "GET", "/clusters/demo/status", nodes="true")
    assert (scheduler.status, portal.state.clusters["demo"].state) == ("Off", "Terminated")
