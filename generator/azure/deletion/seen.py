"""What Azure says is there."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ... import catalog


class Thing(Struct, frozen=True):
    id: str
    type: str
    name: str
    tags: Mapping[str, str] = field(default_factory=dict)
    location: str = ""
    managed_by: str = ""
    """Id of the resource that holds it, such as the machine of a disk."""

    @property
    def is_machine(self) -> bool:
        """Whether nodes can be in it."""
        row = catalog.resource_types().get(self.type.casefold())
        return row is not None and row.node == "machine"


class Role(Struct, frozen=True):
    id: str
    scope: str
    principal: str


class Lock(Struct, frozen=True):
    """A management lock; `scope` is what it is on."""

    id: str
    scope: str
    level: str


class Record(Struct, frozen=True):
    """A deployment in the history of Azure; it holds no resource."""

    id: str
    state: str


class NotSeen(Struct, frozen=True):
    """Something that Azure does not let the caller see, and why. A connection that is lost ends the whole."""

    what: str
    reason: str
    hint: str | None = None
    is_leftover: bool = True
    """Whether something may stay in Azure because of it."""


class Seen(Struct, frozen=True):
    subscription: str
    group: Thing | None
    """The resource group; None when there is none."""
    group_state: str
    """Its state: `Succeeded`, `Deleting`."""
    resources: tuple[Thing, ...]
    """What is in the group."""
    elsewhere: tuple[Thing, ...]
    """What carries the deployment's tag in other groups."""
    server: str
    """Id of the CycleCloud server; empty when it is not there."""
    data_disks: tuple[str, ...]
    """Ids of the disks that stay when the server's machine is deleted."""
    principals: tuple[str, ...]
    """Object ids of the identities of this deployment."""
    roles: tuple[Role, ...]
    peerings: tuple[str, ...]
    """Of the hub, to exactly this network."""
    links: tuple[str, ...]
    """Of existing DNS zones, to exactly this network."""
    diagnostics: tuple[str, ...]
    records: tuple[Record, ...]
    stack: str
    """Id of the deployment stack of that name; empty when there is none."""
    stack_denies: bool
    """Whether its deny settings are in the way of whoever deletes what it made."""
    locks: tuple[Lock, ...]
    not_seen: tuple[NotSeen, ...]
