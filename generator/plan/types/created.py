"""What a deployment creates."""

from __future__ import annotations

from enum import Enum, auto

from ...records import record


class Purpose(Enum):
    """Why something is created. Decisions ask this, never the title."""

    RESOURCE_GROUP = auto()
    NODE_IDENTITY = auto()
    ROLES = auto()
    """Of the identities of server and nodes, on what the deployment creates and on an existing network."""
    ROLE_OF_EXISTING_SERVER = auto()
    LOCKER_ROLE = auto()
    METRICS_ROLE = auto()
    NETWORK = auto()
    ROUTE = auto()
    NAT_GATEWAY = auto()
    HUB_PEERING = auto()
    ZONE_LINK = auto()
    """Of an existing zone."""
    PUBLIC_SERVER = auto()
    """What a server gets that has a public address on its network interface."""
    BASTION = auto()
    SERVER = auto()
    JUMPBOX = auto()
    LOCKER = auto()
    LOCKER_NAME = auto()
    LOCKER_ZONE = auto()
    FILE_SYSTEM = auto()
    DATABASE = auto()
    DATABASE_ZONE = auto()
    DIAGNOSTICS = auto()


@record
class Created:
    """One resource type."""

    type: str
    path: tuple[str | int, ...]
    """Of the key that asks for it, or whose default does."""
    purpose: Purpose
    title: str
    """The purpose in words; of a file system, where it is mounted."""
    is_elsewhere: bool = False
    """Whether it is created on something that exists, outside of the deployment's own group."""
    roles: tuple[str, ...] = ()
    """Names of the built-in roles that a role assignment gives."""
