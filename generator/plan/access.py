"""The ways in, one function per kind of access: a tunnel through a Bastion, or an address that users reach."""

from __future__ import annotations

from shlex import quote
from typing import Literal

from .types import AccessKind, AccessPlan, NetworkPlan, TunnelPorts

_PORTS = TunnelPorts(ssh=50022, portal=8443, remote_desktop=53389)


def access_plan(network: NetworkPlan, username: str, server: str, scheduler: str) -> AccessPlan:
    """The way in; `server` and `scheduler` are the names of these VMs, `username` is the administrator's."""
    if network.access == "bastion":
        return _by_bastion(network, username, server, scheduler)
    if network.access == "hub":
        way = "private address, reached through the hub network and its VPN or ExpressRoute gateway"
        return _by_address("hub", way, username, scheduler, "privateIps")
    sources = ", ".join(network.allowed_sources)
    return _by_address("public", f"public address, open for {sources}", username, scheduler, "publicIps")


def _by_bastion(network: NetworkPlan, username: str, server: str, scheduler: str) -> AccessPlan:
    host = f"{username}@127.0.0.1"
    # All hosts behind tunnels have the same address and port, so their keys are kept under their names.
    key = f"-o HostKeyAlias={quote(server)}"
    return AccessPlan(
        kind="bastion",
        description="Azure Bastion with tunnels; no public address on the server",
        tunnel=_PORTS,
        creates_bastion=network.is_new,
        target=host,
        ssh_options=f"-p {_PORTS.ssh} {key}",
        scp_options=f"-P {_PORTS.ssh} {key}",
        node_options=f"-o ProxyJump={host}:{_PORTS.ssh} -o HostKeyAlias={quote(scheduler)}",
        scheduler_target=f"{username}@{scheduler}",
        address_field="privateIps",
    )


def _by_address(
    kind: AccessKind, description: str, username: str, scheduler: str, field: Literal["privateIps", "publicIps"]
) -> AccessPlan:
    host = f'{username}@"${{server}}"'
    return AccessPlan(
        kind=kind,
        description=description,
        tunnel=None,
        creates_bastion=False,
        target=host,
        ssh_options="",
        scp_options="",
        node_options=f"-o ProxyJump={host}",
        scheduler_target=f"{username}@{scheduler}",
        address_field=field,
    )
