"""Resource ids: their parts, and the call that deletes what an id names."""

from __future__ import annotations

from ... import catalog
from ..request import Call
from ..requests import resource_manager


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


def removal_of(resource_id: str) -> Call | None:
    """The call that deletes a resource, None for a type that no deployment makes."""
    kind = type_of(resource_id).casefold()
    row = catalog.resource_types().get(kind)
    is_known = kind == "microsoft.resources/deployments" or (row is not None and row.removal is not None)
    return resource_manager.delete_by_id(resource_id) if is_known else None
