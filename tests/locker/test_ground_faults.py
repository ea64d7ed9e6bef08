"""The proxy breaks, delays and refuses requests where and how it says, and shows every state to an observer."""

from __future__ import annotations

import http.client
import threading
from typing import Any

import pytest
from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ServiceRequestError,
    ServiceResponseError,
)

from tests.locker import refusals
from tests.locker.azurite import ACCOUNT, Azurite, Container
from tests.locker.clients import CONTENT, code_of, through
from tests.locker.faults import (
    HIERARCHICAL,
    Cut,
    Decide,
    Delay,
    Fault,
    Request,
    at,
    burst,
    either,
    on,
    with_folders,
)  # fmt: skip
from tests.locker.proxy import Proxy, proxying
from tests.locker.refusals import Answer


@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize(("where", "is_there"), [("before", False), ("body", False), ("after", True), ("answer", True)])
def test_a_connection_is_cut_where_it_should(
    container: Container, proxy: Proxy, where: Any, is_there: bool, reset: bool
) -> None:
    client = through(proxy, container)
    client.upload_blob("first", CONTENT)
    proxy.decide = at(2, Cut(where, reset))
    with pytest.raises((ServiceRequestError, ServiceResponseError)):
        client.upload_blob("x", CONTENT)
    assert container.names() == ({"first", "x"} if is_there else {"first"})
    second = proxy.requests[1]
    assert (second.status, second.served) == (None, 201 if is_there else None)
    assert second.body_bytes == {"before": 0, "body": second.body_bytes}.get(where, len(CONTENT))
    client.upload_blob("x", CONTENT, overwrite=True)
    assert container.blobs()["x"].content == CONTENT


def test_half_of_a_download_comes_through(container: Container, proxy: Proxy) -> None:
    container.put("x", CONTENT)
    proxy.decide = on("Get Blob", Cut("answer", reset=False))
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=10)
    connection.request("GET", f"/{ACCOUNT}/{container.name}/x?{container.sas()}")
    with pytest.raises(http.client.IncompleteRead) as cut:
        connection.getresponse().read()
    assert len(CONTENT) // 3 < len(cut.value.partial) < len(CONTENT)
    connection.close()


def test_a_large_body_is_cut_while_it_is_sent(container: Container, proxy: Proxy) -> None:
    proxy.decide = at(1, Cut("body"))
    with pytest.raises((ServiceRequestError, ServiceResponseError)):
        through(proxy, container).upload_blob("x", bytes(8 << 20))
    assert (4 << 20) <= proxy.sent_bytes < (8 << 20)
    assert container.names() == set()


def test_a_server_without_time_may_say_how_long_to_wait(container: Container, proxy: Proxy) -> None:
    for answer, wait in ((refusals.TOO_MANY, None), (refusals.BUSY.after(7), "7")):
        proxy.decide = on("Put Blob", answer)
        with pytest.raises(HttpResponseError) as busy:
            through(proxy, container).upload_blob("a", CONTENT)
        response: Any = busy.value.response
        assert response.headers.get("Retry-After") == wait


def refusing() -> list[Answer]:
    return [value for value in vars(refusals).values() if isinstance(value, Answer)]


def test_refusals_reach_the_client_as_azures_do(container: Container, proxy: Proxy) -> None:
    for answer in refusing():
        proxy.forget()
        proxy.decide = burst(1, 2, answer)
        client = through(proxy, container)
        with pytest.raises(HttpResponseError) as refused:
            client.upload_blob("x", CONTENT)
        assert (refused.value.status_code, code_of(refused)) == (answer.status, answer.code)
        assert answer.message in str(refused.value)
        with pytest.raises(HttpResponseError) as headless:
            client.get_blob_client("x").get_blob_properties()
        assert (headless.value.status_code, code_of(headless)) == (answer.status, answer.code)
    assert container.names() == set()
    assert len(refusing()) > 15


