"""Access through tunnels of an Azure Bastion; the server has no address that users reach."""

from __future__ import annotations

from shlex import quote
from typing import ClassVar

from ...records import record
from ..subnet_kinds import SubnetKind
from .base import Access, AccessKind, Ends, TunnelPorts

_PORTS = TunnelPorts(ssh=50022, portal=8443, remote_desktop=53389)


@record
class Bastion(Access):
    """`bastion`: created with a new network; an existing network has its own."""

    name: ClassVar[AccessKind] = "bastion"
    subnet: ClassVar[SubnetKind | None] = SubnetKind(
        "bastion",
        "AzureBastionSubnet",
        "Azure Bastion",
        64,
        26,
        # https://learn.microsoft.com/azure/bastion/bastion-faq#udr
        may_be_routed=False,
        smallest="bastion_subnet_prefix",
    )

    @classmethod
    def planned(cls, ends: Ends) -> Bastion:
        """Tunnels that end at ports of the user's machine."""
        host = f"{ends.username}@127.0.0.1"
        # All hosts behind tunnels have the same address and port, so their keys are kept under their names.
        key = f"-o HostKeyAlias={quote(ends.server)}"
        jump = f"-o ProxyJump={host}:{_PORTS.ssh}"
        return cls(
            kind=cls.name,
            description="Azure Bastion with tunnels; no public address on the server",
            tunnel=_PORTS,
            creates_bastion=ends.network_is_new and ends.server_is_new,
            target=host,
            ssh_options=f"-p {_PORTS.ssh} {key}",
            scp_options=f"-P {_PORTS.ssh} {key}",
            server_arguments=ends.server_arguments,
            node_options=f"{jump} -o HostKeyAlias={quote(ends.scheduler)}" if ends.scheduler else None,
            scheduler_target=ends.scheduler_target,
            address_field="privateIps",
        )

    @property
    def slow_part(self) -> str | None:
        """The Bastion host, where this deployment creates it."""
        return "Azure Bastion" if self.creates_bastion else None
