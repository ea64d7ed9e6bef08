"""A partition of several VM sizes: template, quota, addresses, node attributes, jobs, commands for its nodes."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath

import pytest

from generator import catalog, pipeline
from generator.definition.read import read_model
from generator.plan.addresses import needed_addresses
from generator.plan.deployment import Plan
from generator.plan.nodes import NodeArrayPlan, SizeNodes
from tests.bed.plans import plan_from, slurm_of
from tests.cluster_template.rendered import read

CPU, A100, MI300X = "Standard_D64ds_v5", "Standard_NC24ads_A100_v4", "Standard_ND96isr_MI300X_v5"
MIXED = f"""
slurm:
  partitions:
    - {{name: htc, vm_size: Standard_D4ads_v5, max_nodes: 3, default: true}}
    - {{name: mixed, vm_sizes: [{CPU}, {A100}], max_nodes: 2}}
jobs: {{validation: null, training: []}}
"""


@cache
def mixed_plan() -> Plan:
    return plan_from(MIXED)


def mixed() -> NodeArrayPlan:
    return slurm_of(mixed_plan()).node_arrays[1]


def test_the_node_array_has_all_sizes_and_the_feature_that_azslurm_looks_for() -> None:
    rendered = read(mixed_plan())
    assert rendered.findings == ()
    assert rendered.attribute("mixed", "MachineType") == [CPU, A100]
    assert rendered.attribute("mixed", "MaxCount") == 4
    assert rendered.configuration("mixed", "slurm.dynamic_feature") == "dyn-mixed"
    assert rendered.configuration("mixed", "slurm.hpc") is False
    assert rendered.configuration("htc", "slurm.dynamic_feature") is None


def test_quota_and_addresses_count_every_size_at_its_limit() -> None:
    uses = {(use.name, use.vm_size): (use.vms, use.vcpus) for use in mixed_plan().quota.uses}
    assert uses["partition mixed", CPU] == (2, 128)
    assert uses["partition mixed", A100] == (2, 48)
    one = plan_from(MIXED.replace(f"vm_sizes: [{CPU}, {A100}]", f"vm_size: {CPU}"))
    assert addresses_of(mixed_plan()) == addresses_of(one) + 2


def addresses_of(plan: Plan) -> int:
    reading = read_model(plan.resolved)
    assert reading.definition is not None
    return needed_addresses(reading.definition)["compute"]


def test_nodes_are_told_about_each_size_under_its_name() -> None:
    attributes = dict(mixed().attributes)
    assert str(attributes[f"cycleforge.vm_size.{A100.lower()}.base"]).startswith(f"1 {A100.lower()} | ")
    assert str(attributes[f"cycleforge.vm_size.{CPU.lower()}.quick"]).startswith(f"1 {CPU.lower()}")
    assert "cycleforge.vm_size.base" not in attributes


def test_jobs_ask_for_the_size_that_they_were_sized_for() -> None:
    health = next(job for job in mixed_plan().jobs if job.recipe == "node-health")
    assert (health.partition, health.vm_size, health.nodes) == ("mixed", A100, 2)
    assert dict(health.steps[-1].options)["constraint"] == A100
    smoke = next(job for job in mixed_plan().jobs if job.recipe == "smoke")
    assert "constraint" not in dict(smoke.steps[-1].options)


def test_a_job_may_name_another_size() -> None:
    chosen = plan_from(MIXED, f"jobs: {{validation: [{{recipe: smoke, partition: mixed, vm_size: {A100}}}]}}")
    assert dict(chosen.jobs[0].steps[0].options)["constraint"] == A100
    assert dict(chosen.jobs[0].settings)["VM_SIZE"] == A100


def test_the_readme_has_the_rows_and_the_nodes() -> None:
    """Letter for letter what azslurm 4.0.9 writes into gres.conf, and what it looks for in a node's features."""
    readme = pipeline.render(mixed_plan(), Path())[PurePosixPath("README.md")].content.decode()
    row = "'Nodename=minimal-mixed-nc24ads-a100-v4-[1-2] Name=gpu Count=1 File=/dev/nvidia0'"
    assert f"row minimal-mixed-nc24ads-a100-v4- {row}\n" in readme
    assert "gres=/sched/minimal/gres.conf\n" in readme
    cpu = f"Feature=dyn-mixed,{CPU} State=CLOUD CPUs=64 RealMemory=249036 Weight=1"
    assert f"create 'minimal-mixed-d64ds-v5-[1-2]' {cpu}\n" in readme
    gpu = f"Feature=dyn-mixed,{A100} State=CLOUD CPUs=24 RealMemory=214016 Gres=gpu:1 Weight=2"
    assert f"create 'minimal-mixed-nc24ads-a100-v4-[1-2]' {gpu}\n" in readme
    assert readme.index(row) < readme.index("create 'minimal")
    assert "sudo scontrol delete NodeName" in readme


def test_the_readme_of_other_clusters_says_nothing_of_it() -> None:
    readme = pipeline.render(plan_from(), Path())[PurePosixPath("README.md")].content.decode()
    assert "scontrol create" not in readme
    assert "scontrol delete" not in readme


@pytest.mark.parametrize(
    ("size", "devices"),
    [
        (A100, "/dev/nvidia0"),
        ("Standard_ND96isr_H100_v5", "/dev/nvidia[0-7]"),
        (MI300X, "/dev/dri/renderD[128,136,144,152,160,168,176,184]"),
    ],
)
def test_device_files(size: str, devices: str) -> None:
    """As azslurm writes them. Source: Azure/cyclecloud-slurm 4.0.9, azure-slurm/slurmcc/cli.py, _generate_*_devices."""
    nodes = SizeNodes(hardware=catalog.vm_size(size), host_list="n-1", max_nodes=1, memory_mib=None, weight=1)
    assert nodes.gpu_devices == devices
