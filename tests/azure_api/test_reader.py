"""A Reader in front of the stand-in of Azure: what it sends, shares, follows, refuses to send; what a Writer may."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from azure.core.credentials import AccessToken
from urllib3.util import create_urllib3_context

from generator.azure.clouds import cloud_of
from generator.azure.reader import Reader
from generator.azure.refusals import NotAsked, Refused
from generator.azure.requests.resource_manager import (
    deploy,
    group,
    provider,
    providers,
    register,
    subscription,
    what_if,
)
from generator.azure.session import Session, sign_in
from generator.azure.writer import Writer
from tests.bed.arm import Arm

EMPTY = {"$schema": "https://x", "contentVersion": "1.0.0.0", "resources": []}
BODY = {"location": "southcentralus", "properties": {"mode": "Incremental", "template": EMPTY, "parameters": {}}}


def session(arm: Arm) -> Session:
    return sign_in(cloud_of("public", arm.environment), arm.state.subscription)


@pytest.fixture
def reader(arm: Arm) -> Iterator[Reader]:
    found = Reader(session(arm))
    yield found
    found.close()


class Counting:
    """A credential that counts how often it was asked."""

    def __init__(self, real: Any) -> None:
        self.real, self.given = real, 0

    def get_token(self, *scopes: str, claims: str | None = None, **more: Any) -> AccessToken:
        self.given += 1
        token: AccessToken = self.real.get_token(*scopes, claims=claims, **more)
        return token


def test_the_same_question_is_asked_once_even_at_the_same_time(arm: Arm) -> None:
    signed_in = session(arm)
    credential = Counting(signed_in._credential)
    reader = Reader(Session(signed_in.cloud, credential, signed_in.subscription))
    assert [each["state"] for each in reader.together([lambda: reader.get(subscription())] * 8)] == ["Enabled"] * 8
    assert [each.line for each in arm.requests] == [f"GET {arm.state.scope}"]
    assert reader.lines == (f"az account show --subscription {arm.state.subscription}",)
    assert credential.given == 1
    reader.close()


def test_pages_are_followed_to_the_end(arm: Arm, reader: Reader) -> None:
    arm.state.page_size = 5
    assert {each["namespace"] for each in reader.pages(providers())} == set(arm.state.providers)
    assert len(arm.requests) == -(-len(arm.state.providers) // 5) > 1
    assert "$skiptoken" in arm.requests[1].query


def test_it_waits_as_long_as_azure_says_and_not_for_ever(arm: Arm, reader: Reader) -> None:
    arm.throttle(times=2, retry_after="0")
    assert reader.get(subscription())["state"] == "Enabled"
    assert [each.status for each in arm.requests] == [429, 429, 200]
    arm.throttle(times=1, retry_after="3600")
    with pytest.raises(Refused, match="TooManyRequests"):
        reader.get(provider("Microsoft.Storage"))
    assert len(arm.requests) == 4


def test_a_question_that_takes_its_time_is_waited_for(arm: Arm, reader: Reader) -> None:
    assert reader.post(what_if("x", BODY, ""))["properties"]["changes"] == []
    assert arm.requests[0].status == 202
    assert {each.method for each in arm.requests[1:]} == {"GET"}
    assert len(arm.requests) > 2


def test_a_reader_cannot_change_anything(arm: Arm, reader: Reader) -> None:
    for ask in (reader.get, reader.post, reader.pages):
        for call in (register("Microsoft.Storage"), deploy("x", BODY, "")):
            with pytest.raises(TypeError, match="does not send"):
                ask(call)
    assert arm.requests == []
    assert not hasattr(reader, "begin")


def test_a_writer_changes_and_then_asks_anew(arm: Arm) -> None:
    arm.state.providers["Microsoft.Storage"]["registrationState"] = "NotRegistered"
    writer, call = Writer(session(arm)), provider("Microsoft.Storage")
    assert writer.get(call)["registrationState"] == "NotRegistered"
    writer.do(register("Microsoft.Storage"))
    assert writer.get(call)["registrationState"] != "NotRegistered"
    with pytest.raises(TypeError, match="only asks"):
        writer.do(providers())
    writer.close()


def test_a_writer_waits_and_reads_what_it_has_made(arm: Arm) -> None:
    writer = Writer(session(arm))
    assert writer.do(deploy("x", BODY, ""))["properties"]["provisioningState"] == "Succeeded"
    first, *between, last = arm.requests
    assert (first.method, first.status, last.path) == ("PUT", 201, first.path)
    assert between
    assert all("operationStatuses" in each.path for each in between)
    writer.close()


def test_what_is_not_there_is_none(reader: Reader) -> None:
    assert reader.find(group("nobody-s")) is None


def test_the_authorities_are_read_once(arm: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where several questions begin at the same moment, each with a connection of its own."""
    signed_in = session(arm)
    signed_in.get_token()
    made: list[ssl.SSLContext] = []

    def counted(*words: Any, **named: Any) -> ssl.SSLContext:
        made.append(create_urllib3_context(*words, **named))
        return made[-1]

    for where in ("generator.connections", "urllib3.connection"):
        monkeypatch.setattr(f"{where}.create_urllib3_context", counted)
    arm.answer_s = 0.1
    reader = Reader(signed_in)
    reader.together([partial(reader.find, group(f"group-{number}")) for number in range(4)])
    reader.close()
    assert len(arm.requests) == 4
    assert len(made) == 1


def test_a_certificate_of_somebody_else_is_said(arm: Arm, monkeypatch: pytest.MonkeyPatch) -> None:
    signed_in = session(arm)
    signed_in.get_token()
    monkeypatch.delenv("REQUESTS_CA_BUNDLE")
    reader = Reader(signed_in)
    with pytest.raises(NotAsked, match="certificate that is not trusted"):
        reader.get(subscription())
    reader.close()
