"""Access through tunnels of an Azure Bastion; the server has no address that users reach."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote
from typing import ClassVar, Literal

from ...records import named_record
from ..flow import JUMPBOX, NODES, SERVER, Demand, Flow
from ..subnet_kinds import SubnetKind
from .base import Access, Ends, TunnelPorts

_PORTS = TunnelPorts(ssh=50022, portal=8443, remote_desktop=Access.remote_desktop_port)
_PARTY = "bastion"
_CREATED = "Azure Bastion with tunnels; no public address on the server"
_OWN = "the existing network's own Azure Bastion, which must exist and open tunnels; no public address on the server"
_NET, _HOSTS = "VirtualNetwork", "Bastion hosts talk to each other"
# Azure refuses a Bastion whose security group lacks one of them; 443 among the targets is the portal.
# https://learn.microsoft.com/azure/bastion/bastion-nsg
_DEMANDS = (
    Demand("AllowHttpsInbound", "Inbound", "Tcp", "Internet", "*", ("443",), "clients of users"),
    Demand("AllowGatewayManagerInbound", "Inbound", "Tcp", "GatewayManager", "*", ("443",), "control plane"),
    Demand("AllowLoadBalancerInbound", "Inbound", "Tcp", "AzureLoadBalancer", "*", ("443",), "health probes"),
    Demand("AllowBastionHostsInbound", "Inbound", "*", _NET, _NET, ("8080", "5701"), _HOSTS),
    Demand("AllowTargetsOutbound", "Outbound", "*", "*", _NET, ("22", "443", "3389"), "SSH, portal, Remote Desktop"),
    Demand("AllowAzureCloudOutbound", "Outbound", "Tcp", "*", "AzureCloud", ("443",), "logs and certificates"),
    Demand("AllowBastionHostsOutbound", "Outbound", "*", _NET, _NET, ("8080", "5701"), _HOSTS),
    Demand("AllowSessionInformationOutbound", "Outbound", "*", "*", "Internet", ("80",), "sessions, certificates"),
)


@named_record
class Bastion(Access):
    """`bastion`: created with a new network; an existing network has its own."""

    kind: Literal["bastion"] = "bastion"
    subnet: ClassVar[SubnetKind | None] = SubnetKind(
        "bastion",
        "AzureBastionSubnet",
        "Azure Bastion",
        64,
        26,
        # https://learn.microsoft.com/azure/bastion/bastion-faq#udr
        may_be_routed=False,
        smallest="bastion_subnet_prefix",
        manages=True,
        demands=_DEMANDS,
    )

    @classmethod
    def planned(cls, ends: Ends) -> Bastion:
        """Tunnels that end at ports of the user's machine."""
        host = f"{ends.username}@127.0.0.1"
        # All hosts behind tunnels have the same address and port, so their keys are kept under their names.
        key = f"-o HostKeyAlias={quote(ends.server)}"
        jump = f"-o ProxyJump={host}:{_PORTS.ssh}"
        return cls(
            description=_CREATED if ends.network_is_new else _OWN,
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

    @classmethod
    def flows(cls, *, has_jumpbox: bool) -> Iterator[Flow]:
        """Tunnels come from the subnet of the Bastion, in an existing network from that of its own Bastion."""
        yield Flow("bastion-ssh", _PARTY, SERVER, "Tcp", ("22",), "users log in to the server by SSH")
        yield Flow("bastion-portal", _PARTY, SERVER, "Tcp", ("443",), "users open the portal")
        if has_jumpbox:
            purpose = "users reach the jumpbox by Remote Desktop"
            yield Flow("bastion-jumpbox", _PARTY, JUMPBOX, "Tcp", ("3389",), purpose)
        yield Flow("bastion-nodes", _PARTY, NODES, "Tcp", ("22",), "tunnels to nodes")
