"""What changes nodes: sent once, and known by its request id ever after.

A server that has seen the id answers 409 and does nothing; the operation is then looked up. So is one whose answer was
lost: `GET /operations/?request_id=` has it, or nothing was done.
Source: https://learn.microsoft.com/azure/cyclecloud/api
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..records import record
from ..words.terminal import printable
from .refusals import Lost, NotAsked, Refused
from .request import Call
from .requests import documented
from .site import Site


@record
class Outcome:
    """What the server took: 202 may mean that it took some of it only."""

    operation: str
    """Its id; empty where the server gives none."""
    refused: tuple[tuple[str, str], ...]
    """(node or node array, reason) of what it did not take."""
    is_repeated: bool
    """Whether an earlier try had its effect; which nodes were refused then is not known any more."""


def act(site: Site, call: Call, request_id: str) -> Outcome:
    """Send a change that has `requestId` in its body. Raises Refused; NotAsked where it is not known if it was done."""
    if not isinstance(call.body, Mapping) or call.body.get("requestId") != request_id:
        raise TypeError(f"{call.request.path} is sent without its request id")
    try:
        return _outcome(site.change(call).body)
    except Lost as lost:
        found = _operation(site, request_id, lost)
        if found is None:
            raise NotAsked(f"{lost.reason.partition(' after the request')[0]}; nothing was done") from None
        return found
    except Refused as refused:
        if refused.status != 409:
            raise
        found = _operation(site, request_id, refused)
        if found is None:
            raise
        return found


def _operation(site: Site, request_id: str, otherwise: Exception) -> Outcome | None:
    """The operation of an earlier try; None where the server has never seen the id."""
    try:
        listed = site.get(documented.OPERATIONS({"request_id": request_id}))
    except Refused as refused:
        if refused.is_missing:
            return None
        raise otherwise from None
    except NotAsked:
        raise otherwise from None
    items = listed.get("operations") if isinstance(listed, Mapping) else listed
    if not isinstance(items, list):
        raise otherwise
    if not items:
        return None
    first = items[0] if isinstance(items[0], Mapping) else {}
    return Outcome(printable(str(first.get("id") or first.get("operationId") or "")), (), True)


def _outcome(body: Any) -> Outcome:
    """Of 202: each node with its status, each set with how many were added."""
    found = body if isinstance(body, Mapping) else {}
    refused = [
        (str(node.get("name") or node.get("id") or "a node"), str(node.get("error") or node.get("status")))
        for node in _rows(found.get("nodes"))
        if node.get("error") or str(node.get("status", "OK")).casefold() == "error"
    ]
    refused += [
        (f"node array {number}", str(each["message"]))
        for number, each in enumerate(_rows(found.get("sets")), start=1)
        if each.get("message")
    ]
    said = tuple((printable(name), printable(reason)) for name, reason in refused)
    return Outcome(printable(str(found.get("operationId") or "")), said, False)


def _rows(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
