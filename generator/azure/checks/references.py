"""Resources of others that the definition names by their ids."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from msgspec import Struct

from ...plan.deployment import Plan
from ...plan.resources import resource_id
from ...problems.problem import KeyPath
from ...rules.base import quoted
from ..answers import Item, said, same
from ..check import Check, Finding
from ..reader import Reader
from ..refusals import NotAsked, Refused
from ..requests import resource_manager


class _Reference(Struct, frozen=True):
    id: str
    path: KeyPath
    what: str
    is_near: bool = False
    """Whether it must be in the deployment's subscription and region."""


def _references(plan: Plan) -> Iterator[_Reference]:
    """All that the deployment uses and does not create, but for networks, DNS zones and images.

    Route tables serve subnets of their own region and subscription, sets of keys disks of theirs. Sources:
    https://learn.microsoft.com/azure/virtual-network/manage-route-table and
    https://learn.microsoft.com/azure/virtual-machines/disk-encryption#restrictions
    """
    route, security, monitoring = plan.network.route, plan.security, plan.monitoring
    path: KeyPath
    if route is not None and route.table_id is not None:
        yield _Reference(route.table_id, ("network", "route_table"), "the route table", is_near=True)
    if (keys := security.disk_encryption_set_id) is not None:
        path = ("security", "disk_encryption_set_id")
        yield _Reference(keys, path, "the disk encryption set", is_near=True)
    if security.diagnostics_workspace_id is not None:
        path = ("security", "diagnostics_workspace_id")
        yield _Reference(security.diagnostics_workspace_id, path, "the workspace")
    if monitoring is not None:
        path = ("monitoring", "data_collection_rule_id")
        yield _Reference(monitoring.data_collection_rule_id, path, "the data collection rule")
    if plan.existing_server is not None:
        yield _Reference(plan.existing_server.vm_id, ("server", "existing", "vm_id"), "the existing server")
    if plan.locker.account_id is not None:
        path = ("server", "existing", "locker_account_id")
        yield _Reference(plan.locker.account_id, path, "the locker's account")


class ReferenceUnusable(Check):
    id = "E4504"
    summary = "A resource that the definition names by its id does not exist, or is in another subscription or region."
    why = (
        "What refers to it is refused: subnets take route tables, and disks sets of keys, of their own subscription and"
        " region only."
    )
    fix = "Correct the id, or choose one in the subscription and region of the deployment."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/error-not-found"
    question = "whether the resources that the definition names exist"

    def needed(self, plan: Plan) -> bool:
        return any(_references(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each of them; they may have other owners, and what one hides says nothing of the others."""
        for found in reader.together([partial(self._one, plan, reader, each) for each in _references(plan)]):
            yield from found

    def _one(self, plan: Plan, reader: Reader, reference: _Reference) -> list[Finding]:
        parts = resource_id(reference.id)
        try:
            answer = reader.find(resource_manager.by_id(reference.id))
        except (NotAsked, Refused) as reason:
            return [self.not_known(f"{reference.what}: {reason}", path=reference.path)]
        fault = _fault(plan, reader.subscription, reference, parts.subscription, answer)
        return [self.finding(reference.path, f"{reference.what} {fault}")] if fault else []


def _fault(plan: Plan, subscription: str, reference: _Reference, owner: str, answer: Item | None) -> str | None:
    """What is wrong with one: it does not exist, or is too far away."""
    if answer is None:
        return f"{quoted(reference.id)} does not exist"
    if reference.is_near and not same(owner, subscription):
        return f"is in subscription {owner}, the deployment in {subscription}"
    if reference.is_near and not same(answer.get("location"), plan.location):
        return f"is in {said(answer.get('location'))}, the deployment in {plan.location}"
    return None
