"""`what-if`, `diff --deployed` and `preflight` only ask: ended anywhere they have changed nothing, and say so."""

from __future__ import annotations

import pytest

from tests.broken_off.verb import GONE, Verb
from tests.preflight.command import ASKING

VERBS = {
    "what-if": ("what-if", "minimal.yaml"),
    "diff": ("diff", "minimal.yaml", "--deployed"),
    "preflight": ("preflight", "minimal.yaml"),
}


@pytest.mark.parametrize("name", VERBS)
def test_the_connection_is_gone_at_any_request(verb: Verb, name: str) -> None:
    """At each request, of the checks of preflight, which ask at the same time, at every sixth, and of diff, which
    asks what what-if asks, at every second; where it is no GET also after it was heard."""
    words = VERBS[name]
    whole, state = verb(*words), verb.state
    assert whole[0] == 0, whole
    for number, after in verb.ends(every={"preflight": 6, "diff": 2}.get(name, 1)):
        code, out, err = verb.broken_off(number, after, *words)
        assert code == 4, (number, after, out, err)
        assert any(text in out + err for text in GONE), (number, after, out, err)
        if name == "preflight":
            assert "not known" in out.splitlines()[-1]
        else:
            assert (out, "nothing was changed" in err) == ("", True)
        assert (verb.arm.changes, verb.state) == ([], state)
        assert {each.rpartition("/")[2].casefold() for each in verb.arm.posts} <= ASKING
        assert verb(*words) == whole, (number, after)


@pytest.mark.parametrize("name", VERBS)
def test_the_process_is_killed(verb: Verb, name: str) -> None:
    """Once, at the last but one request: what is lost with a process is the same at each of them."""
    words = VERBS[name]
    whole, state = verb(*words), verb.state
    verb.killed(len(verb.arm.requests) - 1, True, *words)
    assert (verb.arm.changes, verb.state) == ([], state)
    assert verb(*words) == whole
