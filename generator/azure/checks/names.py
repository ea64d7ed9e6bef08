"""Names that only one owner can have, and the resource group."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...plan.types import Plan
from ..check import Check, Finding
from ..findings.names import STORAGE, WantedName, foreign_group, group_faults, taken, wanted_names
from ..reader import Reader
from ..request import Call
from ..requests.services import MYSQL_NAME, STORAGE_NAME
from ..requests.subscriptions import GROUP
from .own import own_resources


class NameTaken(Check):
    id = "E4501"
    summary = "A name that the definition gives is someone else's, or Azure does not accept it."
    why = "Storage accounts and database servers share one name space with all other customers of the cloud."
    fix = "Choose another name, or leave it out: then the deployment derives a unique one."
    source = "https://learn.microsoft.com/rest/api/storagerp/storage-accounts/check-name-availability"
    question = "whether the names are free or ours"

    def needed(self, plan: Plan) -> bool:
        """Whether the definition gives one."""
        return bool(wanted_names(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each name that cannot be had."""
        wanted = wanted_names(plan)
        ours = own_resources(plan, reader)
        calls = [_call(plan, each) for each in wanted]
        answers = reader.together([partial(reader.post, call) for call in calls])
        for each, answer in zip(wanted, answers, strict=True):
            yield from (self.finding(*found) for found in taken(each, answer, ours))


def _call(plan: Plan, wanted: WantedName) -> Call:
    body = {"name": wanted.name, "type": wanted.type}
    return STORAGE_NAME(body=body) if wanted.type == STORAGE else MYSQL_NAME(region=plan.location, body=body)


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
        """What is wrong with it."""
        group = reader.find(GROUP(group=plan.resource_group))
        yield from (self.finding(*found) for found in group_faults(plan, group))


class ForeignGroup(Check):
    id = "W4503"
    summary = "The resource group that the deployment would create exists, and is not its own."
    why = "Who deletes the deployment deletes its resource group, and what others have put there."
    fix = "Write `resource_group: {existing: NAME}`, or choose another name."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/delete-resource-group"
    question = "whether the resource group is the deployment's own"
    path = ("azure", "resource_group")

    def needed(self, plan: Plan) -> bool:
        """Whether it is to be created."""
        return plan.creates_resource_group

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """It carries another tag, or none."""
        group = reader.find(GROUP(group=plan.resource_group))
        yield from (self.finding(*found) for found in foreign_group(plan, group))
