"""Names that Azure gives to one owner only, and the resource group: free, ours, or someone else's.

Sources: https://learn.microsoft.com/rest/api/storagerp/storage-accounts/check-name-availability,
https://learn.microsoft.com/rest/api/mysql/flexibleserver/check-name-availability/execute. A name of an earlier run of
this deployment is taken as well: then the resource is in our own group.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from shlex import quote

from ...plan.names import OWNER_TAG
from ...plan.types import Plan
from ...problems.problem import KeyPath
from ...records import record
from ...rules.wording import quoted
from .answers import Found, Item, OddAnswer, below, folded, said, same
from .machines import mount_path

STORAGE, MYSQL = "Microsoft.Storage/storageAccounts", "Microsoft.DBforMySQL/flexibleServers"


@record
class WantedName:
    """A name that the deployment gives to a new resource."""

    type: str
    name: str
    path: KeyPath


def wanted_names(plan: Plan) -> tuple[WantedName, ...]:
    """Names that the definition gives; those that the deployment derives are unique by themselves."""
    return tuple(dict.fromkeys(_wanted(plan)))


def _wanted(plan: Plan) -> Iterator[WantedName]:
    if plan.locker.is_new and plan.locker.account_name is not None:
        yield WantedName(STORAGE, plan.locker.account_name, ("storage", "locker", "account_name"))
    seen = set()
    for mount in plan.all_mounts:
        for name, _ in mount.created_accounts:
            if name not in seen:
                seen.add(name)
                yield WantedName(STORAGE, name, (*mount_path(plan, mount.path), "storage_account"))
    accounting = plan.slurm.accounting if plan.slurm else None
    if accounting is not None and accounting.is_new and accounting.server_name is not None:
        yield WantedName(MYSQL, accounting.server_name, ("slurm", "accounting", "server_name"))


def own(resources: Collection[Item]) -> frozenset[tuple[str, str]]:
    """(type, name) of what the deployment's resource group holds, folded."""
    return frozenset((folded(each.get("type")), folded(each.get("name"))) for each in resources)


def taken(wanted: WantedName, answer: Item, ours: Collection[tuple[str, str]]) -> Iterator[Found]:
    """A name that someone else has, or that Azure does not accept."""
    free = answer.get("nameAvailable")
    if not isinstance(free, bool):
        raise OddAnswer(f"the answer about the name {wanted.name} does not say whether it is free")
    if free or (folded(wanted.type), folded(wanted.name)) in ours:
        return
    why = said(answer.get("message") or answer.get("reason"))
    yield Found(wanted.path, f"the name {quoted(wanted.name)} cannot be had: {why}", "choose another name")


# ------------------------------------------------------------ the resource group

_GROUP: KeyPath = ("azure", "resource_group")


def group_faults(plan: Plan, group: Item | None) -> Iterator[Found]:
    """A group that must exist and does not, or that is in another region than the deployment would create it in.

    The location of a resource group cannot be changed (InvalidResourceGroupLocation).
    Source: https://learn.microsoft.com/azure/azure-resource-manager/management/manage-resource-groups-cli
    """
    name, shown = plan.resource_group, quoted(plan.resource_group)
    if group is None:
        if not plan.creates_resource_group:
            text = f"the resource group {shown} does not exist, and the deployment does not create it"
            yield Found(_GROUP, text, f"az group create --name {quote(name)} --location {plan.location}")
        return
    state = below(group, "properties", "provisioningState")
    if same(state, "Deleting"):
        yield Found(
            _GROUP, f"the resource group {shown} is being deleted", f"az group wait --deleted --name {quote(name)}"
        )
    place = group.get("location")
    if plan.creates_resource_group and not same(place, plan.location):
        text = f"the resource group {shown} exists in {said(place)}; the deployment would create it in {plan.location}"
        yield Found(_GROUP, text, "choose another resource group, or delete it")


def foreign_group(plan: Plan, group: Item | None) -> Iterator[Found]:
    """A group that the deployment would take for its own, though it was there before: it goes when all is deleted."""
    if group is None or not plan.creates_resource_group:
        return
    tag = below(group, "tags", OWNER_TAG)
    if tag is None:
        text = f"the resource group {quoted(plan.resource_group)} exists and is not of this deployment"
        yield Found(
            _GROUP, text, f"say so: resource_group: {{existing: {plan.resource_group}}}, or choose another name"
        )
    elif not same(tag, plan.name):
        text = f"the resource group {quoted(plan.resource_group)} is of the deployment {quoted(str(tag))}"
        yield Found(_GROUP, text, "choose another resource group")
