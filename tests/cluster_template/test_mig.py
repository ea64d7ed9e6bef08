"""A partition with a MIG profile: what azslurm, nodes and jobs are told, and that whole GPUs stay as they are."""

from __future__ import annotations

from functools import cache
from pathlib import PurePosixPath
from urllib.parse import unquote

import pytest

from generator.cli.plan import plan_text
from generator.plan.deployment import Plan
from generator.recipes import recipe
from generator.render import readme
from tests.bed.plans import plan_from, slurm_of
from tests.cluster_template.rendered import Rendered, read

PARTITIONS = """
network: {address_space: 10.50.0.0/20}
slurm:
  healthagent: false
  partitions:
    - {name: slices, vm_size: Standard_ND96isr_H100_v5, max_nodes: 2, mig_profile: 1g.10gb}
    - {name: one, vm_size: Standard_NC40ads_H100_v5, max_nodes: 2, mig_profile: 7g.94gb}
    - {name: whole, vm_size: Standard_ND96isr_H100_v5, max_nodes: 2}
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}
jobs: null
"""


@cache
def plan() -> Plan:
    return plan_from(PARTITIONS)


@cache
def rendered() -> Rendered:
    return read(plan())


@pytest.mark.parametrize(
    ("partition", "count", "devices"),
    [
        ("slices", 56, "/dev/cycleforge/mig[0-55]"),
        ("one", 1, "/dev/cycleforge/mig0"),
        ("whole", None, None),
        ("htc", None, None),
    ],
)
def test_azslurm_reads_the_number_and_the_files_of_the_slices(
    partition: str, count: int | None, devices: str | None
) -> None:
    assert rendered().findings == ()
    assert rendered().configuration(partition, "autoscale.resources.slurm_gpus") == count
    assert rendered().configuration(partition, "slurm.gpu_device_config") == devices


def test_the_node_is_told_the_profile_and_how_many_slices_a_gpu_has() -> None:
    assert rendered().configuration("slices", "cycleforge.mig.profile") == "1g.10gb"
    assert rendered().configuration("slices", "cycleforge.mig.per_gpu") == 7
    assert rendered().configuration("whole", "cycleforge.mig.profile") is None


def test_health_checks_expect_slices() -> None:
    quick, deep = (
        unquote(str(rendered().configuration("slices", f"cycleforge.vm_size.{kind}"))) for kind in ("quick", "deep")
    )
    assert " mig_slices profile=1g.10gb gpus=8 count=56" in quick
    assert " gpu_count count=8" in quick
    assert "gpu_nvlink" not in quick
    assert [record.split()[0] for record in deep.split(" | ")[2:]] == ["boot_services"]
    assert "gpu_remap" not in {record.split()[0] for record in quick.split(" | ")}
    whole = unquote(str(rendered().configuration("whole", "cycleforge.vm_size.quick")))
    assert "mig_slices" not in whole
    assert "gpu_nvlink" in whole


def test_jobs_that_need_whole_gpus_are_made_for_the_partition_that_has_them() -> None:
    jobs = plan().jobs
    made_of = {job.name: found for job in jobs if (found := recipe(job.recipe))}
    assert {job.partition for job in jobs if made_of[job.name].needs_gpu} == {"whole"}
    # The CPUs of a node are measured where there are no GPUs at all.
    assert {job.partition for job in jobs if made_of[job.name].uses_gpus} == {"whole", "htc"}
    for name in ("storage", "start-times"):
        assert {job.partition for job in jobs if job.recipe == name} == {"slices", "one", "whole", "htc"}


def test_people_read_what_a_gpu_is_divided_into() -> None:
    text = readme.render(plan())[PurePosixPath("README.md")].content.decode()
    partitions = [line for line in text.splitlines() if line.startswith("| Partition")]
    assert partitions[0].endswith("8 × H100 each, each GPU in 7 × MIG 1g.10gb |")
    assert ["MIG" in line for line in partitions] == [True, True, False, False]
    assert "56 × MIG 1g.10gb per node" in plan_text(plan())


def test_quota_counts_vms_as_before() -> None:
    arrays = {array.name: array for array in slurm_of(plan()).node_arrays}
    assert arrays["slices"].hardware == arrays["whole"].hardware
    assert arrays["slices"].mig is not None
    assert arrays["slices"].mig.slices == 56
