"""RealMemory: no node is told to have more memory than a guest of its size was seen with.

What azslurm writes is written down here a second time, in whole numbers, from cyclecloud-slurm 4.0.9
(azure-slurm/slurmcc/partition.py, `Partition` and `fetch_partitions`; cli.py, `_partitions`; its README): nominal GiB
of 1024 MiB, less the percentage but at least 1 GiB, rounded down, and never below 1 GiB.
"""

from __future__ import annotations

from fractions import Fraction
from math import floor

import pytest

from generator import catalog
from generator.catalog.sizes import VmSize
from generator.plan.real_memory import real_memory_mib, withheld_percent
from tests.bed.plans import plan_from, slurm_of
from tests.cluster_template.rendered import read

FIGURES = [size for size in map(catalog.vm_size, catalog.vm_size_names()) if size.lowest_guest_memory_mib is not None]
CUSTOM = """
custom_vm_sizes:
  - {name: Standard_D64example_v9, vcpus: 64, memory_gib: 256, architecture: x86_64, guest_memory_mib: 240000}
slurm:
  partitions:
    - {name: htc, vm_size: Standard_D64example_v9, max_nodes: 2, default: true}
    - {name: own, vm_size: Standard_D64example_v9, max_nodes: 2, dampen_memory_percent: 20}
"""


def azslurm_writes(nominal_gib: float, dampen_memory: int | None) -> int:
    """RealMemory of azure.conf (MiB)."""
    nominal = Fraction(nominal_gib) * 1024
    withheld = max(Fraction(1024), nominal * Fraction(dampen_memory if dampen_memory is not None else 5, 100))
    return max(1024, floor(nominal - withheld))


@pytest.mark.parametrize("size", FIGURES, ids=lambda size: size.name)
def test_no_guest_has_less_than_slurm_is_told(size: VmSize) -> None:
    assert size.memory_gib is not None
    assert size.lowest_guest_memory_mib is not None
    assert azslurm_writes(size.memory_gib, withheld_percent(size)) <= size.lowest_guest_memory_mib


@pytest.mark.parametrize(
    ("nominal_gib", "percent", "expected"),
    [
        (456, None, 443_596),  # logged for HB120rs_v2: https://github.com/Azure/az-hop/issues/686
        (456, 8, 429_588),
        (1900, None, 1_848_320),
        (4, None, 3072),  # 1 GiB is more than 5 %
        (4, 50, 2048),
        (20, 5, 19_456),  # both are 1 GiB
        (1, None, 1024),  # never less than 1 GiB, although that is all there is
        (1870.2, 5, 1_819_330),
    ],
)
def test_azslurm_s_arithmetic(nominal_gib: float, percent: int | None, expected: int) -> None:
    assert azslurm_writes(nominal_gib, percent) == real_memory_mib(nominal_gib, percent) == expected


@pytest.mark.parametrize("nominal_gib", [1, 3.5, 7, 28, 112, 448, 456, 1408, 1870.2, 1900, 5700, 11400])
def test_every_percentage_is_computed_as_azslurm_does(nominal_gib: float) -> None:
    differing = [
        percent
        for percent in range(1, 51)
        # azslurm computes with floating point, so a whole result may be one less
        if real_memory_mib(nominal_gib, percent) - azslurm_writes(nominal_gib, percent) not in (0, -1)
    ]
    assert differing == []


@pytest.mark.parametrize(
    ("vm_size", "percent"),
    [("Standard_HB120rs_v2", 8), ("Standard_ND96amsr_A100_v4", 8), ("Standard_HB176rs_v4", None)],
)
def test_the_template_withholds_what_the_guest_lacks(vm_size: str, percent: int | None) -> None:
    partition = f"{{name: hpc, vm_size: {vm_size}, max_nodes: 2, default: true}}"
    silence = "[{rule: W0408, reason: test}]"
    rendered = read(plan_from(f"slurm: {{partitions: [{partition}]}}\nsilence: {silence}"))
    assert rendered.configuration("hpc", "slurm.dampen_memory") == percent


def test_the_lowest_of_several_figures_counts() -> None:
    size = catalog.vm_size("Standard_HB120rs_v2")
    assert size.guest_memory_kib is not None
    assert size.lowest_guest_memory_mib == size.guest_memory_mib == 435_161 < size.guest_memory_kib // 1024


def test_a_custom_size_names_its_guest_and_the_partition_wins() -> None:
    derived, own = slurm_of(plan_from(CUSTOM)).node_arrays
    assert azslurm_writes(256, derived.dampen_memory_percent) <= 240_000
    assert (derived.dampen_memory_percent, own.dampen_memory_percent) == (9, 20)


def test_a_size_that_nobody_measured_keeps_azslurm_s_default() -> None:
    assert slurm_of(plan_from("{}")).node_arrays[0].dampen_memory_percent is None


def test_a_guest_with_almost_no_memory_gets_no_percentage() -> None:
    assert withheld_percent(VmSize("Standard_X", known=True, memory_gib=32, guest_memory_mib=900)) is None
