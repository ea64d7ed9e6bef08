"""A Reader in front of what is not Azure, or not as Azure is documented, or answers when a test says so."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial

import pytest

from generator.azure.reader import Reader
from generator.azure.refusals import NotAsked, Refused
from generator.azure.requests.resource_manager import provider, providers, subscription
from tests.azure_api.small import ME, SECRET, Small, serving
from tests.locker.certificate import Certificate

S = f"/subscriptions/{ME}"


@pytest.fixture
def reader(small: Small) -> Iterator[Reader]:
    found = Reader(small.session())
    yield found
    found.close()


def test_different_questions_are_asked_at_the_same_time(small: Small, reader: Reader) -> None:
    names = ["A", "B", "C", "D"]
    for name in names:
        small.put(f"{S}/providers/{name}", {"namespace": name})
    small.gate = threading.Barrier(len(names))
    found = reader.together([partial(reader.get, provider(name)) for name in names])
    assert [each["namespace"] for each in found] == names


def test_a_token_goes_to_no_other_host(small: Small, reader: Reader) -> None:
    small.put(f"{S}/providers", {"value": [], "nextLink": "https://evil.example/x"})
    with pytest.raises(NotAsked, match=r"another host, evil\.example"):
        reader.pages(providers())


@pytest.mark.parametrize("body", [{"value": "x"}, {}, {"value": [1]}])
def test_half_a_list_is_not_an_empty_list(small: Small, reader: Reader, body: object) -> None:
    small.put(f"{S}/providers", body)
    with pytest.raises(NotAsked, match="is no list"):
        reader.pages(providers())


@pytest.mark.parametrize("reply", [(200, b"<html>"), (403, b"<html>denied"), (302, b""), (200, b"{")])
def test_what_is_not_azure_is_no_answer(small: Small, reader: Reader, reply: tuple[int, bytes]) -> None:
    small.put(S, reply[1], reply[0])
    with pytest.raises(NotAsked, match="is not Azure"):
        reader.find(subscription())


def test_nobody_there_is_said_without_address_or_token(
    certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate.certificate))
    with serving(certificate) as server:
        session = server.session()
    reader = Reader(session)
    with pytest.raises(NotAsked) as raised:
        reader.get(subscription())
    assert raised.value.reason == f"{session.cloud.host} was not reached: connection refused"
    assert SECRET not in repr(raised.value) + repr(session) + repr(vars(raised.value))
    assert raised.value.__cause__ is None
    reader.close()


def test_only_azure_can_say_that_something_is_not_there(small: Small, reader: Reader) -> None:
    small.put(f"{S}/providers/X", {}, 404)
    with pytest.raises(Refused):
        reader.find(provider("X"))
