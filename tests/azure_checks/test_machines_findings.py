"""VM sizes and quota: each finding once provoked and once gone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from generator.azure.check import Finding
from generator.azure.checks import quota, vm_sizes
from generator.azure.checks.quota import QuotaBelowMaximum, QuotaTooSmall
from generator.azure.checks.vm_sizes import OtherFigures, SizeLacksAbility, SizeNotOffered, ZoneNotOffered
from tests.azure_checks.answers import Answer, restriction, size, usage
from tests.bed.plans import plan_from

PLAN = """
security: {encryption_at_host: true, trusted_launch: true}
slurm:
  scheduler: {high_availability: true, zone: "1", backup_zone: "2"}
  partitions:
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 10, default: true, zone: "3", spot: true}
    - {name: big, vm_size: Standard_E64ds_v5, max_nodes: 3}
storage:
  sched: {type: existing, address: 10.0.0.4, export_path: /sched}
  home: {type: existing, address: 10.0.0.4, export_path: /home}
"""
SERVER, HTC, BIG = "Standard_D4as_v5", "Standard_D64ds_v5", "Standard_E64ds_v5"


def offers(**changed: Answer) -> list[Answer]:
    """What the region offers; a key is the beginning of a family's letter in upper case."""
    return [
        size(SERVER, "standardDASv5Family", 4, **changed.get("server", {})),
        size(HTC, "standardDDSv5Family", 64, **changed.get("htc", {})),
        size(BIG, "standardEDSv5Family", **{"vcpus": 64, **changed.get("big", {})}),
    ]


def found(check: type[vm_sizes._OfSizes], items: list[Answer]) -> list[Finding]:
    return list(check().judged(plan_from(PLAN), vm_sizes.offered(items, (SERVER, HTC, BIG))))


def test_a_healthy_region_gives_no_finding() -> None:
    for check in (SizeNotOffered, ZoneNotOffered, SizeLacksAbility, OtherFigures):
        assert found(check, offers()) == []


def test_a_size_that_is_not_in_the_list() -> None:
    (one,) = found(SizeNotOffered, offers()[:2])
    assert one.path == ("slurm", "partitions", 1, "vm_size")
    assert one.message == "southcentralus does not offer Standard_E64ds_v5 (partition big)"
    assert str(one.hint).startswith("az vm list-skus -l southcentralus")


@pytest.mark.parametrize(
    ("reason", "words"),
    [("NotAvailableForSubscription", "support request"), ("QuotaId", "offer"), ("SomethingNew", "another size")],
)
def test_a_location_restriction_forbids_the_size_and_says_why(reason: str, words: str) -> None:
    elsewhere = restriction("Location", reason, "westeurope")
    assert found(SizeNotOffered, offers(big={"restrictions": [elsewhere]})) == []
    (one,) = found(SizeNotOffered, offers(big={"restrictions": [restriction("Location", reason)]}))
    assert "cannot be used in southcentralus" in one.message
    assert words in str(one.hint)


def test_zones_are_those_of_the_offer_without_the_restricted_ones() -> None:
    lost = restriction("Zone", "NotAvailableForSubscription", zones=("3",))
    changed = offers(htc={"restrictions": [lost]})
    assert found(SizeNotOffered, changed) == []
    (one,) = found(ZoneNotOffered, changed)
    assert one.path == ("slurm", "partitions", 0, "zone")
    assert "in zone 1 and 2" in one.message
    no_zones = found(ZoneNotOffered, offers(server={"zones": ()}))
    assert [each.path for each in no_zones] == [("slurm", "scheduler", "zone"), ("slurm", "scheduler", "backup_zone")]


def test_abilities_that_azure_denies() -> None:
    lacks = {"EncryptionAtHostSupported": "False", "LowPriorityCapable": "False", "TrustedLaunchDisabled": "True"}
    messages = {
        (each.path[-1], each.message.split(" (")[0])
        for each in found(SizeLacksAbility, offers(htc={"capabilities": lacks}))
    }
    assert messages == {("encryption_at_host", HTC), ("spot", HTC), ("trusted_launch", HTC)}


def test_figures_that_differ_from_the_plans() -> None:
    (one,) = found(OtherFigures, offers(big={"vcpus": 48}))
    assert "has 48 vCPUs in southcentralus; the plan counts with 64" in one.message


# ------------------------------------------------------------ quota

FAMILIES = {"standarddasv5family": 1000, "standardedsv5family": 1000, "cores": 1000, "lowprioritycores": 1000}


