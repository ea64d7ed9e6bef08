# ruff: noqa: E501 - sentences and commands stand in one line each
"""README section about the way to server, portal and nodes, for each kind of access."""

from __future__ import annotations

from ..plan.types import Plan
from .readme_text import (
    PORTAL_TUNNEL_PORT,
    RDP_TUNNEL_PORT,
    SSH_TUNNEL_PORT,
    by_tunnel,
    count,
    jump_option,
    paragraphs,
    q,
    scheduler_target,
    server_address_command,
    server_target,
    shell,
)


def connect(plan: Plan) -> str:
    """The way to server, portal and nodes for the access of this deployment."""
    if plan.network.access == "bastion":
        body = _connect_by_bastion(plan)
    elif plan.network.access == "hub":
        body = _connect_by_hub(plan)
    else:
        body = _connect_by_public_address(plan)
    port = f" -p {SSH_TUNNEL_PORT} -o HostKeyAlias={q(plan.server.vm_name)}" if by_tunnel(plan) else ""
    alias = f" -o HostKeyAlias={q(plan.slurm.scheduler.host_name)}" if by_tunnel(plan) else ""
    log_in = plan.slurm.login.count > 0
    return paragraphs(
        "## Connect",
        body,
        "On the server, the log of the first boot and its status:",
        shell(
            f"ssh{port} {server_target(plan)} sudo cat /var/lib/cycleforge/status.json",
            f"ssh{port} {server_target(plan)} sudo tail -n 50 /var/log/cycleforge/bootstrap.log",
        ),
        f"Log in to the portal as `{plan.admin.username}` with the password that you gave. The CycleCloud command line is installed on the "
        "server; it asks for the same password once:",
        shell(
            f"ssh -t{port} {server_target(plan)} cyclecloud initialize --url=https://localhost --username={plan.admin.username} --verify-ssl=false",
            f"ssh{port} {server_target(plan)} cyclecloud show_cluster {q(plan.slurm.cluster_name)}",
        ),
        "The scheduler, once the cluster runs (its name resolves inside the virtual network):",
        shell(f"ssh {jump_option(plan)}{alias} {scheduler_target(plan)}"),
        "`cyclecloud show_cluster` prints the addresses of the login nodes; users work there and see the same home folders."
        if log_in
        else None,
    )


def _connect_by_bastion(plan: Plan) -> str:
    group, vm = q(plan.resource_group), q(plan.server.vm_name)
    network = plan.network
    if network.is_new:
        found = f"az network bastion list --resource-group {group} --query '[0].[name, resourceGroup]' --output tsv"
        note = None
    else:
        found = f"az network bastion list --query \"[?starts_with(ipConfigurations[0].subnet.id, '{network.vnet_id}/')] | [0].[name, resourceGroup]\" --output tsv"
        note = "The existing network must have a Bastion of the Standard SKU with native client support; this deployment creates none there."
    tunnel = 'az network bastion tunnel --name "${bastion}" --resource-group "${bastion_group}" --target-resource-id "${server_id}"'
    lines = [
        "az extension add --name bastion --upgrade",
        f"{{ read -r bastion; read -r bastion_group; }} < <({found} | tr '\\t' '\\n')",
        f"server_id=$(az vm show --resource-group {group} --name {vm} --query id --output tsv)",
    ]
    return paragraphs(
        note,
        "Names of the Bastion and the server, in each terminal that opens a tunnel:",
        shell(*lines),
        "A tunnel for SSH; leave it open and go on in another terminal:",
        shell(f"{tunnel} --resource-port 22 --port {SSH_TUNNEL_PORT}"),
        shell(f"ssh -p {SSH_TUNNEL_PORT} -o HostKeyAlias={vm} {plan.admin.username}@127.0.0.1"),
        f"A tunnel for the portal; then open <https://localhost:{PORTAL_TUNNEL_PORT}> (the certificate is the server's own):",
        shell(f"{tunnel} --resource-port 443 --port {PORTAL_TUNNEL_PORT}"),
        _jumpbox(plan),
    )


def _jumpbox(plan: Plan) -> str | None:
    jumpbox = plan.server.jumpbox
    if jumpbox is None:
        return None
    group = q(plan.resource_group)
    address = f"az vm show --show-details --resource-group {group} --name {q(plan.server.vm_name)} --query privateIps --output tsv"
    if not by_tunnel(plan):
        return paragraphs(
            f"The Windows jumpbox `{jumpbox.vm_name}` has a browser inside the network; its address for Remote Desktop:",
            shell(
                f"az vm show --show-details --resource-group {group} --name {q(jumpbox.vm_name)} --query privateIps --output tsv"
            ),
        )
    return paragraphs(
        f"Or use the browser of the Windows jumpbox `{jumpbox.vm_name}`: open this tunnel, connect Remote Desktop to "
        f"`localhost:{RDP_TUNNEL_PORT}` as `{plan.admin.username}`, and open `https://` with the address that the last line prints.",
        shell(
            f"jumpbox_id=$(az vm show --resource-group {group} --name {q(jumpbox.vm_name)} --query id --output tsv)",
            'az network bastion tunnel --name "${bastion}" --resource-group "${bastion_group}" --target-resource-id "${jumpbox_id}"'
            f" --resource-port 3389 --port {RDP_TUNNEL_PORT}",
        ),
        shell(address),
    )


def _connect_by_hub(plan: Plan) -> str:
    return paragraphs(
        "Connect to the VPN or ExpressRoute of the hub network first."
        + (
            " The peering is created in both directions, so your account needs the right to peer on the hub network too."
            if plan.network.is_new
            else f" Its peering with `{plan.network.vnet_name}` must exist: this deployment changes nothing in that network."
        ),
        shell(server_address_command(plan), f"ssh {server_target(plan)}", 'echo "portal: https://${server}"'),
        "The portal is at the address that the last line prints (the certificate is the server's own).",
        _jumpbox(plan),
    )


def _connect_by_public_address(plan: Plan) -> str:
    sources = plan.network.allowed_sources
    return paragraphs(
        f"The server answers {count(len(sources), 'address range')}: "
        + ", ".join(f"`{source}`" for source in sources)
        + ".",
        shell(server_address_command(plan), f"ssh {server_target(plan)}", 'echo "portal: https://${server}"'),
        "The portal is at the address that the last line prints (the certificate is the server's own).",
        _jumpbox(plan),
    )
