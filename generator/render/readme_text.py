"""Pieces that the sections of the README share: shell blocks, tables, names and ways to reach the server."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from ..plan.types import Plan

CLI_CLOUDS = {
    "public": "AzureCloud",
    "usgov": "AzureUSGovernment",
    "china": "AzureChinaCloud",
    "germany": "AzureGermanCloud",
}
"""Cloud names of `az cloud set`. Source: https://learn.microsoft.com/cli/azure/manage-clouds-azure-cli"""

SSH_TUNNEL_PORT = 50022
PORTAL_TUNNEL_PORT = 8443
RDP_TUNNEL_PORT = 53389


def q(value: str) -> str:
    """One word for the shell."""
    return shlex.quote(value)


def shell(*lines: str) -> str:
    """A block that can be pasted into a shell."""
    return "\n".join(["```bash", *lines, "```"])


def paragraphs(*parts: str | None) -> str:
    """The parts with an empty line between them; None and empty parts are left out."""
    return "\n\n".join(part for part in parts if part)


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    head = list(header)
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)


def deployment_name(plan: Plan) -> str:
    """Name of the subscription deployment. It holds the region, because Azure ties a name to its first region."""
    return f"{plan.name[: 63 - len(plan.location)].rstrip('-')}-{plan.location}"


def by_tunnel(plan: Plan) -> bool:
    """Whether commands on this machine reach the server through a Bastion tunnel."""
    return plan.network.access == "bastion"


def server_target(plan: Plan) -> str:
    """`user@address` of the server as ssh and scp on this machine write it (the port aside)."""
    return f"{plan.admin.username}@127.0.0.1" if by_tunnel(plan) else f'{plan.admin.username}@"${{server}}"'


def jump_option(plan: Plan) -> str:
    """The option that takes ssh and scp through the server to a node."""
    if by_tunnel(plan):
        return f"-o ProxyJump={plan.admin.username}@127.0.0.1:{SSH_TUNNEL_PORT}"
    return f'-o ProxyJump={plan.admin.username}@"${{server}}"'


def server_address_command(plan: Plan) -> str:
    """Sets `server` to the address of the CycleCloud server."""
    field = "publicIps" if plan.network.access == "public" else "privateIps"
    return (
        f"server=$(az vm show --show-details --resource-group {q(plan.resource_group)} --name {q(plan.server.vm_name)}"
        f" --query {field} --output tsv)"
    )


def scheduler_target(plan: Plan) -> str:
    """`user@host` of the scheduler; its name resolves inside the virtual network."""
    return f"{plan.admin.username}@{plan.slurm.scheduler.host_name}"


def count(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def on_server(plan: Plan, command: str) -> str:
    """A command of this machine that runs one on the server."""
    port = f" -p {SSH_TUNNEL_PORT} -o HostKeyAlias={q(plan.server.vm_name)}" if by_tunnel(plan) else ""
    return f"ssh{port} {server_target(plan)} {command}"
