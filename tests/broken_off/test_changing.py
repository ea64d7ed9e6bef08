"""`deploy` and `preflight --fix` change Azure: ended anywhere, the same command goes on from there."""

from __future__ import annotations

from typing import Any

from generator.cli import main
from tests.bed.arm.exchange import Asked
from tests.bed.arm.runs import FINAL
from tests.broken_off.verb import GONE, TERMS, Verb

DEPLOY = ("deploy", "minimal.yaml", "--no-preflight", "--yes")
FIX = ("preflight", "minimal.yaml", "--fix", "--yes")
RECORD = "/deployments/minimal-southcentralus"


def is_begin(asked: Asked) -> bool:
    return asked.method == "PUT" and asked.path.endswith(RECORD)


def is_look(asked: Asked) -> bool:
    return asked.method == "GET" and asked.path.endswith(RECORD)


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
    was_running = any(run.state not in FINAL for key, run in verb.arm.state.runs.items() if key.endswith(RECORD))
    verb.arm.connect()
    # It has found what runs, which may end now.
    verb.arm.at(look + 1, lambda: setattr(verb.arm.state, "pace", 1000))
    code, out, err = verb.place(*DEPLOY)
    assert (code, "is deployed" in out, "nothing new is begun" in err) == (0, True, was_running), (where, err)
    assert not (was_running and begun(verb)), where
    assert verb.state == wanted, where


def test_deploying_without_a_connection_from_any_request_on(verb: Verb) -> None:
    """At each request until it is watched and the first ones of watching, which go on in the same way."""
    empty(verb, pace=5)
    assert verb(*DEPLOY)[0] == 0
    wanted, (put,), (look, *_) = verb.state, verb.numbers(is_begin), verb.numbers(is_look)
    for number, after in [each for each in verb.ends() if each[0] <= put + 4]:
        empty(verb)
        code, out, err = verb.broken_off(number, after, *DEPLOY)
        where = (number, after, out, err)
        assert (code, "is deployed" in out, "the same command" in err) == (4, False, True), where
        assert any(text in err for text in GONE), where
        assert bool(verb.arm.state.runs) == ((number, after) > (put, False)), where
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
    """Before and after the deployment is begun, and while it is watched."""
    empty(verb, pace=5)
    assert verb(*DEPLOY)[0] == 0
    wanted, (put,), (look, *_) = verb.state, verb.numbers(is_begin), verb.numbers(is_look)
    for number, after in ((put, False), (put, True), (put + 3, True)):
        empty(verb)
        verb.killed(number, after, *DEPLOY)
        assert bool(verb.arm.state.runs) == ((number, after) > (put, False))
        goes_on(verb, wanted, look, (number, after))


# ---------------------------------------------------------------- preflight --fix


def broken(verb: Verb) -> None:
    """A provider is not registered, and terms are not accepted."""
    state = verb.arm.renewed().state
    state.providers["Microsoft.Storage"]["registrationState"] = "NotRegistered"
    agreement: Any = state.documents[TERMS]
    agreement["properties"]["accepted"] = False


def is_fixing(asked: Asked) -> bool:
    return asked.path.endswith("/register") or asked.method == "PUT"


def fixing(verb: Verb) -> list[int]:
    """The changes; the requests before and after are those of preflight."""
    numbers = verb.numbers(is_fixing)
    assert len(numbers) == 2
    return numbers


def test_fixing_without_a_connection_from_any_request_on(verb: Verb) -> None:
    """At the first change, before and after its effect, and at the second one."""
    broken(verb)
    assert verb(*FIX)[0] == 0
    wanted = verb.state
    first, second = fixing(verb)
    for number, after in ((first, False), (first, True), (second, True)):
        broken(verb)
        code, out, err = verb.broken_off(number, after, *FIX)
        assert (code, any(text in out + err for text in GONE)) == (4, True), (number, after, out, err)
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
