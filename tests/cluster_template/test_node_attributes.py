"""`node_attributes`: what CycleCloud takes of the VMs of a role reaches that role's section, and no other."""

from __future__ import annotations

from functools import cache

from generator.catalog import node_attributes
from generator.cctemplate.vocabulary import RANGES, SWITCHES
from generator.definition.pages.schema import cost_of
from tests.bed.plans import plan_from
from tests.cluster_template.rendered import Rendered, read

SECURITY = "security: {encryption_at_host: true, trusted_launch: true}"
OWN = """
tags: {team: science, site: north}
slurm:
  scheduler: {node_attributes: {volume.sched.StorageAccountType: PremiumV2_LRS, KeepAlive: true}}
  login: {os_disk_gb: 64, node_attributes: {volume.boot.Azure.Caching: ReadOnly}}
  partitions:
    - {name: a, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true,
       node_attributes: {encryptionathost: false, EnableSecureBoot: true, volume.boot.storageaccounttype: Premium_LRS,
                         TAGS.Team: "$5 each", TerminateNotificationTimeout: 5m}}
    - {name: b, vm_size: Standard_D64ds_v5, max_nodes: 2}
"""


@cache
def rendered() -> Rendered:
    return read(plan_from(SECURITY, OWN))


def test_the_template_is_clean() -> None:
    assert rendered().findings == ()


def test_a_role_has_its_own_and_the_others_keep_the_default() -> None:
    found = rendered()
    assert [found.attribute(node, "EncryptionAtHost") for node in ("a", "b", "scheduler")] == [False, True, True]
    assert [found.attribute(node, "EnableSecureBoot") for node in ("a", "b", "login")] == [True, False, False]
    assert [found.attribute(node, "TerminateNotificationTimeout") for node in ("a", "b")] == ["5m", "10m"]
    assert [found.attribute(node, "KeepAlive") for node in ("scheduler", "login", "a")] == [True, None, None]


def test_tags_of_a_role_are_added_to_those_of_the_deployment() -> None:
    found = rendered()
    tags = {node: found.attribute(node, "Tags") for node in ("a", "b", "login")}
    assert tags["b"] == tags["login"] == found.values["NodeTags"]
    assert isinstance(tags["a"], dict)
    assert isinstance(tags["b"], dict)
    assert tags["a"] == {name: value for name, value in tags["b"].items() if name != "team"} | {"Team": "$5 each"}
    assert tags["b"]["team"] == "science"


def test_disks_are_of_the_type_that_the_role_asks_for() -> None:
    found = rendered()
    sched, shared = (found.volumes("scheduler")[name] for name in ("sched", "shared"))
    assert (sched["StorageAccountType"], "SSD" in sched) == ("PremiumV2_LRS", False)
    assert ("StorageAccountType" in shared, shared["SSD"]) == (False, True)
    assert found.volumes("a")["boot"] == {"Size": None, "StorageAccountType": "Premium_LRS"}
    assert found.volumes("login")["boot"] == {"Size": 64, "SSD": True, "Azure.Caching": "ReadOnly"}
    assert "boot" not in found.volumes("b")


def test_without_the_key_nothing_changes() -> None:
    base = read(plan_from("{}"))
    empty = read(plan_from("slurm: {login: {node_attributes: {}}}"))
    assert base.text == empty.text


def test_switches_and_ranges_are_those_of_the_template_check() -> None:
    """One table per kind of section, the same in both places."""
    rows = node_attributes()
    switches = {name for name, row in rows.attributes.items() if row.type == "switch"}
    assert switches - SWITCHES["node"] == {"HybridBenefit", "ThrottleCapacity"}
    assert SWITCHES["node"] - switches <= set(rows.set_by_template.keys)
    assert not set(RANGES["node"]) & set(rows.attributes)


def test_a_change_reaches_nodes_that_start() -> None:
    for role in (("scheduler",), ("login",), ("partitions", 0)):
        assert cost_of(("definition", "slurm", *role, "node_attributes", "KeepAlive")) == "node restart"
