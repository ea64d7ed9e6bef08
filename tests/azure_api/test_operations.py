"""Long operations, as https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations has them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from generator.azure.refusals import NotAsked, Refused
from generator.azure.request import Method, Request
from generator.azure.writer import Writer
from tests.azure_api.small import Small

MADE = {"properties": {"provisioningState": "Succeeded"}, "name": "made"}


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long it would have waited."""
    found: list[float] = []
    monkeypatch.setattr("azure.core.pipeline.transport.RequestsTransport.sleep", lambda _, pause: found.append(pause))
    return found


@pytest.fixture
def writer(small: Small, pauses: list[float]) -> Iterator[Writer]:
    with Writer(small.session()) as found:
        yield found


def do(writer: Writer, method: Method = "POST", limit_s: float = 30) -> object:
    return writer.do(Request(method, "/x", "1", "https://x")(body={}), limit_s)


def test_an_answer_at_once_is_the_result(small: Small, writer: Writer) -> None:
    answers: list[tuple[int, object, Method]] = [(200, {"x": 1}, "POST"), (200, MADE, "PUT"), (204, b"", "DELETE")]
    for status, body, method in answers:
        small.replies.clear()
        small.put("/x", body, status)
        assert do(writer, method) == (body or {})
    assert len(small.asked) == 3


def test_a_put_is_followed_by_its_status_and_then_read(small: Small, writer: Writer) -> None:
    small.put("/x", {}, 201, azure_asyncoperation=f"{small.url}/status")
    small.put("/x", MADE)
    for text in ("Running", "Running", "Succeeded"):
        small.put("/status", {"status": text}, retry_after="0")
    assert do(writer, "PUT") == MADE
    assert small.asked == ["PUT /x", *["GET /status"] * 3, "GET /x"]


def test_a_post_is_followed_by_its_location_until_it_is_no_202(small: Small, writer: Writer) -> None:
    small.put("/x", {}, 202, location=f"{small.url}/location")
    small.put("/location", b"", 202)
    small.put("/location", {"x": 2})
    assert do(writer) == {"x": 2}


def test_a_put_without_headers_is_followed_by_its_own_state(small: Small, writer: Writer) -> None:
    for status, body in ((201, {"properties": {"provisioningState": "Creating"}}), (200, MADE)):
        small.put("/x", body, status)
    assert do(writer, "PUT") == MADE


@pytest.mark.parametrize("text", ["Failed", "Canceled"])
@pytest.mark.parametrize("header", ["azure-asyncoperation", "location"])
def test_a_failure_says_why(small: Small, writer: Writer, text: str, header: str) -> None:
    small.put("/x", {}, 202, **{header: f"{small.url}/status"})
    small.put("/status", {"status": text, "error": {"code": "Quota", "message": "no cores"}})
    with pytest.raises(Refused, match="Quota: no cores"):
        do(writer)


def test_a_limit_ends_the_wait_and_does_not_say_that_it_failed(small: Small, writer: Writer) -> None:
    small.put("/x", {}, 202, azure_asyncoperation=f"{small.url}/status")
    small.put("/status", {"status": "Running"})
    with pytest.raises(NotAsked, match="it continues in Azure"):
        do(writer, limit_s=0.2)
    small.replies.clear()  # so that nothing looks at it any more


def test_what_cannot_be_followed_or_leads_elsewhere_is_not_taken_for_done(small: Small, writer: Writer) -> None:
    small.put("/x", {}, 202)
    with pytest.raises(NotAsked, match="where to follow it"):
        do(writer)
    for header in ("azure-asyncoperation", "location"):
        small.replies.clear()
        small.put("/x", {}, 202, **{header: "https://evil.example/status"})
        with pytest.raises(NotAsked, match=r"another host, evil\.example"):
            do(writer)


def test_azure_says_how_long_to_wait(small: Small, writer: Writer, pauses: list[float]) -> None:
    small.put("/x", {}, 202, azure_asyncoperation=f"{small.url}/status")
    small.put("/status", {"status": "Running"}, retry_after="17")
    small.put("/status", {"status": "Running"})
    small.put("/status", {"status": "Succeeded"})
    do(writer)
    assert pauses == [17, 5]
