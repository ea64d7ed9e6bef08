"""What deleting the resource group does not delete."""

from __future__ import annotations

from ...records import record


@record
class ResourceId:
    """The parts of the id of a top-level resource, of which scopes are made."""

    subscription: str
    resource_group: str
    name: str


@record
class CleanupPlan:
    """What must be deleted separately, and what is left because it is not the deployment's."""

    tag: str
    """Name of the tag whose value is the deployment to which a resource, or its resource group, belongs."""
    principals: tuple[str, ...]
    """Outputs of the deployment with the ids of identities that have roles outside of the resource group."""
    linked_zone: ResourceId | None
    """An existing DNS zone that keeps its link to the network."""
    left: tuple[str, ...]
    """What was there before, in words."""
