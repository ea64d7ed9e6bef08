"""Which nodes run health checks without anybody asking for it."""

from __future__ import annotations

import pytest

from generator import catalog
from generator.plan.assignment import HEALTH, chosen_projects, is_checked
from tests.bed.plans import plan_from, slurm_of
from tests.cluster_template.rendered import read

HB, HX, MI300X, PLAIN = "Standard_HB176rs_v4", "Standard_HX176-48rs", "Standard_ND96isr_MI300X_v5", "Standard_D64ds_v5"


def cluster(*partitions: str) -> str:
    """A definition with these partitions, the first one the default."""
    rows = [f"{{name: p{place}, max_nodes: 2, {keys}}}" for place, keys in enumerate(partitions)]
    return f"slurm: {{partitions: [{', '.join(rows)}]}}\njobs: {{validation: null, training: []}}"


def checked(*partitions: str) -> dict[str, bool]:
    slurm = slurm_of(plan_from(cluster(*partitions)))
    nodes = [("scheduler", slurm.scheduler.specs), ("login", slurm.login.specs)]
    nodes += [(array.name, array.specs) for array in slurm.node_arrays]
    return {name: any(spec.project == HEALTH for spec in specs) for name, specs in nodes}


def test_every_size_with_gpus_or_infiniband_is_checked_and_no_other() -> None:
    for name in catalog.vm_size_names():
        size = catalog.vm_size(name)
        expected = size.gpu_count > 0 or size.infiniband_nics > 0
        assert is_checked(size) is expected
        assert (HEALTH in chosen_projects("execute", size, nodes_are_checked=True)) is expected
    families = {name.split("_")[1][:2] for name in catalog.vm_size_names() if is_checked(catalog.vm_size(name))}
    assert families == {"HB", "HC", "HX", "NC", "ND", "NV"}


@pytest.mark.parametrize("size", [HB, HX, "Standard_HC44rs", MI300X])
def test_the_scheduler_has_the_job_hooks_where_some_partition_is_checked(size: str) -> None:
    found = checked(f"vm_size: {PLAIN}, default: true", f"vm_size: {size}")
    assert found == {"scheduler": True, "login": False, "p0": False, "p1": True}
    assert not any(checked(f"vm_size: {PLAIN}, default: true").values())


def test_nodes_of_a_mixed_partition_are_checked_by_the_figures_of_their_own_size() -> None:
    plan = plan_from(cluster(f"vm_sizes: [{PLAIN}, {HB}], default: true"))
    (array,) = slurm_of(plan).node_arrays
    assert HEALTH in [spec.project for spec in array.specs]
    rendered = read(plan)
    for size in (PLAIN, HB):
        assert rendered.configuration("p0", f"cycleforge.vm_size.{size.lower()}.quick")


def test_the_definition_can_leave_the_project_out() -> None:
    assert checked(f"vm_size: {HB}, default: true, projects: [misc_ubuntu, misc_ndv4]")["p0"] is False
