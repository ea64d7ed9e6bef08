"""What would stop a deletion half-way: locks, policies, a deployment that is running."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from . import ids
from .decision import Going, Obstacle
from .policies import concerns
from .seen import Denial, Lock, Seen, Thing

_ENDED = ("succeeded", "failed", "canceled", "")


def obstacles(seen: Seen, going: Sequence[Going], gone: Sequence[Thing], *, takes_group: bool) -> Iterator[Obstacle]:
    """Each with what to type."""
    touched = [each.id for each in going] + [each.id for each in gone]
    for lock in seen.locks:
        if any(_holds(lock, each) for each in touched):
            yield Obstacle(
                f"a lock ({lock.level}) at {lock.scope}: {ids.name_of(lock.id)}",
                f"ask who set it; an owner removes it with: az lock delete --ids {lock.id}",
            )
    for denial in seen.denials:
        stopped = [each for each in gone if _forbids(denial, each, takes_group=takes_group)]
        if stopped:
            sure = any(concerns(denial, each) for each in stopped)
            verb = "forbids" if sure else "may forbid (only Azure can evaluate its rule)"
            yield Obstacle(
                f"the policy '{denial.name}' {verb} to delete {_some(stopped)}",
                f"ask who assigned it for an exemption: {denial.assignment}",
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


def _forbids(denial: Denial, each: Thing, *, takes_group: bool) -> bool:
    if takes_group and (denial.spares_groups or not each.location):
        return False
    if any(ids.within(scope, each.id) for scope in denial.not_scopes):
        return False
    return concerns(denial, each) is not False


def _some(things: Iterable[Thing]) -> str:
    found = list(things)
    text = f"{found[0].type} {found[0].name}"
    return text if len(found) == 1 else f"{text} and {len(found) - 1} more"
