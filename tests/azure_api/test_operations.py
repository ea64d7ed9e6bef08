"""Long operations, as https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from generator.azure.operations import Operation, finished
from generator.azure.refusals import NotAsked, Refused
from generator.azure.transport import Answer

STATUS, LOCATION, RESOURCE = "https://a/status", "https://a/location", "https://a/resource"


class Follow:
    """What each address answers, in turn; the last answer stays."""

    def __init__(self, **answers: list[Answer]) -> None:
        self.answers, self.asked = answers, [""][:0]

    def __call__(self, address: str) -> Answer:
        self.asked.append(address)
        waiting = self.answers[address.rpartition("/")[2]]
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]


def answer(status: int, body: Mapping[str, Any] | None = None, **headers: str) -> Answer:
    return Answer(status, body or {}, {name.replace("_", "-"): value for name, value in headers.items()})


def state(text: str) -> Answer:
    return answer(200, {"status": text}, retry_after="0")


MADE = answer(200, {"properties": {"provisioningState": "Succeeded"}, "name": "made"})


def done(follow: Follow, begun: Answer, resource: str = "") -> Mapping[str, Any]:
    return finished(Operation(follow, begun, resource), 100, pause=lambda _: None)


def test_an_answer_at_once_is_the_result() -> None:
    assert done(Follow(), answer(200, {"x": 1})) == {"x": 1}
    assert done(Follow(), MADE, RESOURCE)["name"] == "made"
    assert done(Follow(), answer(204)) == {}


def test_a_put_is_followed_by_its_status_and_then_read() -> None:
    follow = Follow(status=[state("Running"), state("Succeeded")], resource=[MADE])
    assert done(follow, answer(201, azure_asyncoperation=STATUS), RESOURCE)["name"] == "made"
    assert follow.asked == [STATUS, STATUS, RESOURCE]


def test_a_post_is_followed_by_its_location_until_it_is_no_202() -> None:
    follow = Follow(location=[answer(202, retry_after="0"), answer(200, {"x": 2})])
    assert done(follow, answer(202, location=LOCATION)) == {"x": 2}


def test_a_put_without_headers_is_followed_by_its_own_state() -> None:
    creating = answer(200, {"properties": {"provisioningState": "Creating"}})
    assert done(Follow(resource=[creating, MADE]), answer(201, creating.body), RESOURCE)["name"] == "made"


@pytest.mark.parametrize("text", ["Failed", "Canceled"])
def test_a_failure_says_why(text: str) -> None:
    failed = answer(200, {"status": text, "error": {"code": "Quota", "message": "no cores"}})
    with pytest.raises(Refused, match="Quota: no cores"):
        done(Follow(status=[failed]), answer(202, azure_asyncoperation=STATUS))


def test_a_limit_ends_the_wait_and_does_not_say_that_it_failed() -> None:
    operation = Operation(Follow(status=[state("Running")]), answer(202, azure_asyncoperation=STATUS))
    with pytest.raises(NotAsked, match="it goes on working"):
        finished(operation, 1, pause=lambda _: None)


def test_an_operation_that_cannot_be_followed_is_not_taken_for_done() -> None:
    with pytest.raises(NotAsked, match="where to look"):
        Operation(Follow(), answer(202))


def test_azure_says_how_long_to_wait() -> None:
    begun = answer(202, azure_asyncoperation=STATUS, retry_after="17")
    assert Operation(Follow(), begun).pause_s == 17
    assert Operation(Follow(), answer(202, azure_asyncoperation=STATUS)).pause_s == 5
    assert Operation(Follow(), answer(202, azure_asyncoperation=STATUS, retry_after="99999")).pause_s == 60
