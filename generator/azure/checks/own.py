"""What the deployment's own resource group holds already, from an earlier run."""

from __future__ import annotations

from ...plan.types import Plan
from ..findings.names import own
from ..reader import Reader
from ..requests.services import OWN_RESOURCES


def own_resources(plan: Plan, reader: Reader) -> frozenset[tuple[str, str]]:
    """(type, name), folded, of what is in the group; nothing where there is no group yet."""
    return own(reader.find_pages(OWN_RESOURCES(group=plan.resource_group)))
