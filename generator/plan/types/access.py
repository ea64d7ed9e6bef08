"""The ways from a user's machine to the server, the portal and the nodes."""

from __future__ import annotations

from typing import Literal

from ...records import record

AccessKind = Literal["bastion", "hub", "public"]


@record
class TunnelPorts:
    """Ports of the user's machine at which tunnels through the Bastion end."""

    ssh: int
    portal: int
    remote_desktop: int


@record
class AccessPlan:
    """How users come in. The arguments are text for a shell, quoted; `${server}` is the variable with the address."""

    kind: AccessKind
    description: str
    tunnel: TunnelPorts | None
    """Set where commands of the user's machine go through a Bastion; else the server's address is reached."""
    creates_bastion: bool
    target: str
    """`user@address` of the server."""
    ssh_options: str
    """Options of ssh that reach the server; may be empty."""
    scp_options: str
    """The same for scp, which spells the port in another way."""
    node_options: str
    """Options of ssh and scp that reach a node through the server."""
    scheduler_target: str
    """`user@host` of the scheduler, whose name resolves inside the network."""
    address_field: Literal["privateIps", "publicIps"]
    """Field of `az vm show --show-details` with the address that users reach."""

    @property
    def ssh(self) -> str:
        """Arguments of ssh up to the server."""
        return f"{self.ssh_options} {self.target}".lstrip()
