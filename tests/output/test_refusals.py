"""Changes that Azure refuses as they stand cost what they cost, whatever their key says, and name their procedure."""

from __future__ import annotations

from functools import partial

import pytest

from generator.definition.pages.schema import cost_of
from generator.output import refusals
from generator.output.diff import BY_HAND, Change, compare
from generator.output.procedures import procedure_of
from generator.output.refusals import DNS_ZONE, NEW_DATABASE, NO_LONGER, REDUNDANCY, SMALLER_VOLUME, WAY_IN
from generator.plan.effective import effective
from tests.bed.plans import plan_from
from tests.bicep.variants import HUB_ID, VNET_ID, ZONE_ID

SPACE = "network: {address_space: 10.50.0.0/20}"
HUB = f"network: {{access: hub, hub: {{vnet_id: {HUB_ID}, use_remote_gateway: false}}}}"
PUBLIC = "network: {access: public, allowed_sources: [203.0.113.0/24]}"
_THEIRS = f"{{vnet_id: {VNET_ID}, subnets: {{server: s, compute: c, netapp: n}}}}"
EXISTING = f"network: {{address_space: null, existing: {_THEIRS}}}"
ZONE = f"network: {{blob_dns_zone: {ZONE_ID}}}"
OTHER_ZONE = f"network: {{blob_dns_zone: {ZONE_ID.replace('network-rg', 'other-rg')}}}"
NO_ZONE = "network: {blob_dns_zone: none}"


def anf(size: int) -> str:
    return f"{{{SPACE}, storage: {{mounts: [{{path: /data, type: anf, size_tib: {size}}}]}}}}"


def database(storage: int) -> str:
    return f"{{{SPACE}, slurm: {{accounting: {{type: new, storage_gib: {storage}}}}}}}"


def locker(redundancy: str) -> str:
    return f"storage: {{locker: {{redundancy: {redundancy}}}}}"


def changes(old: str, new: str) -> dict[str, tuple[str, str | None]]:
    """Where → cost and section of each change."""
    before, after = (effective(plan_from(text)) for text in (old, new))
    found = compare(before, after, partial(cost_of, effective=after, before=before))
    refined: tuple[Change, ...] = refusals.refine(found, before, after)
    return {each.where: (each.cost, procedure_of(each, after, before)) for each in refined}


@pytest.mark.parametrize(
    ("old", "new", "where", "cost", "title"),
    [
        ("{}", HUB, "definition.network.access", BY_HAND, WAY_IN),
        ("{}", PUBLIC, "definition.network.access", BY_HAND, WAY_IN),
        ("{}", HUB, "derived.network.subnets[AzureBastionSubnet]", BY_HAND, WAY_IN),
        (HUB, "{}", "definition.network.access", "in place", NO_LONGER),
        (PUBLIC, "{}", "definition.network.access", "in place", NO_LONGER),
        (anf(2), SPACE, "derived.network.subnets[netapp]", BY_HAND, NO_LONGER),
        (database(32), SPACE, "derived.network.subnets[database]", BY_HAND, NO_LONGER),
        (SPACE, anf(2), "derived.network.subnets[netapp]", "in place", None),
        ("{}", ZONE, "definition.network.blob_dns_zone", BY_HAND, DNS_ZONE),
        (ZONE, "{}", "definition.network.blob_dns_zone", BY_HAND, DNS_ZONE),
        (ZONE, OTHER_ZONE, "definition.network.blob_dns_zone", BY_HAND, DNS_ZONE),
        (ZONE, NO_ZONE, "definition.network.blob_dns_zone", "in place", NO_LONGER),
        (NO_ZONE, "{}", "definition.network.blob_dns_zone", "in place", None),
        (anf(4), anf(2), "definition.storage.mounts[/data].size_tib", BY_HAND, SMALLER_VOLUME),
        (anf(2), anf(4), "definition.storage.mounts[/data].size_tib", "in place", None),
        (database(64), database(32), "definition.slurm.accounting.storage_gib", "recreate", NEW_DATABASE),
        (database(32), database(64), "definition.slurm.accounting.storage_gib", "in place", None),
        (locker("Standard_LRS"), locker("Standard_GRS"), "definition.storage.locker.redundancy", "in place", None),
        (locker("Standard_LRS"), locker("Standard_ZRS"), "definition.storage.locker.redundancy", BY_HAND, REDUNDANCY),
        (locker("Standard_ZRS"), locker("Standard_GRS"), "definition.storage.locker.redundancy", BY_HAND, REDUNDANCY),
        ("{}", "network: {nat_gateway: false}", "definition.network.nat_gateway", "in place", NO_LONGER),
    ],
)  # fmt: skip
def test_costs_and_procedures(old: str, new: str, where: str, cost: str, title: str | None) -> None:
    assert changes(old, new)[where] == (cost, title)


def test_subnets_of_an_existing_network_are_no_concern_of_ours() -> None:
    with_volume = f"{{{EXISTING}, storage: {{mounts: [{{path: /data, type: anf, size_tib: 2}}]}}}}"
    found = changes(with_volume, EXISTING)
    assert found["derived.network.subnets"] == ("in place", None)
    assert BY_HAND not in {cost for cost, _ in found.values()}


def test_a_bastion_that_another_network_replaces_is_a_second_deployment() -> None:
    assert changes("{}", EXISTING)["definition.network.existing"] == ("recreate", "A second deployment")