def short(
    limits: Mapping[str, int | tuple[int, int]], *, at_least: bool, own: tuple[quota.Running, ...] = ()
) -> list[Finding]:
    plan, rows = plan_from(PLAN), []
    for name, value in (FAMILIES | dict(limits)).items():
        used, limit = value if isinstance(value, tuple) else (0, value)
        rows.append(usage(name, used, limit))
    sizes = vm_sizes.offered(offers(), (SERVER, HTC, BIG))
    check = QuotaTooSmall() if at_least else QuotaBelowMaximum()
    return list(check.judged(plan, "SUB", sizes, quota.limits(rows), own))


def test_needs_are_counted_per_limit() -> None:
    needs = {
        need.name: (need.least, need.most)
        for need in quota.needs(plan_from(PLAN), vm_sizes.offered(offers(), (SERVER, HTC, BIG)))
    }
    # Server, two schedulers, one login node; then one node, or all; spot has a limit of its own.
    assert needs == {
        "standardDASv5Family": (16, 16),
        "lowPriorityCores": (64, 640),
        "standardEDSv5Family": (64, 192),
        "cores": (16 + 64, 16 + 192),
    }


@pytest.mark.parametrize(
    ("name", "least", "most", "kind"),
    [
        ("standarddasv5family", 16, 16, "dedicated"),
        ("standardedsv5family", 64, 192, "dedicated"),
        ("cores", 80, 208, "dedicated"),
        ("lowprioritycores", 64, 640, "lowPriority"),
    ],
)
def test_a_limit_that_is_too_small(name: str, least: int, most: int, kind: str) -> None:
    assert short({name: least}, at_least=True) == [] == short({name: most}, at_least=False)
    (one,) = short({name: least - 1}, at_least=True)
    assert f" {least};" in one.message
    assert str(one.hint).startswith("az quota update")
    assert f"value={most} --resource-type {kind}" in str(one.hint)
    assert short({name: least - 1}, at_least=False) == []  # once is enough
    if most > least:
        (one,) = short({name: most - 1}, at_least=False)
        assert f" {most};" in one.message


def test_what_others_use_counts_and_what_is_ours_does_not() -> None:
    own = (quota.Running("standard_e64ds_V5", 2, spot=False), quota.Running(HTC, 3, spot=True))
    assert short({"standardedsv5family": (128, 192), "lowprioritycores": (192, 640)}, at_least=False, own=own) == []
    (one,) = short({"standardedsv5family": (129, 192)}, at_least=False, own=own)
    assert "1 of it in use by others" in one.message
    assert "value=193" in str(one.hint)
    assert len(short({"standardedsv5family": (128, 192)}, at_least=False)) == 1


def test_no_row_of_a_family_is_no_quota() -> None:
    plan = plan_from(PLAN)
    sizes = vm_sizes.offered(offers(), (SERVER, HTC, BIG))
    rows = quota.limits([usage(name, 0, limit) for name, limit in FAMILIES.items() if name != "standardedsv5family"])
    (one,) = QuotaTooSmall().judged(plan, "SUB", sizes, rows, ())
    assert "the region has no such limit" in one.message
    assert "standardEDSv5Family" in str(one.hint)


def test_an_unlimited_family_is_enough() -> None:
    assert short({"cores": -1}, at_least=True) == []


def test_a_size_without_family_or_vcpus_is_said_not_to_be_counted() -> None:
    unknown = """
custom_vm_sizes: [{name: Standard_New_v9, vcpus: 8, memory_gib: 16, architecture: x86_64}]
slurm: {partitions: [{name: htc, vm_size: Standard_New_v9, max_nodes: 1}]}
"""
    plan = plan_from(unknown)
    ((_, reason),) = quota.uncounted(plan, vm_sizes.offered([size("Other")], ()))
    assert "the quota family of Standard_New_v9 is unknown" in reason
    assert list(quota.uncounted(plan, vm_sizes.offered([size("Standard_New_v9")], ("Standard_New_v9",)))) == []


def test_what_runs_is_read_from_vms_and_scale_sets() -> None:
    def vm(name: str, **more: Any) -> Answer:
        return {"location": "southcentralus", "properties": {"hardwareProfile": {"vmSize": name}, **more}}

    def scale_set(mode: str, **more: Any) -> Answer:
        return {
            "location": "South Central US",
            "sku": {"name": HTC, "capacity": 5.0},
            "properties": {"orchestrationMode": mode, **more},
        }

    elsewhere = vm(SERVER) | {"location": "eastus"}
    spot = {"virtualMachineProfile": {"priority": "Spot"}}
    found = quota.running(
        [vm(SERVER), vm(HTC, priority="Low"), elsewhere],
        [scale_set("Uniform", **spot), scale_set("Flexible")],
        "southcentralus",
    )
    assert found == (quota.Running(SERVER, 1, False), quota.Running(HTC, 1, True), quota.Running(HTC, 5, True))
