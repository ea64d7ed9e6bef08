"""Resources of others that the definition names by their ids."""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.resources import resource_id
from ...plan.types import Plan
from ...problems.problem import KeyPath
from ...records import record
from ...rules.wording import quoted
from .answers import Found, Item, said, same

ROUTES, KEYS = "Microsoft.Network/routeTables", "Microsoft.Compute/diskEncryptionSets"
LOGS, RULES = "Microsoft.OperationalInsights/workspaces", "Microsoft.Insights/dataCollectionRules"
SERVERS, ACCOUNTS = "Microsoft.Compute/virtualMachines", "Microsoft.Storage/storageAccounts"


@record
class Reference:
    """One of them."""

    type: str
    id: str
    path: KeyPath
    what: str
    is_near: bool = False
    """Whether it must be in the deployment's subscription and region."""


def references(plan: Plan) -> tuple[Reference, ...]:
    """All that the deployment uses and does not create, but for networks, DNS zones and images.

    Route tables serve subnets of their own region and subscription, sets of keys disks of theirs. Sources:
    https://learn.microsoft.com/azure/virtual-network/manage-route-table and
    https://learn.microsoft.com/azure/virtual-machines/disk-encryption#restrictions
    """
    return tuple(_references(plan))


def _references(plan: Plan) -> Iterator[Reference]:
    route, security, monitoring = plan.network.route, plan.security, plan.monitoring
    path: KeyPath
    if route is not None and route.table_id is not None:
        yield Reference(ROUTES, route.table_id, ("network", "route_table"), "the route table", is_near=True)
    if security.disk_encryption_set_id is not None:
        path = ("security", "disk_encryption_set_id")
        yield Reference(KEYS, security.disk_encryption_set_id, path, "the disk encryption set", is_near=True)
    if security.diagnostics_workspace_id is not None:
        path = ("security", "diagnostics_workspace_id")
        yield Reference(LOGS, security.diagnostics_workspace_id, path, "the workspace")
    if monitoring is not None:
        path = ("monitoring", "data_collection_rule_id")
        yield Reference(RULES, monitoring.data_collection_rule_id, path, "the data collection rule")
    if plan.existing_server is not None:
        yield Reference(SERVERS, plan.existing_server.vm_id, ("server", "existing", "vm_id"), "the existing server")
    if plan.locker.account_id is not None:
        path = ("server", "existing", "locker_account_id")
        yield Reference(ACCOUNTS, plan.locker.account_id, path, "the locker's account")


def unusable(plan: Plan, subscription: str, reference: Reference, answer: Item | None) -> Iterator[Found]:
    """One that is not there, or too far away."""
    if answer is None:
        yield Found(reference.path, f"{reference.what} {quoted(reference.id)} does not exist")
        return
    owner = resource_id(reference.id).subscription
    if reference.is_near and not same(owner, subscription):
        yield Found(reference.path, f"{reference.what} is in subscription {owner}, the deployment in {subscription}")
    elif reference.is_near and not same(answer.get("location"), plan.location):
        text = f"{reference.what} is in {said(answer.get('location'))}, the deployment in {plan.location}"
        yield Found(reference.path, text)
