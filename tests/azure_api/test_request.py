"""What is declared about requests, and what a call makes of it."""

from __future__ import annotations

import pytest

from generator.azure.request import Call, Request
from generator.azure.requests import declared
from generator.azure.requests.subscriptions import DENY_ASSIGNMENTS, PERMISSIONS, PROVIDER, REGISTER

DECLARED = dict(declared())
ME = "00000000-0000-0000-0000-000000000001"
MANAGER = "https://management.azure.com"


def test_every_request_is_declared_once() -> None:
    """Two declarations of one path could name two versions of it."""
    paths = [(each.method, each.path.casefold(), each.query) for each in DECLARED.values()]
    assert len(paths) == len(set(paths))
    assert len(paths) > 5


@pytest.mark.parametrize("request_", DECLARED.values(), ids=DECLARED)
def test_every_request_names_its_source(request_: Request) -> None:
    assert request_.source.startswith("https://")
    assert request_.path.startswith("/")
    assert not request_.changes_nothing or request_.method == "POST"


def test_values_are_quoted_and_cannot_leave_their_segment() -> None:
    assert PROVIDER(namespace="a b/c").path == "/subscriptions/{subscription}/providers/a%20b%2Fc"
    for wrong in ("", ".", ".."):
        with pytest.raises(ValueError, match="not a part of a path"):
            PROVIDER(namespace=wrong)
    with pytest.raises(ValueError, match="not a part of a path"):
        PERMISSIONS(scope="/subscriptions/x/../y")
    with pytest.raises(TypeError, match="no namespace"):
        DENY_ASSIGNMENTS(scope="/subscriptions/{subscription}", namespace="x")


def test_text_in_a_filter_does_not_end_it() -> None:
    roles = Request("GET", "/x", "1", "https://x", query=(("$filter", "principalId eq '{who}'"),))
    assert dict(roles(who="o'x").query)["$filter"] == "principalId eq 'o''x'"


def lines(call: Call) -> str:
    return call.line(ME, MANAGER)


def test_the_line_for_az_does_the_same() -> None:
    assert lines(REGISTER(namespace="Microsoft.X y")) == (
        f"az provider register --namespace 'Microsoft.X y' --wait --subscription {ME}"
    )
    assert lines(DENY_ASSIGNMENTS(scope="/subscriptions/{subscription}")) == (
        f"az rest --method get --url '{MANAGER}/subscriptions/{ME}/providers/Microsoft.Authorization/denyAssignments"
        "?api-version=2022-04-01&$filter=atScope()'"
    )
    post = Request("POST", "/subscriptions/{subscription}/x", "1", "https://x", changes_nothing=True)
    assert lines(post(body={"a": "b c"})).endswith("""x?api-version=1' --body '{"a": "b c"}'""")
