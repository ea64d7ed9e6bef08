"""Which actions a deployment takes, and where: from what the plan creates.

To create or change a resource takes `TYPE/write`, to look at it `TYPE/read`; some resources also use others, whose
types name an action for that. Source: https://learn.microsoft.com/azure/role-based-access-control/permissions-reference
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from ..plan.resources import resource_id
from ..plan.types import Asked, Plan
from ..problems.problem import KeyPath
from ..records import record
from .bicep import parameter

SUBSCRIPTION = "/subscriptions/{subscription}"
ROLES = "Microsoft.Authorization/roleAssignments"
_GROUPS = "Microsoft.Resources/resourceGroups"
_DEPLOY = tuple(f"Microsoft.Resources/deployments/{word}" for word in ("read", "write"))
_ABOVE = tuple(
    f"Microsoft.Resources/deployments/{word}"
    for word in ("validate/action", "whatIf/action", "cancel/action", "operationStatuses/read", "operations/read")
)
_NETWORK = "Microsoft.Network"
_VNET, _ZONE = f"{_NETWORK}/virtualNetworks", f"{_NETWORK}/privateDnsZones"
_SUBNET = f"{_VNET}/subnets/join/action"
_USES: Mapping[str, tuple[str, ...]] = {
    f"{_NETWORK}/networkInterfaces": (_SUBNET,),
    f"{_NETWORK}/bastionHosts": (_SUBNET, f"{_NETWORK}/publicIPAddresses/join/action"),
    f"{_NETWORK}/natGateways": (f"{_NETWORK}/publicIPAddresses/join/action",),
    _VNET: (f"{_NETWORK}/networkSecurityGroups/join/action",),
    f"{_VNET}/virtualNetworkPeerings": (f"{_VNET}/peer/action",),
    f"{_NETWORK}/privateEndpoints": (
        _SUBNET,
        "Microsoft.Storage/storageAccounts/PrivateEndpointConnectionsApproval/action",
    ),
    f"{_ZONE}/virtualNetworkLinks": (f"{_VNET}/join/action",),
    f"{_NETWORK}/privateEndpoints/privateDnsZoneGroups": (f"{_ZONE}/join/action",),
    "Microsoft.Compute/virtualMachines": (f"{_NETWORK}/networkInterfaces/join/action",),
    "Microsoft.StorageCache/amlFilesystems": (_SUBNET,),
    "Microsoft.NetApp/netAppAccounts/capacityPools/volumes": (_SUBNET,),
    "Microsoft.DBforMySQL/flexibleServers": (_SUBNET, f"{_ZONE}/join/action"),
}
"""Type → what creating it does to others.

Source: https://learn.microsoft.com/azure/role-based-access-control/permissions/networking
"""


@record
class Need:
    """Actions at one scope, for one key of the definition."""

    scope: str
    """Id of a subscription, group or resource; `{subscription}` is the deployment's."""
    actions: tuple[str, ...]
    path: KeyPath
    purpose: str


def group_of(plan: Plan) -> str:
    """The deployment's own group, which need not be there yet."""
    return f"{SUBSCRIPTION}/resourceGroups/{plan.resource_group}"


def needs(plan: Plan, environment: Mapping[str, str]) -> tuple[Need, ...]:
    """Everything; what the definition leaves to a variable that is not set is left out."""
    elsewhere = [
        *_existing_network(plan), *_hub(plan, environment), *_zones(plan), *_roles_elsewhere(plan),
        *_linked(plan), *_vaults(plan, environment),
    ]  # fmt: skip
    return (*_subscription(plan), *_own_group(plan, {each.actions for each in elsewhere}), *elsewhere)


def assigned_roles(plan: Plan) -> tuple[str, ...]:
    """Ids of the roles that the deployment assigns; those of bicep_templates/modules/roles*.bicep.

    Source: https://learn.microsoft.com/azure/role-based-access-control/built-in-roles
    """
    wanted = {
        "acdd72a7-3385-48ef-bd42-f606fba81ae7": plan.server is not None,
        "b24988ac-6180-42a0-ab88-20f7382dd24c": plan.server is not None or _role_of_existing_server(plan),
        "ba92f5b4-2d11-453d-a403-e96b0029c9fe": plan.server is not None or _creates(plan, "the container"),
        "2a2b9908-6ea1-4ae2-8e65-a410df84e7d1": plan.server is not None or plan.locker.assigns_role,
        "3913510d-42f4-4e42-8a64-420c390055eb": plan.monitoring is not None,
        "9980e02c-c2be-4d73-94e8-173b1dc7cf3c": plan.server is not None and not plan.network.is_new,
    }
    return tuple(role for role, is_wanted in wanted.items() if is_wanted)


