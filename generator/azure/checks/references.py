"""Resources of others that the definition names by their ids."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from ...plan.resources import resource_id
from ...plan.types import Plan
from ..check import Check, Finding
from ..findings.references import ACCOUNTS, KEYS, LOGS, ROUTES, RULES, SERVERS, Reference, references, unusable
from ..reader import Reader
from ..refusals import NotAsked, Refused
from ..requests.references import ACCOUNT, COLLECTION_RULE, DISK_ENCRYPTION_SET, ROUTE_TABLE, SERVER, WORKSPACE

_REQUESTS = {
    ROUTES: ROUTE_TABLE,
    KEYS: DISK_ENCRYPTION_SET,
    LOGS: WORKSPACE,
    RULES: COLLECTION_RULE,
    SERVERS: SERVER,
    ACCOUNTS: ACCOUNT,
}


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
        """Whether it names any."""
        return bool(references(plan))

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each of them; they may have other owners, and what one hides says nothing of the others."""
        for found in reader.together([partial(self._one, plan, reader, each) for each in references(plan)]):
            yield from found

    def _one(self, plan: Plan, reader: Reader, reference: Reference) -> list[Finding]:
        parts = resource_id(reference.id)
        call = _REQUESTS[reference.type](owner=parts.subscription, group=parts.resource_group, name=parts.name)
        try:
            answer = reader.find(call)
        except (NotAsked, Refused) as reason:
            return [self.not_known(f"{reference.what}: {reason}", path=reference.path)]
        return [self.finding(*found) for found in unusable(plan, reader.subscription, reference, answer)]