def test_an_account_with_a_hierarchical_namespace(container: Container, proxy: Proxy) -> None:
    proxy.decide = either(on("Get Account Information", HIERARCHICAL), on("List Blobs", with_folders("projects")))
    client = through(proxy, container)
    assert bool(client.get_account_information()["is_hns_enabled"])
    for names in ({"projects"}, {"projects", "projects/x"}):
        listed = {each.name: each.metadata for each in client.list_blobs(include=["metadata"])}
        assert set(listed) == names
        assert listed["projects"] == {"hdi_isfolder": "true"}
        container.put("projects/x", CONTENT)
    proxy.forget()
    assert not client.get_account_information()["is_hns_enabled"]


def test_an_answer_comes_late_or_not_at_all(container: Container, proxy: Proxy) -> None:
    proxy.decide = at(1, Delay(0.2))
    client = through(proxy, container)
    client.upload_blob("x", CONTENT)
    assert proxy.requests[0].ended_s - proxy.requests[0].started_s >= 0.2
    proxy.decide = at(2, Delay(3600))
    with pytest.raises(ServiceResponseError, match="timed out"):
        through(proxy, container, read_timeout=0.2).upload_blob("y", CONTENT)
    proxy.end()
    assert container.names() == {"x", "y"}


def test_a_server_that_goes_breaks_the_connection(keeping: Azurite) -> None:
    with proxying(keeping) as proxy:
        container = keeping.new_container()
        client = through(proxy, container)

        def gone(request: Request) -> Fault | None:
            if request.number == 2:
                keeping.stop()
            return None

        proxy.decide = gone
        client.upload_blob("x", CONTENT)
        with pytest.raises((ServiceRequestError, ServiceResponseError)):
            client.upload_blob("y", CONTENT)
        keeping.start()
        client.upload_blob("y", CONTENT)
        assert container.names() == {"x", "y"}


@pytest.mark.parametrize("hook", ["decide", "observe"])
def test_a_server_crashes_in_the_middle_and_keeps_its_word(keeping: Azurite, hook: str) -> None:
    with proxying(keeping) as proxy:
        container = keeping.new_container()
        is_back = threading.Event()

        def crash(request: Request) -> None:
            if request.number == 5:
                proxy.restart_server()
                is_back.set()

        setattr(proxy, hook, crash)
        stored, lost = set(), 0

        def upload(name: str) -> None:
            nonlocal lost
            try:
                through(proxy, container).upload_blob(name, CONTENT)
                stored.add(name)
            except (ServiceRequestError, ServiceResponseError):
                lost += 1

        threads = [threading.Thread(target=upload, args=(str(number),)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert is_back.wait(30)
        assert lost >= 1
        assert len(stored) + lost == 8
        assert stored <= container.names()
        through(proxy, container).upload_blob("afterwards", CONTENT)


# ---------------------------------------------------------------- an observer


def test_an_observer_sees_every_state(container: Container, proxy: Proxy) -> None:
    seen: list[tuple[str, set[str]]] = []
    proxy.observe = lambda request: seen.append((request.blob, container.names()))
    clients = [through(proxy, container) for _ in range(4)]
    threads = [
        threading.Thread(target=lambda client=client, name=str(i): client.upload_blob(name, CONTENT))
        for i, client in enumerate(clients)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [len(names) for _, names in seen] == [1, 2, 3, 4]
    for i, (name, names) in enumerate(seen):
        assert names == {each for each, _ in seen[: i + 1]}, name


@pytest.mark.parametrize("decide", [at(1, Cut("after")), at(1, Cut("body"))], ids=["lost answer", "broken"])
def test_an_observer_also_sees_what_the_client_does_not(container: Container, proxy: Proxy, decide: Decide) -> None:
    seen: list[set[str]] = []
    proxy.observe = lambda _: seen.append(container.names())
    proxy.decide = decide
    with pytest.raises(AzureError):
        through(proxy, container).upload_blob("x", CONTENT)
    assert seen == [container.names()]


def test_what_an_observer_finds_fails_the_test(azurite: Azurite, container: Container) -> None:
    def complain(_: Request) -> None:
        raise AssertionError("half a state")

    with pytest.raises(AssertionError, match="half a state"), proxying(azurite) as proxy:  # noqa: PT012
        proxy.observe = complain
        through(proxy, container).upload_blob("x", CONTENT)
    assert container.names() == {"x"}