def _creates(plan: Plan, purpose: str) -> bool:
    return any(each.type == ROLES and purpose in each.purpose for each in plan.created_types)


def _role_of_existing_server(plan: Plan) -> bool:
    return plan.existing_server is not None and plan.existing_server.principal_id is not None


def _subscription(plan: Plan) -> Iterator[Need]:
    yield Need(SUBSCRIPTION, (*_DEPLOY, *_ABOVE), ("azure",), "the deployment")
    if plan.creates_resource_group:
        actions = tuple(f"Microsoft.Resources/subscriptions/resourceGroups/{word}" for word in ("read", "write"))
        yield Need(SUBSCRIPTION, actions, ("azure", "resource_group"), "the resource group")
    if plan.server is not None:
        yield Need(SUBSCRIPTION, (f"{ROLES}/write",), ("server",), "the server's role Reader")


def _own_group(plan: Plan, elsewhere: Iterable[tuple[str, ...]]) -> Iterator[Need]:
    """What is created there. A role or a link may stand elsewhere only, and is then not needed here."""
    group, purposes = group_of(plan), dict[tuple[KeyPath, str], list[str]]()
    yield Need(group, _DEPLOY, ("azure", "resource_group"), "nested deployments")
    taken = {action for actions in elsewhere for action in actions}
    for each in plan.created_types:
        only_elsewhere = each.type in (ROLES, f"{_ZONE}/virtualNetworkLinks") and not _is_here(plan, each.purpose)
        if each.type == _GROUPS or (only_elsewhere and f"{each.type}/write" in taken):
            continue
        actions = purposes.setdefault((each.path, each.purpose), [])
        actions += [f"{each.type}/write", f"{each.type}/read", *_USES.get(each.type, ())]
    for (path, purpose), actions in purposes.items():
        yield Need(group, tuple(dict.fromkeys(actions)), path, purpose)
    identity = "Microsoft.ManagedIdentity/userAssignedIdentities/assign/action"
    if plan.server is not None:
        yield Need(group, (identity,), ("server",), "the identity of the server")


def _is_here(plan: Plan, purpose: str) -> bool:
    """Whether a role or a link of this purpose is on something that the deployment creates."""
    return purpose not in (
        "the role of the nodes on the locker",
        "the role of the nodes on the metrics",
        "the link to the zone",
    )


def _in_group_of(value: str) -> str:
    """The group of a resource."""
    return value.rstrip("/").partition("/providers/")[0]


def _existing_network(plan: Plan) -> Iterator[Need]:
    vnet, path = plan.network.vnet_id, ("network", "existing", "vnet_id")
    if plan.network.is_new or vnet is None:
        return
    yield Need(_in_group_of(vnet), _DEPLOY, path, "the existing network")
    yield Need(vnet, (f"{_VNET}/read", f"{_VNET}/subnets/read", _SUBNET), path, "the existing network")
    if plan.server is not None:
        yield Need(vnet, (f"{ROLES}/write",), path, "the server's roles on the existing network")


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
            yield Need(_in_group_of(zone), _DEPLOY, path, "the link to the zone")
            link = f"{_ZONE}/virtualNetworkLinks"
            yield Need(zone, (f"{link}/write", f"{link}/read"), path, "the link to the zone")
        if is_joined:
            yield Need(zone, (f"{_ZONE}/join/action",), path, "names in the zone")


def _roles_elsewhere(plan: Plan) -> Iterator[Need]:
    rule = plan.monitoring.data_collection_rule_id if plan.monitoring is not None else None
    account = plan.locker.account_id if plan.locker.assigns_role else None
    wanted = (
        (rule, ("monitoring",), "the role of the nodes on the metrics"),
        (account, ("server", "existing", "assign_locker_role"), "the role of the nodes on the locker"),
    )
    for target, path, purpose in wanted:
        if target is not None:
            yield Need(_in_group_of(target), _DEPLOY, path, purpose)
            yield Need(target, (f"{ROLES}/write",), path, purpose)


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
