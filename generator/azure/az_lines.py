"""The lines for the Azure command line that do what a verb does, to be typed in the built folder."""

from __future__ import annotations

import shlex

from ..plan.deployment import Plan
from .requests import compute, resource_manager, services


def beginning(plan: Plan) -> list[str]:
    """What comes before any deployment: the environment, and what Azure has and would refuse to change."""
    lines = ["source .envrc"] if plan.variables else []
    return [*lines, *_server(plan), *_database(plan)]


def deployment(plan: Plan, action: str, *more: str) -> str:
    """`az deployment sub what-if` or `create`."""
    words = ["az", "deployment", "sub", action, "--name", plan.deployment_name, "--location", plan.location]
    return shlex.join([*words, "--template-file", "main.bicep", "--parameters", "main.bicepparam", *more])


def recorded(plan: Plan) -> str:
    """What Azure has recorded of the last deployment, whether it was a stack or not."""
    show = resource_manager.deployment(plan.deployment_name).az
    return f"{show} 2>/dev/null || az stack sub show --name {shlex.quote(plan.deployment_name)}"


def watching(plan: Plan) -> list[str]:
    """How far a deployment is, and the first boot of its server."""
    lines = [
        f"{resource_manager.deployment(plan.deployment_name).az} --query properties.provisioningState --output tsv"
    ]
    if plan.server is not None:
        lines.append(f"az vm boot-diagnostics get-boot-log {plan.access.server_arguments}")
        lines.append(
            f"az vm run-command invoke {plan.access.server_arguments} --command-id RunShellScript "
            "--scripts 'cat /var/lib/cycleforge/status.json' --query 'value[0].message' --output tsv"
        )
    return lines


def address_of(plan: Plan, subscription: str) -> str:
    """Where users reach the server, for a deployment that has noted no address."""
    show = f"az vm show --show-details {plan.access.server_arguments} --query {plan.access.address_field}"
    return f"{show} --subscription {subscription} --output tsv"


def bastion_of(vnet_id: str, subscription: str) -> str:
    """Name and resource group of the Bastion in someone else's network."""
    query = f"[?starts_with(ipConfigurations[0].subnet.id, '{vnet_id}/')] | [0].[name, resourceGroup]"
    return f"az network bastion list --query {shlex.quote(query)} --subscription {subscription} --output tsv"


def _server(plan: Plan) -> list[str]:
    if plan.server is None:
        return []
    show = compute.SERVER(group=plan.resource_group, name=plan.server.vm_name).az
    queries = {"CYCLEFORGE_SERVER_KEY": "'osProfile.linuxConfiguration.ssh.publicKeys[0].keyData'"}
    if plan.server.image is not None:
        queries["CYCLEFORGE_SERVER_IMAGE"] = "storageProfile.imageReference.version"
    lines = [f"{name}=$({show} --query {query} --output tsv 2>/dev/null || true)" for name, query in queries.items()]
    return [*lines, f"export {' '.join(queries)}"]


def _database(plan: Plan) -> list[str]:
    if not plan.creates_database:
        return []
    name = "CYCLEFORGE_DATABASE_STORAGE"
    show = services.DATABASES(group=plan.resource_group).az
    own = f"[?tags.{plan.cleanup.tag}=='{plan.name}'].storage.storageSizeGb | [0]"
    return [
        f'{name}=$({show} --query "{own}" --output tsv 2>/dev/null || true)',
        f'export {name}="${{{name}:-0}}"',
    ]
