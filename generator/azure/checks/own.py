"""What the deployment's own resource group holds already, from an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...plan.types import Plan
from ..meaning.names import own
from ..reader import Reader
from ..refusals import Refused
from ..request import Call
from ..requests.services import OWN_RESOURCES


def own_resources(plan: Plan, reader: Reader) -> frozenset[tuple[str, str]]:
    """(type, name), folded, of what is in the group; nothing where there is no group yet."""
    return own(listed(reader, OWN_RESOURCES(group=plan.resource_group)))


def listed(reader: Reader, call: Call) -> Sequence[Mapping[str, Any]]:
    """A list; what Azure says is not there has nothing in it."""
    try:
        return reader.pages(call)
    except Refused as refused:
        if refused.is_missing:
            return ()
        raise
