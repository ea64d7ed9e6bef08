"""A VM size that only the definition describes, from its block to every artefact that depends on it."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath

import pytest
import yaml

from generator import catalog, pipeline
from generator.plan.deployment import Plan
from generator.plan.nodes import NodeArrayPlan
from tests.bed.plans import SMALL, plan_from, slurm_of
from tests.bed.yaml_data import yaml_data
from tests.cluster_template.rendered import Rendered, read
from tests.size_attributes import records

GPU = "Standard_ND96isrexample_v9"
CPU = "Standard_D64pexample_v9"
BLOCKS = f"""
network: {{address_space: 10.50.0.0/20}}
custom_vm_sizes:
  - name: {GPU}
    vcpus: 96
    memory_gib: 1900
    architecture: x86_64
    gpus: {{count: 8, vendor: NVIDIA, model: B300, memory_gb: 288}}
    infiniband: {{nics: 4, gbps_per_nic: 800}}
    nvme_disks: 6
    quota_family: standardNDEXAMPLEv9Family
  - {{name: {CPU}, vcpus: 64, memory_gib: 256, architecture: aarch64, premium_storage: false}}
server: {{jumpbox: {{vm_size: {CPU}}}}}
slurm:
  partitions:
    - {{name: hpc, vm_size: {GPU}, max_nodes: 3}}
    - {{name: htc, vm_size: {CPU}, max_nodes: 2, default: true}}
