"""What holds for every kind of file system, whatever it is, and what single kinds declare."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from syrupy.assertion import SnapshotAssertion

from generator.definition.model import network
from generator.files import assets
from generator.plan.file_systems import registry
from generator.plan.file_systems.base import FileSystem
from generator.plan.file_systems.managed_lustre import ManagedLustre
from generator.plan.file_systems.netapp import NetAppVolume
from generator.plan.file_systems.registry import KINDS, late_addresses, modules
from generator.plan.subnets import ROLES, SUBNETS
from tests.bed.plans import slurm_of
from tests.cluster_template.rendered import read
from tests.plan.definitions import mounted, plan_of, with_every_kind

MODULES = assets.folder("bicep_templates")


SITE = plan_of(
    "storage:",
    "  home: {type: anf, size_tib: 4}",
    "  mounts:",
    "    - {type: amlfs, path: /data, tier: 250, size_tib: 16}",
    "    - {type: anf, path: /scratch, size_tib: 2, service_level: Ultra}",
    "    - {type: existing, path: /tools, address: 10.9.0.4, export_path: /tools}",
    "    - {type: blob, path: /sets, storage_account: datasets0001, container: data}",
)


EVERY_KIND = with_every_kind()


def test_every_module_is_a_kind_and_a_definition_can_ask_for_it() -> None:
    folder = Path(registry.__file__).parent
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "base", "registry"}
    assert {kind.__module__.rpartition(".")[2] for kind in KINDS} == modules
    assert len({kind.default("kind") for kind in KINDS}) == len(KINDS) == len(FileSystem.__subclasses__())
    assert {type(mount) for mount in EVERY_KIND.all_mounts} == set(KINDS)


def test_a_cluster_with_every_kind_is_one_that_cyclecloud_reads() -> None:
    rendered = read(EVERY_KIND)
    assert rendered.findings == ()
    mounted = {options["mountpoint"] for options in rendered.mounts("htc").values()}
    assert mounted == {mount.path for mount in EVERY_KIND.all_mounts if mount.mounted_by is None}


def declared(mount: FileSystem) -> dict[str, object]:
    """Everything that consumers print of a file system."""
    attributes = (name for name in sorted(dir(FileSystem)) if not name.startswith("_"))
    values = {name: getattr(mount, name) for name in attributes}
    kind = type(mount)
    return {name: value for name, value in values.items() if not callable(value)} | {
        "fields": {name: getattr(mount, name) for name in mount.__struct_fields__},
        "module": mount.module(0),
        "node_settings": kind.node_settings([mount]),
        "shared_modules": kind.shared_modules([mount]),
    }


@pytest.mark.parametrize("mount", EVERY_KIND.mounts, ids=lambda mount: mount.kind)
def test_what_a_kind_declares(mount: FileSystem, snapshot: SnapshotAssertion) -> None:
    assert declared(mount) == snapshot


@pytest.mark.parametrize("mount", EVERY_KIND.all_mounts, ids=lambda mount: mount.path)
def test_what_is_created_has_a_module_with_its_parameters_and_an_address(mount: FileSystem) -> None:
    module = mount.module(0)
    assert (module is None) == (mount.address_fact is None)
    assert (module is None) or (mount.resource_types and mount.service and mount.address is None)
    for each in (module, *type(mount).shared_modules([mount])):
        if each is not None:
            text = (MODULES / each.source).read_text()
            declared = dict(re.findall(r"^param (\w+) [\w\[\]]+(\??)", text, re.MULTILINE))
            given = {*(("location", "tags") if each.has_place else ()), *(name for name, _ in each.parameters)}
            assert given <= set(declared)
            assert {name for name, optional in declared.items() if not optional} <= given
    assert module is None or re.search(r"^output address string", (MODULES / module.source).read_text(), re.MULTILINE)


def test_symbols_of_modules_are_unique_and_addresses_come_from_them() -> None:
    symbols = [module.symbol for module in modules(SITE.all_mounts)]
    assert symbols == ["netapp", "volume0", "volume1", "lustre0"]
    assert late_addresses(SITE.all_mounts) == (
        ("homeAddress", "volume0"),
        ("scratchAddress", "volume1"),
        ("dataAddress", "lustre0"),
    )


@pytest.mark.parametrize("mount", EVERY_KIND.all_mounts, ids=lambda mount: mount.path)
def test_every_kind_says_in_words_what_it_is(mount: FileSystem) -> None:
    for text in (mount.label, mount.description, mount.origin):
        assert text == text.strip()
        assert "None" not in text


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.subnet is not None], ids=lambda kind: kind.default("kind")
)
def test_a_subnet_of_a_kind_can_be_given_in_new_and_existing_networks(kind: type[FileSystem]) -> None:
    assert kind.subnet is not None
    assert SUBNETS[kind.subnet.role] is kind.subnet
    assert kind.subnet.role in network.SubnetPrefixes.declared_keys
    assert kind.subnet.role in network.ExistingSubnets.declared_keys


def test_the_module_of_the_network_knows_every_role() -> None:
    text = (MODULES / "modules" / "network.bicep").read_text()
    declared = re.search(r"^type subnetRole = (.*)$", text, re.MULTILINE)
    assert declared is not None
    assert set(re.findall(r"'(\w+)'", declared[1])) == set(ROLES)


def test_egress_goes_through_the_gateway_only_where_there_is_one() -> None:
    lines = ("storage: {mounts: [{type: amlfs, path: /data, tier: 250, size_tib: 16}]}",)
    with_gateway = plan_of(*lines).network.subnets
    assert {subnet.role for subnet in with_gateway if subnet.uses_nat} == {"server", "compute", "lustre"}
    without = plan_of(*lines, "network: {nat_gateway: false}").network.subnets
    assert not any(subnet.uses_nat for subnet in without)


# ---------------------------------------------------------------- capacity and throughput


def test_lustre_moves_what_its_tier_and_size_give() -> None:
    lustre = mounted(
        "{type: amlfs, path: /data, tier: 250, size_tib: 512}",
        "silence: [{rule: W0616, reason: asked}, {rule: W0310, reason: asked}]",
    )
    assert isinstance(lustre, ManagedLustre)
    assert lustre.bandwidth_gb_per_s == 128


@pytest.mark.parametrize(
    ("level", "tib", "mib_per_s"),
    [("Standard", 10, 160), ("Premium", 4, 256), ("Ultra", 4, 512), ("Ultra", 100, 4500)],
)
def test_netapp_moves_what_its_level_gives_its_size_up_to_what_one_volume_reaches(
    level: str, tib: int, mib_per_s: int
) -> None:
    volume = mounted(f"{{type: anf, path: /data, size_tib: {tib}, service_level: {level}}}")
    assert isinstance(volume, NetAppVolume)
    assert volume.bandwidth_gb_per_s == pytest.approx(mib_per_s * 2**20 / 1e9)


def test_a_flexible_volume_moves_what_is_asked_for_and_says_so_everywhere() -> None:
    volume = mounted("{type: anf, path: /data, size_tib: 2, service_level: Flexible, throughput_mibps: 1000}")
    assert isinstance(volume, NetAppVolume)
    assert volume.bandwidth_gb_per_s == pytest.approx(1000 * 2**20 / 1e9)
    assert volume.label == "NetApp Files, Flexible, 1000 MiB/s"
    assert volume.description == "Azure NetApp Files, 2048 GiB, Flexible, 1000 MiB/s"
    assert dict(volume.module(0).parameters)["throughputMibps"] == 1000


def test_what_nobody_published_is_not_guessed() -> None:
    assert mounted("{type: existing, path: /data, address: 10.9.0.4}").bandwidth_gb_per_s is None
    assert slurm_of(SITE).home.bandwidth_gb_per_s is not None
    assert slurm_of(SITE).sched.bandwidth_gb_per_s is None


# ---------------------------------------------------------------- on the nodes


def test_read_only_mounts_and_late_ones_are_not_health_checked() -> None:
    share = mounted("{type: existing, path: /data, address: 10.9.0.4}")
    assert share.is_health_checked
    assert not replace(share, mount_options="hard, ro").is_health_checked
    assert replace(share, mount_options="rom").is_health_checked
    assert not next(each for each in SITE.mounts if each.mounted_by).is_health_checked


def test_jobs_prefer_lustre_to_nfs_and_nfs_to_containers() -> None:
    by_path = {each.path: each.data_rank for each in SITE.mounts}
    assert by_path["/data"] < by_path["/scratch"] == by_path["/tools"] < by_path["/sets"]
