"""Every change says where it arrives on a cluster that runs."""

from __future__ import annotations

from functools import partial

import pytest

from generator.definition.model.slurm import Slurm
from generator.definition.pages.schema import cost_of
from generator.output import reach, refusals
from generator.output.diff import Change, compare
from generator.plan.effective import effective
from tests.bed.plans import plan_from

TWO = """
slurm: {partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true},
                     {name: big, vm_size: Standard_D64ds_v5, max_nodes: 2}]}
"""
MOUNT = "storage: {mounts: [{type: existing, path: /data, address: 10.9.0.4, export_path: /data}]}"


def changes(*new: str) -> dict[str, Change]:
    """What changes from TWO, by place."""
    before, after = effective(plan_from(TWO)), effective(plan_from(TWO, *new))
    found = refusals.refine(compare(before, after, partial(cost_of, effective=after, before=before)), before, after)
    return {each.where: each for each in reach.with_reach(found, before, after)}


def htc(change: str) -> str:
    return TWO.replace("default: true", f"default: true, {change}")


@pytest.mark.parametrize(
    ("change", "where", "expected"),
    [
        (htc("image: cycle.image.ubuntu22"), "definition.slurm.partitions[htc].image", "new nodes of htc"),
        (htc("configuration: {a.b: c}"), "definition.slurm.partitions[htc].configuration.a.b", "new nodes of htc"),
        (htc("dampen_memory_percent: 9"), "definition.slurm.partitions[htc].dampen_memory_percent", "running nodes"),
        (TWO.replace("max_nodes: 2}", "max_nodes: 3}"), "definition.slurm.partitions[big].max_nodes", "running nodes"),
        (
            "slurm: {image: cycle.image.ubuntu22}",
            "definition.slurm.image",
            "new nodes of htc, big, new login nodes, scheduler restart",
        ),
        (htc("image: cycle.image.ubuntu22"), "derived.slurm.node_arrays[htc].generation", "new nodes of htc"),
        ("tags: {owner: me}", "definition.tags.owner", None),
        ("security: {encryption_at_host: true}", "definition.security.encryption_at_host", "new nodes of htc, big"),
        (
            "slurm: {settings: {SchedulerTimeSlice: 60}}",
            "definition.slurm.settings.SchedulerTimeSlice",
            "scheduler restart",
        ),
        ("slurm: {idle_timeout_s: 900}", "definition.slurm.idle_timeout_s", "scheduler restart"),
        ("slurm: {policy: {max_array_size: 99}}", "definition.slurm.policy.max_array_size", "scheduler restart"),
        (
            "slurm: {policy: {reservations: [{name: x, start: '2030-01-07T08:00:00', duration: '60'}]}}",
            "definition.slurm.policy.reservations[x]",
            "running nodes",
        ),
        ("slurm: {login: {count: 2}}", "definition.slurm.login.count", "running nodes"),
        ("slurm: {login: {image: cycle.image.ubuntu22}}", "definition.slurm.login.image", "new login nodes"),
        ("slurm: {scheduler: {image: cycle.image.ubuntu22}}", "definition.slurm.scheduler.image", "scheduler restart"),
        ("slurm: {health_checks: false}", "definition.slurm.health_checks", "new nodes of htc, big, scheduler restart"),
        ("slurm: {healthagent: false}", "definition.slurm.healthagent", "new nodes of htc, big, scheduler restart"),
        ("slurm: {hand_back_after_h: 48}", "definition.slurm.hand_back_after_h", "scheduler restart"),
        ("server: {vm_size: Standard_D8as_v5}", "definition.server.vm_size", None),
        ("slurm: {cluster_name: other}", "definition.slurm.cluster_name", None),
    ],
)
def test_where_a_change_arrives(change: str, where: str, expected: str | None) -> None:
    assert changes(change)[where].reaches == expected


def test_a_mount_needs_the_cluster_to_stop() -> None:
    assert changes(MOUNT)["definition.storage.mounts[/data]"].reaches == "cluster restart"


def test_a_certificate_of_the_accounting_is_read_when_the_scheduler_starts() -> None:
    change = Change(("definition", "slurm", "accounting", "certificate"), None, "x", "in place", "certificate")
    plan = effective(plan_from(TWO))
    assert reach.reach(change, plan, plan) == "scheduler restart"


def test_a_partition_that_comes_or_goes_concerns_no_node_that_runs() -> None:
    one = "slurm: {partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}]}"
    assert changes(one)["definition.slurm.partitions[big]"].reaches == "running nodes"


def test_a_first_cluster_reaches_nothing_that_runs() -> None:
    after = effective(plan_from())
    without = after | {"derived": after["derived"] | {"slurm": None}}
    change = Change(("definition", "slurm"), None, {}, "in place", "definition.slurm")
    assert reach.reach(change, without, after) is None


@pytest.mark.parametrize("key", sorted(k for k, each in Slurm.declared_keys.items() if each.change == "node restart"))
def test_every_key_of_the_cluster_that_nodes_keep_is_said_to_reach_new_nodes(key: str) -> None:
    plan = effective(plan_from(TWO))
    newer = effective(plan_from(TWO, "security: {encryption_at_host: true}"))
    change = Change(("definition", "slurm", key), 1, 2, "node restart", key)
    assert "new " in str(reach.reach(change, plan, newer))
