"""The accounting database: whether the region offers size and version of a MySQL flexible server to this subscription.

Source: Azure/azure-rest-api-specs, specification/mysql/resource-manager/Microsoft.DBforMySQL/FlexibleServers/stable/
2023-12-30/examples/CapabilitySetByLocation.json. A region that is closed to a subscription has no editions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ...plan.types import AccountingPlan, Plan
from ...problems.problem import KeyPath
from .answers import Found, Item, listed_below, said, same

_HERE: KeyPath = ("slurm", "accounting")


def database(plan: Plan) -> AccountingPlan | None:
    """The database that the deployment creates."""
    accounting = plan.slurm.accounting if plan.slurm else None
    return accounting if accounting is not None and accounting.is_new else None


def closed(plan: Plan, answer: Item) -> Iterator[Found]:
    """A region that offers this subscription no MySQL server at all."""
    if not any(listed_below(each, "supportedSkus") for each in _editions(answer)):
        text = f"{plan.location} offers this subscription no MySQL flexible server"
        yield Found(_HERE, text, "open a support request for the region, or use an existing database")


def not_offered(plan: Plan, answer: Item) -> Iterator[Found]:
    """A size or a version that the region does not offer."""
    wanted, editions = database(plan), _editions(answer)
    if wanted is None or not any(listed_below(each, "supportedSkus") for each in editions):
        return
    sizes = [sku for each in editions for sku in listed_below(each, "supportedSkus")]
    if not any(same(sku.get("name"), wanted.sku) for sku in sizes):
        tier = next((each for each in editions if same(each.get("name"), wanted.tier)), {})
        names = ", ".join(said(sku.get("name")) for sku in listed_below(tier, "supportedSkus")) or "none"
        text = f"{plan.location} does not offer the MySQL size {wanted.sku}"
        yield Found((*_HERE, "sku"), text, f"{wanted.tier} there: {names}")
    versions = [str(each.get("name")) for each in _versions(answer)]
    if wanted.version is not None and versions and wanted.version not in versions:
        text = f"{plan.location} does not offer MySQL {wanted.version}"
        yield Found((*_HERE, "version"), text, f"version: one of {', '.join(versions)}")


def says_versions(answer: Item) -> bool:
    """Whether the answer names versions at all."""
    return bool(_versions(answer))


def _editions(answer: Item) -> list[Item]:
    return listed_below(answer, "properties", "supportedFlexibleServerEditions")


def _versions(answer: Item) -> list[Item]:
    return listed_below(answer, "properties", "supportedServerVersions")
