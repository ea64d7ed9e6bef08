"""NetApp Files volumes: their order, large ones, and what the subscription must have for them."""

from __future__ import annotations

from generator.plan.bicep_modules import BicepModule
from generator.plan.deployment import Plan
from generator.plan.file_systems.netapp import NetAppVolume
from tests.bed.bicep.deployment import resources_of
from tests.bed.plans import plan_from, slurm_of
from tests.bicep.test_modules import module_text
from tests.bicep.variants import main_bicep, rendered_files

THREE = """
network: {address_space: 10.50.0.0/20}
storage:
  home: {type: anf, size_tib: 1}
  sched: {type: anf, size_tib: 1}
  mounts:
    - {path: /data, type: amlfs, tier: 125, size_tib: 16}
    - {path: /fast, type: anf, size_tib: 4, service_level: Flexible, throughput_mibps: 256, zone: "2"}
"""
POOL = "Microsoft.NetApp/netAppAccounts/capacityPools"
VOLUME = f"{POOL}/volumes"
LARGE = """
storage: {home: {type: anf, size_tib: 100, large_volume: true, service_level: Ultra}}
"""


def home(plan: Plan) -> NetAppVolume:
    found = slurm_of(plan).home
    assert isinstance(found, NetAppVolume)
    return found


def created(plan: Plan) -> dict[str, BicepModule]:
    return {module.symbol: module for module in plan.modules}


def test_volumes_are_created_one_after_the_other() -> None:
    plan = plan_from(THREE)
    after = {symbol: module.after for symbol, module in created(plan).items()}
    assert after == {
        "lustre0": (),
        "netapp": (),
        "volume0": ("netapp",),
        "volume1": ("netapp", "volume0"),
        "volume2": ("netapp", "volume1"),
    }
    text = main_bicep(plan)
    for symbol, before in (("volume1", "volume0"), ("volume2", "volume1")):
        block = text[text.index(f"module {symbol} ") :]
        assert block[: block.index("\n}\n")].endswith(f"\n  dependsOn: [netapp, {before}]")


def test_azure_receives_the_level_of_the_pool_and_no_null() -> None:
    """Azure takes throughputMibps in pools with manual QoS only, and refuses it elsewhere, null too.

    Source: https://learn.microsoft.com/azure/azure-netapp-files/manage-manual-qos-capacity-pool
    """
    found = resources_of(rendered_files(plan_from(THREE)))
    pools = {each.name: each.properties for each in found if each.type == POOL}
    volumes = {each.name: each.properties for each in found if each.type == VOLUME}
    assert pools.keys() == volumes.keys() == {"home", "sched", "fast"}
    for name, volume in volumes.items():
        pool = pools[name]
        assert None not in (*volume.values(), *pool.values()), name
        assert volume["serviceLevel"] == pool["serviceLevel"]
        assert "isLargeVolume" not in volume
        own = name == "fast"
        assert pool["qosType"] == ("Manual" if own else "Auto")
        assert (pool.get("customThroughputMibps"), volume.get("throughputMibps")) == (
            (256, 256) if own else (None, None)
        )
    (large,) = (each for each in resources_of(rendered_files(plan_from(LARGE))) if each.type == VOLUME)
    assert large.properties["isLargeVolume"] is True


def test_large_volumes_are_asked_for_and_reach_more() -> None:
    plan = plan_from(LARGE)
    assert dict(created(plan)["volume0"].parameters)["largeVolume"] is True
    assert home(plan).bandwidth_gb_per_s == 12800 * 1024**2 / 1e9
    small = plan_from(LARGE.replace("large_volume: true, ", ""))
    assert dict(created(small)["volume0"].parameters)["largeVolume"] is False
    assert home(small).bandwidth_gb_per_s == 4500 * 1024**2 / 1e9
    assert "large volume" in home(plan).label


def test_what_the_subscription_must_have_is_said() -> None:
    quota, flexible, zone = plan_from(THREE).requirements
    assert "take 6 TiB" in quota
    assert "default is 25 TiB" in quota
    assert "ANFFlexibleServiceLevel" in flexible
    assert "zone 2" in zone
    assert len(plan_from(LARGE).requirements) == 1
    assert plan_from().requirements == ()


def test_no_zone_is_chosen_for_a_volume_that_asks_for_none() -> None:
    assert "zone" not in dict(created(plan_from(THREE))["volume0"].parameters)
    assert dict(created(plan_from(THREE))["volume2"].parameters)["zone"] == "2"
    assert "param zone string?" in module_text("netapp-volume")
