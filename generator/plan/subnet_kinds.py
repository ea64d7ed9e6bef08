"""What is known about a subnet by its role alone: its name, its place in a new network, what Azure asks of it."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from .. import catalog
from .flow import Demand

SubnetRole = str
"""What a subnet is for: a key of `network.subnets`, and a role of `modules/network.bicep`."""


class SubnetKind(Struct, frozen=True):
    """The subnets of one role, whatever the definition."""

    role: SubnetRole
    name: str
    """Name in a new network; Bastion insists on its own."""
    service: str
    """Who needs it, for messages."""
    offset: int | None = None
    """Addresses from the start of the second half of the address space; None: at its end."""
    prefix_length: int | None = None
    """None: as large as the file system asks."""
    delegation: str | None = None
    """Resource provider that the subnet is delegated to, for example `Microsoft.Netapp/volumes`."""
    uses_nat: bool = False
    """Whether what is in it calls Azure over the internet."""
    may_be_routed: bool = True
    """Whether its default route may lead to a firewall."""
    manages: bool = False
    """Whether its machines may open connections to any network: the server, from which everything is managed, and
    Bastion. From other subnets only the table of flows leads into private networks."""
    demands: tuple[Demand, ...] = ()
    """Rules that its service wants to find in the security group."""
    smallest: Literal[
        "bastion_subnet_prefix", "database_subnet_prefix", "lustre_subnet_prefix", "netapp_subnet_prefix",
        "smallest_subnet_prefix",
    ] = "smallest_subnet_prefix"  # fmt: skip
    """Which of the catalogue's limits is that of its service."""

    @property
    def longest_prefix(self) -> int:
        """That its service accepts."""
        return getattr(catalog.limits(), self.smallest).value  # type: ignore[no-any-return]
