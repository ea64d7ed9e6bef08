"""Ended anywhere and continued, the connection lost at every request, two people at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from generator.azure.clients import Clients
from generator.azure.deletion.decide import Stopped
from generator.azure.refusals import NotAsked
from tests.bed.arm import failures
from tests.bed.arm.exchange import RefusedError
from tests.bed.plans import plan_from
from tests.delete.place import Place

PLAN = plan_from()
YES = ("minimal", "--yes", "minimal")


class KilledError(BaseException):
    """The process is gone."""


@contextmanager
def killed_at(number: int) -> Iterator[list[str]]:
    """Ends the command when a request has changed something; gives what was sent until then."""
    send, sent = Clients.send, [""][:0]
    lock = threading.Lock()

    def counted(self: Clients, request: Any, **more: Any) -> Any:
        if request.method == "GET":
            return send(self, request, **more)
        with lock:
            sent.append(f"{request.method} {request.url}")
            is_last = len(sent) == number
        if len(sent) > number:
            raise KilledError
        answer = send(self, request, **more)
        if is_last:
            raise KilledError
        return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Clients, "send", counted)
        yield sent


@pytest.mark.parametrize("alone", [False, True], ids=["group", "one by one"])
def test_it_is_continued_wherever_it_was_ended(place: Place, alone: bool) -> None:
    """A stack that denies. Most steps of the longer way are alike, so not all of them are taken there."""
    number, was_killed = 1, True
    while was_killed:
        place.renewed().deployed("minimal", "node-1").stacked("minimal")
        left: list[str] = []
        if alone:
            group = place.state.resources[place.group("minimal").lower()]
            group["tags"], left = {}, [group["id"].lower()]
        with killed_at(number) as sent, suppress(KilledError):
            place.delete(PLAN)
        was_killed = len(sent) >= number
        if was_killed:
            assert place.delete(PLAN), number
        assert place.left("minimal") == left, number
        number += 5 if alone else 1
    assert number > 5


def test_the_connection_may_be_lost_at_every_request(place: Place) -> None:
    assert place.deployed("minimal", "node-1").stacked("minimal").delete(PLAN)
    lines = list(dict.fromkeys((each.method, each.path) for each in place.arm.requests if "operation" not in each.path))
    assert len(lines) > 15
    for method, path in lines:
        place.renewed().deployed("minimal", "node-1").stacked("minimal")
        place.arm.lose(method, path, after_effect=True, times=9)
        with pytest.raises((NotAsked, Stopped)):
            place.delete(PLAN)
        if not place.arm.changes and not place.arm.posts:
            continue  # and so it is as it was
        place.arm.faults.due.clear()
        assert place.delete(PLAN), (method, path)
        assert place.left("minimal") == [], (method, path)


def test_the_connection_may_be_lost_while_azure_works(place: Place) -> None:
    place.deployed("minimal", "node-1")
    place.arm.lose("GET", "*/operation*", after_effect=False, times=9)
    assert place(*YES)[0] == 4
    place.arm.faults.due.clear()
    code, _, err = place(*YES)
    assert code == 0, err
    assert place.left("minimal") == []


def test_short_losses_and_throttling_are_not_noticed(place: Place) -> None:
    place.deployed("minimal", "node-1")
    place.arm.lose("GET", "*", after_effect=False)
    place.arm.lose("DELETE", "*", after_effect=True)
    place.arm.throttle(times=3)
    code, _, err = place(*YES)
    assert code == 0, err
    assert place.left("minimal") == []


@pytest.mark.parametrize("times", [2, 99])
def test_what_a_stack_has_denied_may_be_denied_for_a_while(place: Place, times: int) -> None:
    place.deployed("minimal").stacked("minimal")
    late = RefusedError(403, "DenyAssignmentAuthorizationFailed", "the access is denied because of the deny assignment")
    place.arm.fail("DELETE", place.group("minimal"), late, times=times)
    code, _, err = place(*YES)
    if times > 2:
        assert (code, "DenyAssignmentAuthorizationFailed" in err) == (4, True)
        place.arm.faults.due.clear()
        code, _, err = place(*YES)
    assert (code, place.left("minimal")) == (0, []), err


@pytest.mark.parametrize("status", [403, 409])
def test_a_policy_that_forbids_it_is_named_and_it_goes_on_without_it(place: Place, status: int) -> None:
    place.deployed("minimal")
    denied = failures.disallowed_by_policy("minimal-rg", "machines-stay", "keep-machines")
    denied.status = status
    place.arm.fail("DELETE", place.group("minimal"), denied)
    code, _, err = place(*YES)
    assert (code, "with everything in it: RequestDisallowedByPolicy: " in err) == (4, True), err
    hint = "hint: the policy 'keep-machines', assigned as 'machines-stay' (/providers/Microsoft.Management/"
    assert (hint in err, "forbids it: ask who assigned it for an exemption; then run" in err) == (True, True), err
    code, _, err = place(*YES)
    assert (code, place.left("minimal")) == (0, []), err


def test_two_people_at_once_do_not_stop_each_other(place: Place) -> None:
    place.deployed("minimal").stacked("minimal")
    agreed, done = threading.Barrier(2), [True][:0]

    def delete() -> None:
        done.append(place.delete(PLAN, lambda: agreed.wait(20)))

    threads = [threading.Thread(target=delete) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert done == [True, True]
    assert place.left("minimal") == []
    assert place.arm.refused == []
