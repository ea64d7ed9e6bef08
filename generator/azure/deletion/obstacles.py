"""What would stop a deletion half-way: locks, a deployment that is running."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from . import ids
from .decision import Going, Obstacle
from .seen import Lock, Seen, Thing

_ENDED = ("succeeded", "failed", "canceled", "")


def obstacles(seen: Seen, going: Sequence[Going], gone: Sequence[Thing]) -> Iterator[Obstacle]:
    """Each with what to type."""
    touched = [each.id for each in going] + [each.id for each in gone]
    for lock in seen.locks:
        if any(_holds(lock, each) for each in touched):
            yield Obstacle(
                f"a lock ({lock.level}) at {lock.scope}: {ids.name_of(lock.id)}",
                f"ask who set it; an owner removes it with: az lock delete --ids {lock.id}",
            )
    for each in seen.records:
        if each.state.casefold() not in _ENDED:
            yield Obstacle(
                f"the deployment {ids.name_of(each.id)} is not finished ({each.state})",
                "wait for it, or: az deployment sub cancel --name " + ids.name_of(seen.records[-1].id),
            )


def _holds(lock: Lock, resource_id: str) -> bool:
    """A lock protects what is below it, and what is above it from being deleted with it.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/management/lock-resources
    """
    return ids.within(lock.scope, resource_id) or ids.within(resource_id, lock.scope)
