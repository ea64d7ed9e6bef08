# ruff: noqa: E501 - sentences and commands stand in one line each
"""README section about the projects in the locker: both ways to upload them by hand."""

from __future__ import annotations

from ..plan.names import BLOB_SUFFIXES
from ..plan.types import Plan
from .readme_text import (
    SSH_TUNNEL_PORT,
    by_tunnel,
    deployment_name,
    on_server,
    paragraphs,
    q,
    server_target,
    shell,
)


def upload(plan: Plan) -> str:
    """Projects into the locker by hand."""
    if not plan.projects:
        return ""
    return paragraphs(
        "## Upload projects by hand",
        "The server uploads the projects itself. While a project is being developed, there are two ways more; nodes that start later use "
        "what the locker holds. A version never changes: give a changed project a new one first (`cycleforge project bump`).",
        _from_here(plan),
        _from_server(plan),
    )


def _from_here(plan: Plan) -> str:
    stem = q(plan.definition.rsplit(".", 1)[0])
    return paragraphs(
        "**With CycleForge**, in the folder from which this was built. The account of the locker has no public address and takes no keys, so "
        "this works on machines in the network (over the VPN, or on the server itself), for whoever has the role below; a new role takes up "
        "to 10 minutes to work everywhere.",
        shell(
            f"account={_account(plan)}",
            'scope=$(az storage account show --name "${account:?}" --query id --output tsv)',
            "user=$(az ad signed-in-user show --query id --output tsv)",
            'az role assignment create --role \'Storage Blob Data Contributor\' --assignee-object-id "${user:?}" --assignee-principal-type User --scope "${scope:?}"',
            f"export CYCLEFORGE_LOCKER={_address(plan)}",
            f"cycleforge upload {stem}",
            f"cycleforge locker verify {stem}",
        ),
        "It sends what is not there yet, writes each manifest last, and goes on where it was interrupted. `cycleforge locker ls` lists what "
        "the locker holds, `pull` fetches a version back, and `prune` removes versions that no definition names.",
    )


def _account(plan: Plan) -> str:
    if plan.locker.account_name is not None:
        return q(plan.locker.account_name)
    name = q(deployment_name(plan))
    return f"$(az deployment sub show --name {name} --query properties.outputs.lockerAccount.value --output tsv)"


def _address(plan: Plan) -> str:
    container = q(plan.locker.container)
    suffix = BLOB_SUFFIXES.get(plan.cloud)
    return f'"https://${{account:?}}.{suffix}/{container}"' if suffix else f'"az://${{account:?}}/{container}"'


def _from_server(plan: Plan) -> str:
    port = f"-P {SSH_TUNNEL_PORT} -o HostKeyAlias={q(plan.server.vm_name)} " if by_tunnel(plan) else ""
    locker = plan.locker.locker_name
    return paragraphs(
        f"**With the CycleCloud command line**, from a copy on the server, which knows the locker as `{locker}`:",
        shell(
            f"scp -r {port}projects {server_target(plan)}:",
            *(
                on_server(plan, q(f"cd ~/projects/{project.name} && cyclecloud project upload {locker}"))
                for project in plan.projects
            ),
        ),
    )
