"""`deploy` and `preflight --fix` change Azure: ended anywhere, the same command goes on from there."""

from __future__ import annotations

from typing import Any

import pytest

from generator.cli import main
from tests.bed.arm.exchange import Asked
from tests.bed.arm.runs import FINAL
from tests.broken_off.verb import GONE, TERMS, Verb

DEPLOY = ("deploy", "minimal.yaml", "--no-preflight", "--yes")
FIX = ("preflight", "minimal.yaml", "--fix", "--yes")
NAME = "/minimal-southcentralus"
RECORD = f"/deployments{NAME}"


def is_begin(asked: Asked) -> bool:
    return asked.method == "PUT" and asked.path.endswith(NAME)


def is_look(asked: Asked) -> bool:
    """The first one looks whether it is a stack."""
    return asked.method == "GET" and asked.path.endswith(NAME)


def is_command(asked: Asked) -> bool:
    return asked.path.endswith("/runCommand")


def begun(verb: Verb) -> list[int]:
    """What Azure answered to those who began a deployment."""
    return [each.status for each in verb.arm.requests if is_begin(each)]


def empty(verb: Verb, pace: int = 1) -> None:
    """Nothing is deployed, and what will be takes many looks."""
    verb.arm.renewed().state.pace = pace


def goes_on(verb: Verb, wanted: dict[str, Any], look: int, where: object) -> None:
    """The same command again: what runs is not begun once more, and in the end all is there.

    `look` is the number of the request that finds it.
    """
    was_running = any(run.state not in FINAL for key, run in verb.arm.state.runs.items() if RECORD in key)
    verb.arm.connect()
    # What runs ends when it has been found.
    verb.arm.state.pace = 0
    verb.arm.at(look + 1, lambda: setattr(verb.arm.state, "pace", 1000))
    code, out, err = verb.place(*DEPLOY)
    assert (code, "is deployed" in out, "nothing new is started" in err) == (0, True, was_running), (where, err)
    assert not (was_running and begun(verb)), where
    assert verb.state == wanted, where


def test_deploying_without_a_connection_from_any_request_on(verb: Verb) -> None:
    """At each request until it is watched."""
    empty(verb, pace=5)
    assert verb(*DEPLOY)[0] == 0
    wanted, (put,), (_, look, *_) = verb.state, verb.numbers(is_begin), verb.numbers(is_look)
    for number, after in [each for each in verb.ends() if each[0] <= put + 1]:
        empty(verb)
        code, out, err = verb.broken_off(number, after, *DEPLOY)
        where = (number, after, out, err)
        assert (code, "is deployed" in out, "the same command" in err) == (4, False, True), where
        assert any(text in err for text in GONE), where
        assert bool(verb.arm.state.runs) == ((number, after) > (put, False)), where
        # Elsewhere Azure was only asked, so that there is the same to go on with.
        if number in (1, put):
            goes_on(verb, wanted, look, where)


def test_watching_without_a_connection_from_any_request_on(verb: Verb) -> None:
    """By the same command, which attaches, until the server is asked for its first boot."""
    empty(verb, pace=5)
    assert verb(*DEPLOY)[0] == 0
    wanted, (put,), (_, look, *_) = verb.state, verb.numbers(is_begin), verb.numbers(is_look)
    empty(verb, pace=5)
    verb.broken_off(put, True, *DEPLOY)
    begun_only = verb.kept()
    assert verb(*DEPLOY)[0] == 0
    (command,) = verb.numbers(is_command)
    assert command > 10
    for number in range(1, command):
        verb.back(begun_only)
        code, out, err = verb.broken_off(number, False, *DEPLOY)
        where = (number, out, err)
        assert (code, out, "the same command" in err) == (4, "", True), where
        assert any(text in err for text in GONE), where
    goes_on(verb, wanted, look, where)


def test_when_it_is_deployed_the_server_need_not_answer(verb: Verb) -> None:
    empty(verb, pace=5)
    assert verb(*DEPLOY)[0] == 0
    wanted, (command,) = verb.state, verb.numbers(is_command)
    empty(verb, pace=5)
    code, out, err = verb.broken_off(command, True, *DEPLOY)
    assert (code, "is deployed" in out, "the server cannot be asked for its first boot" in err) == (0, True, True)
    assert verb.state == wanted


