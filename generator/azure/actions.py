"""Which actions a deployment takes, and where: from what the plan creates.

To create or change a resource takes `TYPE/write`, to look at it `TYPE/read`; some resources also use others, which the
catalogue's table of types knows. Source: https://learn.microsoft.com/azure/role-based-access-control/permissions-reference
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from .. import catalog
from ..plan.asked import Asked
from ..plan.created_types import LINK, ROLE, TITLES, Created, Purpose
from ..plan.deployment import Plan
from ..plan.resources import resource_id
from ..problems.problem import KeyPath
from .bicep import parameter

SUBSCRIPTION = "/subscriptions/{subscription}"
_DEPLOY = tuple(f"Microsoft.Resources/deployments/{word}" for word in ("read", "write"))
_ABOVE = tuple(
    f"Microsoft.Resources/deployments/{word}"
    for word in ("validate/action", "whatIf/action", "cancel/action", "operationStatuses/read", "operations/read")
)
_NETWORK = "Microsoft.Network"
_VNET, _ZONE = f"{_NETWORK}/virtualNetworks", f"{_NETWORK}/privateDnsZones"
_SUBNET = f"{_VNET}/subnets/join/action"


class Need(Struct, frozen=True):
    """Actions at one scope, for one key of the definition."""

    scope: str
    """Id of a subscription, group or resource; `{subscription}` is the deployment's."""
    actions: tuple[str, ...]
    path: KeyPath
    title: str
    """What it is for, in words."""


def group_of(plan: Plan) -> str:
    """Return the scope of the deployment's own group, which need not exist yet."""
    return f"{SUBSCRIPTION}/resourceGroups/{plan.resource_group}"


def needs(plan: Plan, environment: Mapping[str, str]) -> tuple[Need, ...]:
    """Return every need; what the definition leaves to a variable that is not set is left out."""
    elsewhere = [
        *_existing_network(plan), *_hub(plan, environment), *_zones(plan), *_roles_elsewhere(plan),
        *_linked(plan), *_vaults(plan, environment),
    ]  # fmt: skip
    return (*_subscription(plan), *_own_group(plan, {each.actions for each in elsewhere}), *elsewhere)


def assigned_roles(plan: Plan) -> tuple[str, ...]:
    given = {name for each in plan.created_types for name in each.roles}
    return tuple(role for name, role in catalog.roles().items() if name in given)


def _subscription(plan: Plan) -> Iterator[Need]:
    yield Need(SUBSCRIPTION, (*_DEPLOY, *_ABOVE), ("azure",), "the deployment")
    if plan.creates_resource_group:
        actions = tuple(f"Microsoft.Resources/subscriptions/resourceGroups/{word}" for word in ("read", "write"))
        yield Need(SUBSCRIPTION, actions, ("azure", "resource_group"), "the resource group")
    if plan.server is not None:
        yield Need(SUBSCRIPTION, (f"{ROLE}/write",), ("server",), "the server's role Reader")


def _own_group(plan: Plan, elsewhere: Iterable[tuple[str, ...]]) -> Iterator[Need]:
    """What is created there. A role or a link may stand elsewhere only, and is then not needed here."""
    group, parts = group_of(plan), dict[tuple[KeyPath, Purpose], list[Created]]()
    yield Need(group, _DEPLOY, ("azure", "resource_group"), "nested deployments")
    taken = {action for actions in elsewhere for action in actions}
    for each in plan.created_types:
        if not (each.purpose is Purpose.RESOURCE_GROUP or (each.is_elsewhere and f"{each.type}/write" in taken)):
            parts.setdefault((each.path, each.purpose), []).append(each)
    for (path, _), same in parts.items():
        types = (catalog.resource_type(each.type) for each in same)
        actions = (action for row in types for action in (f"{row.name}/write", f"{row.name}/read", *row.uses))
        yield Need(group, tuple(dict.fromkeys(actions)), path, same[0].title)
    identity = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"
    if plan.server is not None:
        yield Need(group, (identity,), ("server",), "the identity of the server")


def _in_group_of(value: str) -> str:
    return value.rstrip("/").partition("/providers/")[0]


def _existing_network(plan: Plan) -> Iterator[Need]:
    vnet, path = plan.network.vnet_id, ("network", "existing", "vnet_id")
    if plan.network.is_new or vnet is None:
        return
    yield Need(_in_group_of(vnet), _DEPLOY, path, "the existing network")
    yield Need(vnet, (f"{_VNET}/read", f"{_VNET}/subnets/read", _SUBNET), path, "the existing network")
    if plan.server is not None:
        yield Need(vnet, (f"{ROLE}/write",), path, "the server's roles on the existing network")


