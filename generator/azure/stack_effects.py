"""What a deployment stack does beyond its deployment: what it denies, and what leaves it.

Azure's own what-if of a stack is no question: a PUT makes a resource that stays for days, which a verb that only asks
must not send. So Azure is asked what the template would do, and the rest follows from what is sent and from what the
stack has. Source: `DeploymentStacksWhatIfResultsAtSubscription_CreateOrUpdate`,
https://learn.microsoft.com/rest/api/resources/deployment-stacks-what-if-results-at-subscription/create-or-update
"""

from __future__ import annotations

from collections.abc import Iterator

from ..records import record
from ..words.counts import counted, first_lines
from ..words.terminal import printable
from .kinds import Seen
from .resource_ids import Resource, resource
from .what_if import WhatIf

_SHOWN = 12
_NAMED_LATE = "microsoft.authorization/roleassignments"
"""Azure knows the names of roles only when it has made the identities: its what-if leaves their modules out."""


@record
class Effects:
    """Nothing is ever deleted: what leaves the stack stays in Azure."""

    denies: str
    """The mode of the deny settings that it has and keeps; `none` where it denies nothing."""
    leaving: tuple[Resource, ...]
    """What is in its record and not among what the template would make."""
    is_certain: bool
    """False where Azure could not say of everything what the template would make."""


def effects(seen: Seen | None, answer: WhatIf) -> Effects:
    """Of a stack, None where there is none yet, and of what the template would do."""
    if seen is None:
        return Effects("none", (), is_certain=True)
    named = {row.resource.id.casefold() for row in answer.rows if row.action != "ignore"}
    managed = [resource(each) for each in seen.managed]
    leaving = tuple(
        each
        for each in managed
        if each.id.casefold() not in named and (answer.is_complete or each.type.casefold() != _NAMED_LATE)
    )
    mode = str((seen.denials or {}).get("mode")) if seen.denies else "none"
    return Effects(mode, leaving, answer.is_complete)


def text(found: Effects) -> str:
    """A paragraph below that of the what-if."""
    return "".join(f"{line}\n" for line in _lines(found))


def _lines(found: Effects) -> Iterator[str]:
    yield ""
    yield "as a deployment stack:"
    yield "  nothing is deleted: what the template no longer names leaves the stack, and stays in Azure"
    if found.denies == "none":
        yield "  nothing is denied to anybody"
    else:
        yield f"  its deny settings stay ({printable(found.denies)}); `cycleforge delete` ends them first"
    if found.leaving:
        perhaps = "" if found.is_certain else " perhaps, for Azure cannot say of everything what the template makes"
        yield f"  {counted(len(found.leaving), 'resource')} of the stack would leave it{perhaps}:"
        rows = [f"    {printable(f'{each.type} {each.name}')}" for each in found.leaving]
        yield from first_lines(rows, _SHOWN)


def as_json(found: Effects) -> dict[str, object]:
    """Plain data."""
    return {
        "denies": found.denies,
        "leaving": [each.id for each in found.leaving],
        "is_certain": found.is_certain,
    }