jobs: {{validation: [nccl-allreduce, node-health], training: [mpt]}}
storage: {{home: {{type: nfs, size_gb: 8192}}}}
silence: [{{rule: E0404, reason: A jumpbox of this size has to be tried.}}]
"""


@cache
def plan() -> Plan:
    return plan_from(BLOCKS)


@cache
def rendered() -> Rendered:
    return read(plan())


def array(name: str) -> NodeArrayPlan:
    (found,) = (each for each in slurm_of(plan()).node_arrays if each.name == name)
    return found


def file(name: str) -> str:
    return pipeline.render(plan(), Path())[PurePosixPath(name)].content.decode()


def test_the_block_decides_how_the_partition_is_built() -> None:
    hpc, htc = array("hpc"), array("htc")
    assert (hpc.is_hpc, htc.is_hpc) == (True, False)
    assert [spec.project for spec in hpc.specs] == ["misc_ubuntu", "misc_ndv4", "pyxis_enroot", "slurm_nhc"]
    assert [spec.project for spec in htc.specs] == ["misc_ubuntu", "pyxis_enroot"]
    assert rendered().attribute("hpc", "MachineType") == GPU
    assert not [problem.rule_id for problem in rendered().findings]


def test_nodes_are_told_what_the_definition_says_and_that_it_says_so() -> None:
    def told(node: str, kind: str) -> list[tuple[str, str]]:
        text = rendered().configuration(node, f"cycleforge.vm_size.{kind}")
        assert isinstance(text, str)
        return records(text)[1]

    base = [
        ("gpus=8", "custom_vm_sizes"),
        ("gpu_vendor=NVIDIA", "custom_vm_sizes"),
        ("nvme_disks=6", "custom_vm_sizes"),
    ]
    assert told("hpc", "base") == base
    quick = dict(told("hpc", "quick"))
    assert quick["cpu threads=96"] == "custom_vm_sizes"
    assert quick["ib_ports count=4 rate_gbit_per_s=800"] == "custom_vm_sizes"
    assert quick["gpu_count count=8"] == "custom_vm_sizes"
    assert quick["nvme_disks documented=6"] == "custom_vm_sizes"
    # No floor is invented: a limit that nobody published is null, which a node reports as "no baseline".
    assert quick["gpu_remap pending_max=null failure_max=null uncorrectable_max=null"] == "null"
    assert told("htc", "base") == [("nvme_disks=null", "custom_vm_sizes")]


def test_quota_counts_it_in_the_family_of_the_block() -> None:
    limits = {limit.name: limit.vcpus for limit in plan().quota.limits}
    assert limits["standardNDEXAMPLEv9Family"] == 3 * 96
    # Two nodes and the jumpbox; the block names no family.
    assert limits[f"family of {CPU}"] == 3 * 64
    assert plan().quota.custom_vm_sizes == (CPU, GPU)


def test_the_readme_says_whose_figures_they_are_and_how_to_compare_them() -> None:
    text = file("README.md")
    assert f"az vm list-skus --location southcentralus --size {GPU} --all" in text
    assert f"The catalogue does not have `{CPU}`, `{GPU}`" in text
    assert "cycleforge list vm-sizes --from skus.json" in text
    assert "3 × Standard_ND96isrexample_v9, 8 × B300 each" in text
    assert (
        "The catalogue does not have"
        not in pipeline.render(plan_from(), Path())[PurePosixPath("README.md")].content.decode()
    )


def test_jobs_are_sized_for_it_and_nothing_is_judged_by_another_size() -> None:
    jobs = {job.name: dict(job.settings) for job in plan().jobs}
    nccl, health, train = jobs["nccl-allreduce"], jobs["node-health"], jobs["mpt"]
    assert (nccl["GPUS_PER_NODE"], nccl["TASKS_PER_NODE"], nccl["CPUS_PER_TASK"]) == ("8", "8", "12")
    assert (nccl["BASELINE_FAIL"], health["EXPECT_MEMORY_KIB"], health["EXPECT_AZNHC"]) == ("", "", "")
    assert (health["EXPECT_GPUS"], health["EXPECT_IB_PORTS"], health["EXPECT_IB_GBPS"]) == ("8", "4", "800")
    assert train["PARTITION"] == "hpc"


def test_the_effective_definition_shows_the_block_and_what_came_of_it() -> None:
    found = yaml_data(file("effective.yaml"))
    assert found["definition"]["custom_vm_sizes"][0]["gpus"]["model"] == "B300"
    hardware = found["derived"]["slurm"]["node_arrays"][0]["hardware"]
    assert (hardware["custom"], hardware["gpu_count"], hardware["infiniband_nics"]) == (True, 8, 4)


@pytest.mark.parametrize(
    ("vendor", "model", "image"),
    [
        ("NVIDIA", "B300", "cycle.image.ubuntu24"),
        ("AMD", "MI355X", "microsoft-dsvm:ubuntu-hpc:2404-rocm:latest"),
        ("NVIDIA", "Tesla V100", "microsoft-dsvm:ubuntu-hpc:2204-v100:latest"),
    ],
)
def test_the_default_image_has_the_driver_of_its_gpus(vendor: str, model: str, image: str) -> None:
    change = f"gpus: {{count: 8, vendor: {vendor}, model: {model}}}"
    block = f"{{name: {GPU}, vcpus: 96, memory_gib: 1900, architecture: x86_64, {change}}}"
    silence = "silence: [{rule: W0422, reason: Only the GPUs matter here.}]"
    found = plan_from(
        f"custom_vm_sizes: [{block}]\n{silence}\nslurm: {{partitions: [{{name: hpc, vm_size: {GPU}, max_nodes: 2}}]}}"
    )
    assert slurm_of(found).node_arrays[0].image == image


def test_the_catalogue_wins_over_a_block() -> None:
    size = catalog.vm_size("Standard_ND96isr_H100_v5")
    block = f"{{name: {size.name}, vcpus: 4, memory_gib: 1900, architecture: x86_64}}"
    silence = "[{rule: E0418, reason: We look into it.}, {rule: W0422, reason: We look into it.}]"
    found = plan_from(
        f"custom_vm_sizes: [{block}]\nsilence: {silence}\n"
        f"slurm: {{partitions: [{{name: hpc, vm_size: {size.name}, max_nodes: 2}}]}}"
    )
    assert slurm_of(found).node_arrays[0].hardware == size


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        # The rules judge a described size as they judge one of the catalogue.
        ("slurm: {partitions: [{name: hpc, vm_size: SIZE, max_nodes: 2, hpc: false}]}", "W0402"),
        ("slurm: {image: cycle.image.ubuntu22, partitions: [{name: arm, vm_size: ARM, max_nodes: 2}]}", "E0404"),
        ("slurm: {scheduler: {vm_size: SIZE}}", "W0406"),
        ("slurm: {scheduler: {vm_size: ARM}}", "E0410"),
        ("server: {vm_size: ARM, java_heap_mb: 90000}", "E0404"),
        ("slurm: {partitions: [{name: hpc, vm_size: SIZE, max_nodes: 150}]}", "E0411"),
        ("slurm: {partitions: [{name: hpc, vm_size: SIZE, max_nodes: 2, spot: true}]}", "W1202"),
        ("jobs: {training: [{recipe: mpt, partition: htc}]}", "E1604"),
    ],
)
def test_the_rules_know_what_the_block_says(change: str, rule: str) -> None:
    from tests.bed.plans import merged

    definition = yaml_data(SMALL)
    for text in (BLOCKS.split("silence:")[0], change.replace("SIZE", GPU).replace("ARM", CPU)):
        definition = merged(definition, yaml_data(text))
    found = pipeline.check(yaml.safe_dump(definition).encode(), "x.yaml", {}, Path()).problems
    assert rule in {problem.rule_id for problem in found}


def test_nothing_is_said_of_a_name_that_a_repair_put_there() -> None:
    """The example that stands in for a missing name is that of a GPU size."""
    definition = yaml_data(SMALL) | {"custom_vm_sizes": [{"vcpus": 4, "memory_gib": 16, "architecture": "x86_64"}]}
    found = pipeline.check(yaml.safe_dump(definition).encode(), "x.yaml", {}, Path()).problems
    assert [problem.rule_id for problem in found if problem.level != "info"] == ["E0102"]
