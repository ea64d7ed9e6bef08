"""The generation of a node array changes with what its nodes get, and with nothing else."""

from __future__ import annotations

import pytest

from generator.plan.cluster import SlurmPlan
from generator.plan.deployment import Plan
from generator.plan.generations import ATTRIBUTE, ON_NODES
from tests.bed.plans import plan_from, slurm_of

TWO = """
slurm: {partitions: [{name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true},
                     {name: big, vm_size: Standard_D64ds_v5, max_nodes: 2}]}
"""
NOT_ON_NODES = {
    "cluster_name", "template_name", "config_name", "project_url", "pin_project", "autoscale", "start_cluster",
    "scheduler", "login", "node_arrays", "accounting", "launch_parameters", "additional_config",
    "policy", "hand_back_h", "certificate_key",
}  # fmt: skip
"""Fields of the cluster that no execute node keeps: the scheduler's, or Slurm's own files on the shared /sched."""


def generations(plan: Plan) -> dict[str, str]:
    return {each.name: each.generation for each in slurm_of(plan).node_arrays}


def htc(change: str) -> str:
    return TWO.replace("default: true", f"default: true, {change}")


@pytest.mark.parametrize(
    "change",
    [
        "image: cycle.image.ubuntu22",
        "vm_size: Standard_D32ds_v5",
        "extra_projects: [misc_ndv4]",
        "configuration: {site.owner: me}",
        "os_disk_gb: 256",
        "node_attributes: {EncryptionAtHost: true}",
        "node_attributes: {volume.boot.StorageAccountType: Premium_LRS}",
        "spot: true",
    ],
)
def test_what_nodes_of_one_partition_get_is_another_generation_of_it_alone(change: str) -> None:
    text = TWO.replace("name: htc, vm_size: Standard_D64ds_v5", "name: htc") if "vm_size" in change else TWO
    old, new = (
        generations(plan_from(TWO)),
        generations(plan_from(text.replace("default: true", f"default: true, {change}"))),
    )
    assert old["htc"] != new["htc"]
    assert old["big"] == new["big"]


@pytest.mark.parametrize(
    "change",
    [
        "server: {release: 8.9.0}",
        "slurm: {health_checks: false}",
        "slurm: {image: cycle.image.ubuntu22}",
        "storage: {mounts: [{type: existing, path: /data, address: 10.9.0.4, export_path: /data}]}",
        "security: {encryption_at_host: true}",
    ],
)
def test_what_all_nodes_get_is_another_generation_of_every_partition(change: str) -> None:
    old, new = generations(plan_from(TWO)), generations(plan_from(TWO, change))
    assert all(old[name] != new[name] for name in old)


@pytest.mark.parametrize(
    "change",
    [
        htc("dampen_memory_percent: 7"),
        htc("max_time: 1-0, priority_tier: 2"),
        "slurm: {policy: {max_array_size: 5001}}",
        htc("node_attributes: {tags.owner: me}"),
        TWO.replace("max_nodes: 2", "max_nodes: 9"),
        "slurm: {settings: {SchedulerTimeSlice: 60}, idle_timeout_s: 900}",
        "slurm: {login: {count: 2}}",
        "tags: {owner: me}",
        "server: {vm_size: Standard_D8as_v5}",
        "storage: {home: {type: nfs, size_gb: 2048}}",
    ],
)
def test_what_no_node_gets_makes_none_old(change: str) -> None:
    assert generations(plan_from(TWO)) == generations(plan_from(TWO, change))


def test_nodes_read_it_as_a_text() -> None:
    """A digest of digits alone, or one like 12e4, would be a number for the template language."""
    (array,) = slurm_of(plan_from()).node_arrays
    assert dict(array.attributes)[ATTRIBUTE] == array.generation
    assert array.generation.startswith("htc.")


def test_every_field_of_the_cluster_is_judged() -> None:
    """A new field of SlurmPlan belongs into ON_NODES if nodes keep it until they end, else into the list above."""
    assert set(SlurmPlan.__struct_fields__) == {*ON_NODES, *NOT_ON_NODES}
