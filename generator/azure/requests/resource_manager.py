"""What Microsoft's clients of the resource manager write: their operations, each with the `az` line that does the same.

Paths, queries and forms are theirs; `generator/azure/clients.py` has their api-versions.
"""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any

from ... import catalog
from ..clients import RESOURCES, Clients
from ..refusals import NotAsked
from ..request import Call, whole
from ..resource_ids import resource

_RECORD, _STACKS = "microsoft.resources/deployments", "2024-03-01"
_FORCED = "Microsoft.Compute/virtualMachines,Microsoft.Compute/virtualMachineScaleSets"

# ---------------------------------------------------------------- subscription and providers


def subscription() -> Call:
    return Call(lambda clients: clients.subscriptions.subscriptions.get(clients.subscription), "az account show")


def locations() -> Call:
    """`az account list-locations` takes no --subscription, so the line is `az rest`."""
    return Call(lambda clients: clients.subscriptions.subscriptions.list_locations(clients.subscription))


def providers() -> Call:
    return Call(lambda clients: clients.resources.providers.list(), "az provider list")


def provider(namespace: str) -> Call:
    az = f"az provider show --namespace {quote(namespace)}"
    return Call(lambda clients: clients.resources.providers.get(namespace), az)


def register(namespace: str) -> Call:
    az = f"az provider register --namespace {quote(namespace)} --wait"
    return Call(lambda clients: clients.resources.providers.register(namespace), az, only_asks=False)


def feature(namespace: str, name: str) -> Call:
    az = f"az feature show --namespace {quote(namespace)} --name {quote(name)}"
    return Call(lambda clients: clients.features.features.get(namespace, name), az)


# ---------------------------------------------------------------- groups and resources


def group(name: str) -> Call:
    return Call(lambda clients: clients.resources.resource_groups.get(name), f"az group show --name {quote(name)}")


def delete_group(group_id: str) -> Call:
    """Delete a group with everything in it; machines are not shut down first."""
    forced = {"api-version": RESOURCES, "forceDeletionTypes": _FORCED}

    def write(clients: Clients) -> object:
        return clients.resources.resources.begin_delete_by_id(whole(group_id), api_version=RESOURCES, params=forced)

    return Call(write, only_asks=False)


def resources_in(group_name: str) -> Call:
    az = f"az resource list --resource-group {quote(group_name)}"
    return Call(lambda clients: clients.resources.resources.list_by_resource_group(group_name), az)


def by_id(resource_id: str) -> Call:
    """One resource; LookupError where the table of types has no api-version for it."""
    version = _version(resource_id)
    return Call(lambda clients: clients.resources.resources.get_by_id(whole(resource_id), api_version=version))


def delete_by_id(resource_id: str) -> Call:
    version = _version(resource_id)

    def write(clients: Clients) -> object:
        return clients.resources.resources.begin_delete_by_id(whole(resource_id), api_version=version)

    return Call(write, only_asks=False)


def _version(resource_id: str) -> str:
    kind = resource(resource_id).type.casefold()
    if kind == _RECORD:
        return RESOURCES
    version = catalog.resource_type(kind).api_version
    if version is None:
        raise LookupError(f"catalog/resource_types.json has no api-version of {kind}")
    return version


def tagged(tag: str, value: str) -> Call:
    """List resources of the whole subscription."""
    wanted = " and ".join(f"{key} eq '{_inside(text)}'" for key, text in (("tagName", tag), ("tagValue", value)))
    return Call(lambda clients: clients.resources.resources.list(filter=wanted))


def tag(resource_id: str, tags: Mapping[str, str]) -> Call:
    """Add tags to those that a resource has."""
    body: Any = {"operation": "Merge", "properties": {"tags": dict(tags)}}
    return Call(lambda clients: clients.resources.tags.begin_update_at_scope(whole(resource_id), body), only_asks=False)


def locks(subscription_id: str) -> Call:
    """List the locks of a subscription, its groups and its resources."""
    return Call(lambda clients: clients.locks(subscription_id).management_locks.list_at_subscription_level())


def _inside(text: str) -> str:
    """Text of a filter; what stands between quotes there must not end them."""
    return text.replace("'", "''")


# ---------------------------------------------------------------- deployments of the subscription


def deployment(name: str) -> Call:
    az = f"az deployment sub show --name {quote(name)}"
    return Call(lambda clients: clients.deployments.deployments.get_at_subscription_scope(name), az)


def deployments() -> Call:
    return Call(lambda clients: clients.deployments.deployments.list_at_subscription_scope(), "az deployment sub list")


def what_if(name: str, body: Any, az: str) -> Call:
    return Call(lambda clients: clients.deployments.deployments.begin_what_if_at_subscription_scope(name, body), az)


def validate(name: str, body: Any, az: str) -> Call:
    return Call(lambda clients: clients.deployments.deployments.begin_validate_at_subscription_scope(name, body), az)


def deploy(name: str, body: Any, az: str) -> Call:
    def write(clients: Clients) -> object:
        return clients.deployments.deployments.begin_create_or_update_at_subscription_scope(name, body)

    return Call(write, az, only_asks=False)


def operations(deployment_id: str) -> Call:
    """Of a deployment, nested or not; raises NotAsked for what is none."""
    of = resource(deployment_id)
    if of.type.casefold() != _RECORD:
        raise NotAsked(f"Azure names a part that is no deployment: {deployment_id}")
    name, inside = of.name, of.group
    if inside is None:
        az = f"az deployment operation sub list --name {quote(name)}"
        return Call(lambda clients: clients.deployments.deployment_operations.list_at_subscription_scope(name), az)
    az = f"az deployment operation group list --resource-group {quote(inside)} --name {quote(name)}"
    return Call(lambda clients: clients.deployments.deployment_operations.list(inside, name), az)


# ---------------------------------------------------------------- deployment stacks


def stack(subscription_id: str, name: str) -> Call:
    """Return a stack, which was created by hand."""
    at = f"/subscriptions/{subscription_id}/providers/Microsoft.Resources/deploymentStacks/{name}"
    return Call(
        lambda clients: clients.resources.resources.get_by_id(whole(at), api_version=_STACKS),
        f"az stack sub show --name {quote(name)}",
    )


def delete_stack(stack_id: str) -> Call:
    """Delete only its record: what it created stays."""
    kinds = ("Resources", "ResourceGroups", "ManagementGroups")
    detach = {"api-version": _STACKS} | {f"unmanageAction.{kind}": "detach" for kind in kinds}

    def write(clients: Clients) -> object:
        return clients.resources.resources.begin_delete_by_id(whole(stack_id), api_version=_STACKS, params=detach)

    name = quote(stack_id.rpartition("/")[2])
    return Call(write, f"az stack sub delete --name {name} --action-on-unmanage detachAll --yes", only_asks=False)
