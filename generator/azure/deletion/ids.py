"""Resource ids: their parts, and the call that deletes what an id names."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from ..request import Call, Request
from ..requests import deletion, resource_manager

_HOLE = re.compile(r"\\\{(\w+)\\\}")


def same(one: str, other: str) -> bool:
    """Whether two ids name the same thing; Azure keeps them in any case."""
    return one.casefold().rstrip("/") == other.casefold().rstrip("/")


def within(scope: str, other: str) -> bool:
    """Whether an id is a scope or below it."""
    return same(scope, other) or other.casefold().startswith(f"{scope.casefold().rstrip('/')}/")


def type_of(resource_id: str) -> str:
    """Resource type of an id; that of the last provider in it."""
    namespace, *parts = resource_id.rpartition("/providers/")[2].split("/")
    return "/".join([namespace, *parts[::2]])


def name_of(resource_id: str) -> str:
    """Last part of an id."""
    return resource_id.rstrip("/").rpartition("/")[2]


def call_for(request: Request, resource_id: str, body: object = None) -> Call:
    """The request for what an id names; ValueError where the id is not of its kind."""
    found = _pattern(request.path).fullmatch(resource_id.rstrip("/"))
    if found is None:
        raise ValueError(f"{resource_id} is not {request.path}")
    return request(body=body, **found.groupdict())


def removal_of(resource_id: str) -> Call | None:
    """The call that deletes a resource, None for a type that no deployment makes."""
    if type_of(resource_id).casefold() == "microsoft.resources/deployments":
        return resource_manager.delete_record(resource_id)
    request = _removals().get(type_of(resource_id).casefold())
    return call_for(request, resource_id) if request is not None else None


@cache
def _removals() -> Mapping[str, Request]:
    return {kind.casefold(): request for kind, request in deletion.REMOVALS.items()}


@cache
def _pattern(path: str) -> re.Pattern[str]:
    text = _HOLE.sub(lambda hole: f"(?P<{hole[1]}>{'.+' if hole[1] == 'scope' else '[^/]+'})", re.escape(path))
    return re.compile(text, re.IGNORECASE)