def test_deploying_is_killed(verb: Verb) -> None:
    """Before and after Azure has begun the deployment."""
    empty(verb, pace=5)
    assert verb(*DEPLOY)[0] == 0
    wanted, (put,), (_, look, *_) = verb.state, verb.numbers(is_begin), verb.numbers(is_look)
    for after in (False, True):
        empty(verb)
        verb.killed(put, after, *DEPLOY)
        assert bool(verb.arm.state.runs) == after
        goes_on(verb, wanted, look, (put, after))


def test_two_deploy_at_once(verb: Verb) -> None:
    """The second begins when the first is about to: one deployment, which both watch to its end."""
    empty(verb, pace=5)
    assert verb(*DEPLOY)[0] == 0
    wanted, (put,) = verb.state, verb.numbers(is_begin)
    empty(verb, pace=5)
    verb.arm.connect()
    ended: list[int] = []

    def second() -> None:
        verb.arm.state.pace = 0
        verb.arm.at(1000, lambda: None)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("generator.cli.live.news", interrupted)
            ended.append(main(list(DEPLOY)))
        verb.arm.state.pace = 5

    verb.arm.at(put, second)
    code, out, err = verb.place(*DEPLOY)
    assert (code, ended, "is deployed" in out) == (0, [130], True), err
    assert (sorted(begun(verb)), verb.state) == ([201, 409], wanted)


def interrupted(*_: Any) -> list[str]:
    raise KeyboardInterrupt


# ---------------------------------------------------------------- preflight --fix


def broken(verb: Verb) -> None:
    """A provider is not registered, and terms are not accepted."""
    state = verb.arm.renewed().state
    state.providers["Microsoft.Storage"]["registrationState"] = "NotRegistered"
    agreement: Any = state.documents[TERMS]
    agreement["properties"]["accepted"] = False


def is_fixing(asked: Asked) -> bool:
    return asked.path.endswith("/register") or asked.method == "PUT"


def is_sign_in(asked: Asked) -> bool:
    """The first question of every preflight."""
    return asked.path.count("/") == 2


def fixing(verb: Verb) -> list[int]:
    """The changes; the requests before and after are those of preflight."""
    numbers = verb.numbers(is_fixing)
    assert len(numbers) == 2
    return numbers


def test_fixing_without_a_connection_from_any_request_on(verb: Verb) -> None:
    """At each request from the first change until it looks again, of a change before and after its effect."""
    broken(verb)
    assert verb(*FIX)[0] == 0
    wanted = verb.state
    first, second = fixing(verb)
    again = next(n for n in verb.numbers(is_sign_in) if n > second)
    for number, after in [each for each in verb.ends() if first <= each[0] <= again]:
        broken(verb)
        code, out, err = verb.broken_off(number, after, *FIX)
        assert (code, any(text in out + err for text in GONE)) == (4, True), (number, after, out, err)
        if number in (first, second):
            code, out, err = verb(*FIX)
            assert (code, verb.state) == (0, wanted), (number, after, out, err)


def test_fixing_is_killed(verb: Verb) -> None:
    """When Azure has done the first change."""
    broken(verb)
    assert verb(*FIX)[0] == 0
    wanted, number = verb.state, verb.numbers(is_fixing)[0]
    broken(verb)
    verb.killed(number, True, *FIX)
    code, out, err = verb(*FIX)
    assert (code, verb.state) == (0, wanted), (out, err)


def test_two_fix_at_once(verb: Verb) -> None:
    """The second does all of it while the first is about to make its first change."""
    broken(verb)
    assert verb(*FIX)[0] == 0
    wanted, number = verb.state, verb.numbers(is_fixing)[0]
    broken(verb)
    verb.arm.connect()
    ended: list[int] = []

    verb.arm.at(number, lambda: ended.append(main(list(FIX))))
    code, out, err = verb.place(*FIX)
    assert (code, ended, verb.state) == (0, [0], wanted), (out, err)
