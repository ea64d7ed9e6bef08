"""`what-if`, `diff --deployed` and `preflight` only ask: ended anywhere they have changed nothing, and say so."""

from __future__ import annotations

import pytest

from tests.bed.plans import plan_from
from tests.broken_off.verb import GONE, Verb
from tests.preflight.asked import found_by
from tests.preflight.command import ASKING

PLAN = plan_from()
VERBS = {
    "what-if": ("what-if", "minimal.yaml"),
    "diff": ("diff", "minimal.yaml", "--deployed"),
    "preflight": ("preflight", "minimal.yaml"),
}


@pytest.mark.parametrize("name", VERBS)
def test_the_connection_is_gone_at_any_request(verb: Verb, name: str) -> None:
    """At each request, of preflight at every sixth; where it is no GET also after it was heard."""
    words = VERBS[name]
    whole, state = verb(*words), verb.state
    assert whole[0] == 0, whole
    for number, after in verb.ends()[:: 6 if name == "preflight" else 1]:
        code, out, err = verb.broken_off(number, after, *words)
        assert code == 4, (number, after, out, err)
        assert any(text in out + err for text in GONE), (number, after, out, err)
        if name == "preflight":
            assert "not known" in out.splitlines()[-1]
        else:
            assert (out, "nothing was changed" in err) == ("", True)
        assert (verb.arm.changes, verb.state) == ([], state)
        assert {each.rpartition("/")[2].casefold() for each in verb.arm.posts} <= ASKING
    assert verb(*words) == whole


def test_the_connection_is_gone_at_any_request_of_a_check(verb: Verb) -> None:
    """Preflight without the command around it, but for the checks of the built folder."""
    verb.arm.connect()
    assert found_by(verb.arm, PLAN) == []
    ends = verb.ends()
    assert len(ends) > 20
    for number, after in ends:
        verb.arm.connect()
        verb.arm.break_off(number, after_effect=after)
        found = found_by(verb.arm, PLAN)
        assert found, (number, after)
        assert all(each.endswith("?") for each in found), (number, after, found)


@pytest.mark.parametrize("name", VERBS)
def test_the_process_is_killed(verb: Verb, name: str) -> None:
    """Once, at the last but one request: what is lost with a process is the same at each of them."""
    words = VERBS[name]
    whole, state = verb(*words), verb.state
    verb.killed(len(verb.arm.requests) - 1, True, *words)
    assert (verb.arm.changes, verb.state) == ([], state)
    assert verb(*words) == whole
