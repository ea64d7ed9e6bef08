"""Names that Azure gives to one owner only, and the resource group: free, ours, or someone else's.

Sources: https://learn.microsoft.com/rest/api/storagerp/storage-accounts/check-name-availability,
https://learn.microsoft.com/rest/api/mysql/flexibleserver/check-name-availability/execute. A name of an earlier run of
this deployment is taken as well: then the resource is in our own group.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from shlex import quote

from msgspec import Struct

from ...plan.deployment import Plan
from ...plan.names import OWNER_TAG
from ...problems.problem import KeyPath
from ...rules.base import quoted
from ..answers import OddAnswer, below, folded, said, same
from ..check import Check, Finding
from ..reader import Reader
from ..request import Call
from ..requests import resource_manager
from ..requests.services import MYSQL_NAME, STORAGE_NAME

_STORAGE, _MYSQL = "Microsoft.Storage/storageAccounts", "Microsoft.DBforMySQL/flexibleServers"


def own_resources(plan: Plan, reader: Reader) -> frozenset[tuple[str, str]]:
    """(type, name), folded, of what the deployment's group holds of an earlier run; nothing where there is none yet."""
    found = reader.find_pages(resource_manager.resources_in(plan.resource_group))
    return frozenset((folded(each.get("type")), folded(each.get("name"))) for each in found)


class _WantedName(Struct, frozen=True):
    """A name that the deployment gives to a new resource."""

    type: str
    name: str
    path: KeyPath

    def call(self, region: str) -> Call:
        """What asks whether it is free."""
        body = {"name": self.name, "type": self.type}
        return STORAGE_NAME(body=body) if self.type == _STORAGE else MYSQL_NAME(region=region, body=body)


def _wanted_names(plan: Plan) -> Iterator[_WantedName]:
    """Names that the definition gives; those that the deployment derives are unique by themselves."""
    if plan.locker.is_new and plan.locker.account_name is not None:
        yield _WantedName(_STORAGE, plan.locker.account_name, ("storage", "locker", "account_name"))
    seen = set()
    for mount in plan.all_mounts:
        for name, _ in mount.created_accounts:
            if name not in seen:
                seen.add(name)
                yield _WantedName(_STORAGE, name, (*plan.place_of_mount(mount.path), "storage_account"))
    accounting = plan.slurm.accounting if plan.slurm else None
    if accounting is not None and accounting.is_new and accounting.server_name is not None:
        yield _WantedName(_MYSQL, accounting.server_name, ("slurm", "accounting", "server_name"))


class NameTaken(Check):
    id = "E4501"
    summary = "A name that the definition gives is someone else's, or Azure does not accept it."
    why = "Storage accounts and database servers share one name space with all other customers of the cloud."
    fix = "Choose another name, or leave it out: then the deployment derives a unique one."
    source = "https://learn.microsoft.com/rest/api/storagerp/storage-accounts/check-name-availability"
    question = "whether the names are free or ours"

    def needed(self, plan: Plan) -> bool:
        return any(_wanted_names(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        wanted = tuple(dict.fromkeys(_wanted_names(plan)))
        ours = own_resources(plan, reader)
        answers = reader.together([partial(reader.post, each.call(plan.location)) for each in wanted])
        for each, answer in zip(wanted, answers, strict=True):
            free = answer.get("nameAvailable")
            if not isinstance(free, bool):
                raise OddAnswer(f"the answer about the name {each.name} does not say whether it is free")
            if not free and (folded(each.type), folded(each.name)) not in ours:
                why = said(answer.get("message") or answer.get("reason"))
                text = f"the name {quoted(each.name)} cannot be had: {why}"
                yield self.finding(each.path, text, "choose another name")


class GroupUnusable(Check):
    id = "E4502"
    summary = "The resource group is missing, being deleted, or in another region."
    why = (
        "The location of a resource group cannot be changed (InvalidResourceGroupLocation), and a group that someone "
        "else makes must be there before."
    )
    fix = "Choose another resource group, or have it created."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/manage-resource-groups-cli"
    question = "whether the resource group can be used"
    path = ("azure", "resource_group")

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        group = reader.find(resource_manager.group(plan.resource_group))
        name, shown = plan.resource_group, quoted(plan.resource_group)
        if group is None:
            if not plan.creates_resource_group:
                text = f"the resource group {shown} does not exist, and the deployment does not create it"
                yield self.finding(self.path, text, f"az group create --name {quote(name)} --location {plan.location}")
            return
        if same(below(group, "properties", "provisioningState"), "Deleting"):
            text = f"the resource group {shown} is being deleted"
            yield self.finding(self.path, text, f"az group wait --deleted --name {quote(name)}")
        place = group.get("location")
        if plan.creates_resource_group and not same(place, plan.location):
            text = (
                f"the resource group {shown} exists in {said(place)}; the deployment would create it in {plan.location}"
            )
            yield self.finding(self.path, text, "choose another resource group, or delete it")


class ForeignGroup(Check):
    id = "W4503"
    summary = "The resource group that the deployment would create exists, and is not its own."
    why = "Who deletes the deployment deletes its resource group, and what others have put there."
    fix = "Write `resource_group: {existing: NAME}`, or choose another name."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/delete-resource-group"
    question = "whether the resource group is the deployment's own"
    path = ("azure", "resource_group")

    def needed(self, plan: Plan) -> bool:
        return plan.creates_resource_group

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        group, shown = reader.find(resource_manager.group(plan.resource_group)), quoted(plan.resource_group)
        if group is None:
            return
        tag = below(group, "tags", OWNER_TAG)
        if tag is None:
            text = f"the resource group {shown} exists and is not of this deployment"
            hint = f"say so: resource_group: {{existing: {plan.resource_group}}}, or choose another name"
            yield self.finding(self.path, text, hint)
        elif not same(tag, plan.name):
            text = f"the resource group {shown} belongs to the deployment {quoted(str(tag))}"
            yield self.finding(self.path, text, "choose another resource group")
