"""A Reader over TLS: what it sends, shares, follows and refuses to send; what a Writer may."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from generator.azure.reader import Reader
from generator.azure.refusals import NotAsked, Refused
from generator.azure.request import Request
from generator.azure.requests.subscriptions import PROVIDER, PROVIDERS, REGISTER, SUBSCRIPTION
from generator.azure.writer import Writer
from tests.azure_api.small import ME, SECRET, Credential, Small, serving
from tests.locker.certificate import Certificate, self_signed

S = f"/subscriptions/{ME}"
CHECK = Request("POST", "/subscriptions/{subscription}/check", "1", "https://x", changes_nothing=True)
MAKE = Request("PUT", "/subscriptions/{subscription}/thing", "1", "https://x")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return self_signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture
def small(certificate: Certificate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Small]:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate.certificate))
    with serving(certificate) as server:
        yield server


@pytest.fixture
def reader(small: Small) -> Iterator[Reader]:
    found = Reader(small.session())
    yield found
    found.close()


def test_the_same_question_is_asked_once_even_at_the_same_time(small: Small) -> None:
    credential = Credential()
    reader = Reader(small.session(credential))
    small.put(S, {"state": "Enabled"})
    assert [each["state"] for each in reader.together([lambda: reader.get(SUBSCRIPTION())] * 8)] == ["Enabled"] * 8
    assert small.asked == [f"GET {S}?api-version=2022-12-01"]
    assert [call.request for call in reader.asked] == [SUBSCRIPTION]
    assert credential.given == 1
    reader.close()


def test_different_questions_are_asked_at_the_same_time(small: Small, reader: Reader) -> None:
    names = ["A", "B", "C", "D"]
    for name in names:
        small.put(f"{S}/providers/{name}", {"namespace": name})
    small.gate = threading.Barrier(len(names))
    found = reader.together([partial(reader.get, PROVIDER(namespace=name)) for name in names])
    assert [each["namespace"] for each in found] == names


def test_pages_are_followed_to_the_end(small: Small, reader: Reader) -> None:
    small.put(
        f"{S}/providers", {"value": [{"n": 1}], "nextLink": f"{small.url}{S}/more?api-version=1&$skiptoken=a%2Fb"}
    )
    small.put(f"{S}/more", {"value": [{"n": 2}]})
    assert [each["n"] for each in reader.pages(PROVIDERS())] == [1, 2]
    assert small.asked[1].endswith("skiptoken=a%2Fb")


def test_a_token_goes_to_no_other_host(small: Small, reader: Reader) -> None:
    small.put(f"{S}/providers", {"value": [], "nextLink": "https://evil.example/x"})
    with pytest.raises(NotAsked, match=r"another host, evil\.example"):
        reader.pages(PROVIDERS())


@pytest.mark.parametrize("body", [{"value": "x"}, {}, {"value": [1]}])
def test_half_a_list_is_not_an_empty_list(small: Small, reader: Reader, body: object) -> None:
    small.put(f"{S}/providers", body)
    with pytest.raises(NotAsked, match="is no list"):
        reader.pages(PROVIDERS())


def test_it_waits_as_long_as_azure_says_and_not_for_ever(small: Small, reader: Reader) -> None:
    busy = {"error": {"code": "TooManyRequests", "message": "slow down"}}
    small.put(S, busy, 429, Retry_After="0")
    small.put(S, {"state": "Enabled"})
    assert reader.get(SUBSCRIPTION())["state"] == "Enabled"
    small.put(f"{S}/providers/X", busy, 429, Retry_After="3600")
    with pytest.raises(Refused, match="TooManyRequests"):
        reader.get(PROVIDER(namespace="X"))
    assert len(small.asked) == 3


def test_a_question_that_takes_its_time_is_waited_for(small: Small, reader: Reader) -> None:
    small.put(f"{S}/check", {}, 202, Location=f"{small.url}/operation?api-version=1", Retry_After="0")
    small.put("/operation", {}, 202, Retry_After="0")
    small.put("/operation", {"ok": True})
    assert reader.post(CHECK(body={"a": 1})) == {"ok": True}


def test_a_reader_cannot_change_anything(small: Small, reader: Reader) -> None:
    for ask in (reader.get, reader.post, reader.pages):
        for call in (REGISTER(namespace="X"), MAKE(body={})):
            with pytest.raises(TypeError, match="does not send"):
                ask(call)
    assert small.asked == []
    assert not hasattr(reader, "begin")


def test_a_writer_changes_and_then_asks_anew(small: Small) -> None:
    writer = Writer(small.session())
    small.put(f"{S}/providers/X", {"registrationState": "NotRegistered"})
    small.put(f"{S}/providers/X", {"registrationState": "Registered"})
    small.put(f"{S}/providers/X/register", {"registrationState": "Registering"})
    assert writer.get(PROVIDER(namespace="X"))["registrationState"] == "NotRegistered"
    writer.do(REGISTER(namespace="X"))
    assert writer.get(PROVIDER(namespace="X"))["registrationState"] == "Registered"
    with pytest.raises(TypeError, match="only asks"):
        writer.do(PROVIDERS())
    small.put(f"{S}/thing", {"properties": {"provisioningState": "Creating"}}, 201)
    small.replies[f"{S}/thing"][0][2]["Azure-AsyncOperation"] = f"{small.url}/status?api-version=1"
    small.put("/status", {"status": "InProgress"}, Retry_After="0")
    small.put("/status", {"status": "Succeeded"})
    small.put(f"{S}/thing", {"name": "made", "properties": {"provisioningState": "Succeeded"}})
    small.replies[f"{S}/thing"][0][2]["Retry-After"] = "0"
    assert writer.do(MAKE(body={}))["name"] == "made"
    assert small.asked[-1] == f"GET {S}/thing?api-version=1"
    writer.close()


@pytest.mark.parametrize("reply", [(200, b"<html>"), (403, b"<html>denied"), (302, b""), (200, b"{")])
def test_what_is_not_azure_is_no_answer(small: Small, reader: Reader, reply: tuple[int, bytes]) -> None:
    small.put(S, reply[1], reply[0])
    with pytest.raises(NotAsked, match="is not Azure"):
        reader.find(SUBSCRIPTION())


def test_only_azure_can_say_that_something_is_not_there(small: Small, reader: Reader) -> None:
    small.put(f"{S}/providers/X", {"error": {"code": "NotFound", "message": "x"}}, 404)
    assert reader.find(PROVIDER(namespace="X")) is None
    with pytest.raises(Refused):
        reader.find(PROVIDER(namespace="Y"))


def test_nobody_there_is_said_without_address_or_token(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate.certificate))
    with serving(certificate) as server:
        session = server.session()
    reader = Reader(session)
    with pytest.raises(NotAsked) as raised:
        reader.get(SUBSCRIPTION())
    assert raised.value.reason == f"{session.cloud.host} was not reached: connection refused"
    assert SECRET not in repr(raised.value) + repr(session) + repr(vars(raised.value))
    assert raised.value.__cause__ is None
    reader.close()


def test_a_certificate_of_somebody_else_is_said(small: Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    reader = Reader(small.session())
    with pytest.raises(NotAsked, match="certificate that is not trusted"):
        reader.get(SUBSCRIPTION())
    reader.close()
