"""The accounting database: whether the region offers size and version of a MySQL flexible server to this subscription.

Source: Azure/azure-rest-api-specs, specification/mysql/resource-manager/Microsoft.DBforMySQL/FlexibleServers/stable/
2023-12-30/examples/CapabilitySetByLocation.json. A region that is closed to a subscription has no editions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.accounting import AccountingPlan
from ...plan.deployment import Plan
from ..answers import Item, listed_below, said, same
from ..check import Check, Finding
from ..reader import Reader
from ..refusals import NotAsked
from ..requests.services import MYSQL_OFFERS


def _database(plan: Plan) -> AccountingPlan | None:
    accounting = plan.slurm.accounting if plan.slurm else None
    return accounting if accounting is not None and accounting.is_new else None


def _editions(answer: Item) -> list[Item]:
    return listed_below(answer, "properties", "supportedFlexibleServerEditions")


class _OfDatabase(Check):
    path = ("slurm", "accounting")
    question = "whether the region offers the database's size and version"

    def needed(self, plan: Plan) -> bool:
        return _database(plan) is not None

    @staticmethod
    def answer(plan: Plan, reader: Reader) -> Item:
        found = reader.get(MYSQL_OFFERS(region=plan.location))
        if not isinstance(found.get("properties"), dict):
            raise NotAsked("the answer about MySQL in the region says nothing")
        return found


class DatabaseClosed(_OfDatabase):
    id = "E4707"
    summary = "The region offers this subscription no MySQL flexible server."
    why = "The accounting database is refused. Regions are closed to some subscriptions for want of capacity."
    fix = "Open a support request for the region, or use an existing database."
    source = "https://learn.microsoft.com/azure/mysql/flexible-server/how-to-request-quota-increase"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        if not any(listed_below(each, "supportedSkus") for each in _editions(self.answer(plan, reader))):
            text = f"{plan.location} offers this subscription no MySQL flexible server"
            yield self.finding(self.path, text, "open a support request for the region, or use an existing database")


class DatabaseNotOffered(_OfDatabase):
    id = "E4708"
    summary = "The region does not offer the size or the version of the accounting database."
    why = "The database server is refused."
    fix = "Choose a size or a version that the message names."
    source = "https://learn.microsoft.com/azure/mysql/flexible-server/concepts-service-tiers-storage"

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        answer = self.answer(plan, reader)
        versions = [str(each.get("name")) for each in listed_below(answer, "properties", "supportedServerVersions")]
        yield from self._missing(plan, _editions(answer), versions)
        if not versions:
            yield self.not_known("Azure names no versions")

    def _missing(self, plan: Plan, editions: list[Item], versions: list[str]) -> Iterator[Finding]:
        wanted, sizes = _database(plan), [sku for each in editions for sku in listed_below(each, "supportedSkus")]
        if wanted is None or not sizes:
            return
        if not any(same(sku.get("name"), wanted.sku) for sku in sizes):
            tier = next((each for each in editions if same(each.get("name"), wanted.tier)), {})
            names = ", ".join(said(sku.get("name")) for sku in listed_below(tier, "supportedSkus")) or "none"
            text = f"{plan.location} does not offer the MySQL size {wanted.sku}"
            yield self.finding((*self.path, "sku"), text, f"{wanted.tier} there: {names}")
        if wanted.version is not None and versions and wanted.version not in versions:
            text = f"{plan.location} does not offer MySQL {wanted.version}"
            yield self.finding((*self.path, "version"), text, f"version: one of {', '.join(versions)}")
