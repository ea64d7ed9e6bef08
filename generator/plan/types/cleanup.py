"""What deleting a deployment has to find, in which order, and what it leaves."""

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
    """How the README finds what is the deployment's, whether it ever succeeded or not."""

    tag: str
    """Name of the tag whose value is the deployment to which a resource, or its resource group, belongs."""
    types: tuple[str, ...]
    """Resource types, each after those that use it, for a group that must stay."""
    types_without_data: tuple[str, ...]
    """Those of them whose resources all go when the data is kept."""
    names_without_data: tuple[tuple[str, tuple[str, ...]], ...]
    """(type, names) of what else goes then: other resources of these types serve the data."""
    data: tuple[str, ...]
    """What holds data, in words."""
    serves_data: tuple[str, ...]
    """What is kept because the data cannot be reached without it, in words."""
    other_subscriptions: tuple[str, ...]
    """Subscriptions in which its identities have roles, in small letters and sorted; without its own, where that is in
    the definition."""
    linked_zones: tuple[ResourceId, ...]
    """Existing DNS zones that keep their link to the network."""
    left: tuple[str, ...]
    """What was there before, in words."""