def _hub(plan: Plan, environment: Mapping[str, str]) -> Iterator[Need]:
    hub, path = plan.network.hub, ("network", "hub", "vnet_id")
    if hub is None or not plan.network.is_new:
        return
    vnet = environment.get(hub.vnet_id.variable, "") if isinstance(hub.vnet_id, Asked) else hub.vnet_id
    if not _is_id(vnet):
        return
    yield Need(_in_group_of(vnet), _DEPLOY, path, "the peering in the hub")
    peering = (f"{_VNET}/virtualNetworkPeerings/write", f"{_VNET}/virtualNetworkPeerings/read", f"{_VNET}/peer/action")
    yield Need(vnet, peering, path, "the peering in the hub")


def _zones(plan: Plan) -> Iterator[Need]:
    network = plan.network
    for key, zone, is_linked, is_joined in (
        ("blob_dns_zone", network.blob_dns_zone, network.links_dns_zone, plan.locker.is_new),
        ("mysql_dns_zone", network.mysql_dns_zone, network.links_mysql_dns_zone, plan.creates_database),
    ):
        path = ("network", key)
        if not _is_id(zone):
            continue
        if is_linked:
            yield Need(_in_group_of(zone), _DEPLOY, path, TITLES[Purpose.ZONE_LINK])
            yield Need(zone, (f"{LINK}/write", f"{LINK}/read"), path, TITLES[Purpose.ZONE_LINK])
        if is_joined:
            yield Need(zone, (f"{_ZONE}/join/action",), path, "names in the zone")


def _roles_elsewhere(plan: Plan) -> Iterator[Need]:
    rule = plan.monitoring.data_collection_rule_id if plan.monitoring is not None else None
    account = plan.locker.account_id if plan.locker.assigns_role else None
    wanted = (
        (rule, ("monitoring",), Purpose.METRICS_ROLE),
        (account, ("server", "existing", "assign_locker_role"), Purpose.LOCKER_ROLE),
    )
    for target, path, purpose in wanted:
        if target is not None:
            yield Need(_in_group_of(target), _DEPLOY, path, TITLES[purpose])
            yield Need(target, (f"{ROLE}/write",), path, TITLES[purpose])


def _linked(plan: Plan) -> Iterator[Need]:
    """What something of ours refers to: Azure refuses to create that without these (LinkedAuthorizationFailed).

    Sources, in this order: https://github.com/microsoft/planetary-computer-hub/pull/25,
    https://github.com/kubernetes-sigs/azuredisk-csi-driver/issues/2609, https://github.com/JimGBritt/AzurePolicy/issues/17
    and https://learn.microsoft.com/troubleshoot/azure/virtual-machines/linux/troubleshooting-shared-images
    """
    route, security = plan.network.route, plan.security
    table = route.table_id if route is not None and plan.network.is_new else None
    image = plan.server.image_id if plan.server is not None else None
    of_gallery = "/galleries/" in (image or "").casefold()
    read = "Microsoft.Compute/galleries/images/versions/read" if of_gallery else "Microsoft.Compute/images/read"
    wanted: tuple[tuple[str | None, str, KeyPath, str], ...] = (
        (table, f"{_NETWORK}/routeTables/join/action", ("network", "route_table"), "the route table of the subnets"),
        (
            security.disk_encryption_set_id if plan.server is not None else None,
            "Microsoft.Compute/diskEncryptionSets/read",
            ("security", "disk_encryption_set_id"),
            "the key of the disks",
        ),
        (
            security.diagnostics_workspace_id,
            "Microsoft.OperationalInsights/workspaces/sharedKeys/action",
            ("security", "diagnostics_workspace_id"),
            "the workspace of the diagnostic settings",
        ),
        ((image or "").partition("/versions/")[0], read, ("server", "image_id"), "the server's image"),
    )
    for target, action, path, purpose in wanted:
        if target and target.casefold().startswith("/subscriptions/"):  # an image may be a community's
            yield Need(target, (action,), path, purpose)


def _vaults(plan: Plan, environment: Mapping[str, str]) -> Iterator[Need]:
    """Key Vaults from which Azure reads a secret, where the variable has its id.

    Source: https://learn.microsoft.com/azure/azure-resource-manager/templates/key-vault-parameter
    """
    given = [parameter(environment.get(each.variable, "")) for each in plan.secrets]
    for vault in dict.fromkeys(each["reference"]["keyVault"]["id"] for each in given if "reference" in each):
        yield Need(vault, ("Microsoft.KeyVault/vaults/deploy/action",), ("azure",), "the secret in the Key Vault")


def _is_id(value: str) -> bool:
    try:
        resource_id(value)
    except ValueError:
        return False
    return True
