"""By what a run of NCCL's tests is judged on each VM size, with which message and which variables."""

from __future__ import annotations

import pytest

from generator import catalog
from generator.catalog.sizes import VmSize
from generator.plan import nccl_variables
from generator.plan.nccl_baselines import (
    BaselinePlan,
    baselines,
    judged_nodes,
    largest_message_bytes,
    message_size,
    program_setting,
)

GIB = 1024**3
A100, H100, H200 = "Standard_ND96amsr_A100_v4", "Standard_ND96isr_H100_v5", "Standard_ND96isr_H200_v5"
GB200, GB300 = "Standard_ND128isr_NDR_GB200_v6", "Standard_ND128isr_GB300_v6"
MI300X, V100 = "Standard_ND96isr_MI300X_v5", "Standard_ND40rs_v2"
WITH_GPUS = [name for name in catalog.vm_size_names() if catalog.vm_size(name).gpu_count]


def rows(size: str, nodes: int, collective: str = "all_reduce") -> list[BaselinePlan]:
    found = baselines(catalog.vm_size(size))
    return [row for row in found if row.applies(nodes) and collective in row.collectives]


@pytest.mark.parametrize(
    ("size", "nodes", "published", "derived"),
    [
        # Floors as Azure/azurehpc-health-checks has them, else those of the sources in the catalogue.
        (A100, 1, [228], [219.2]),
        (A100, 2, [185], [184.0]),
        (A100, 7, [185], [184.0]),
        (H100, 1, [460], [445.3]),
        (H100, 2, [], [368.0]),
        (H100, 8, [400], [368.0]),
        (H100, 16, [], [368.0]),
        (H200, 1, [431], [446.4]),
        (H200, 4, [], [368.0]),
        (GB200, 1, [], [632.0]),
        (GB200, 2, [], [184.0]),
        (GB200, 18, [], [787.5, 184.0]),
        (GB300, 1, [], []),
        (GB300, 2, [180], []),
        (GB300, 18, [800, 180], []),
        (MI300X, 1, [314], []),
        (MI300X, 2, [], [368.0]),
        (V100, 1, [110], []),
        (V100, 2, [], [11.5]),
        ("Standard_NC48ads_A100_v4", 1, [193], []),
        ("Standard_NC24ads_A100_v4", 1, [], []),
    ],
)
def test_every_size_and_number_of_nodes(size: str, nodes: int, published: list[float], derived: list[float]) -> None:
    def levels(kind: str) -> list[float | None]:
        return sorted((row.warn or row.fail for row in rows(size, nodes) if row.kind == kind), key=lambda x: -(x or 0))

    assert (levels("published"), levels("derived")) == (published, derived)


@pytest.mark.parametrize("size", WITH_GPUS)
def test_a_row_names_its_source_and_what_it_asks(size: str) -> None:
    for row in baselines(catalog.vm_size(size)):
        assert row.source
        assert row.warn or row.fail
        assert (row.formula is None) == (row.kind == "published")
        assert row.kind == "published" or row.fail is None, "a derived figure warns at most"
        assert not {"\t", "\n"} & set(row.source + (row.formula or "")), "they are columns of a table"
        assert set(row.algorithms) <= {"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"}


def test_derived_figures_say_how() -> None:
    (line_rate,) = rows(V100, 2)
    assert line_rate.formula == "0.92 x 1 x 100 Gb/s / 8, the line rate of the ports"
    assert (line_rate.algorithms, line_rate.message_size, line_rate.or_larger) == (("RING", "TREE"), "4G", True)
    assert "https://github.com/NVIDIA/nccl-tests/issues/290" in line_rate.source
    elsewhere = rows(GB200, 18)[-1]
    assert elsewhere.formula == "0.93 x 846.82 GB/s, measured on the same hardware elsewhere"
    assert elsewhere.fabric == "mnnvl"


@pytest.mark.parametrize(
    ("size", "collective", "floors"),
    [
        (A100, "all_gather", [184.0]), (A100, "reduce_scatter", [184.0]), (A100, "alltoall", [23.0]),
        (H100, "alltoall", [46.0]), (H100, "sendrecv", [46.0]), (GB200, "sendrecv", [46.0]),
        # Eight GPUs share a port.
        (V100, "all_gather", [11.5]), (V100, "alltoall", []),
    ],
)  # fmt: skip
def test_other_collectives_have_derived_floors_alone(size: str, collective: str, floors: list[float]) -> None:
    found = rows(size, 8, collective)
    assert [(row.kind, row.warn) for row in found] == [("derived", floor) for floor in floors]
    assert rows(size, 1, collective) == [], "within a node nothing bounds them that is known"
    # NCCL names no algorithm for what it sends from GPU to GPU.
    assert all(bool(row.algorithms) == (collective in ("all_gather", "reduce_scatter")) for row in found)


def test_the_image_of_amd_has_other_programs() -> None:
    assert program_setting(catalog.vm_size(MI300X)) == {"NCCL_TEST_BINARY": "/opt/rccl-tests/COLLECTIVE_perf"}
    assert program_setting(catalog.vm_size(H100)) == {}


def test_published_figures_come_first_and_name_their_algorithm() -> None:
    found = rows(H100, 8)
    assert [row.kind for row in found] == ["published", "derived"]
    assert found[0].algorithms == ("COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS")
    assert [row.fabric for row in rows(GB300, 18)] == ["infiniband", "mnnvl"]


@pytest.mark.parametrize(
    ("size", "nodes", "message"),
    [
        (A100, 1, "16G"), (A100, 2, "8G"), (H100, 2, "16G"), (H100, 8, "16G"), (H200, 1, "16G"), (GB200, 1, "8G"),
        (GB300, 18, "16G"), (V100, 1, "8G"), (V100, 2, "8G"), ("Standard_NV72ads_A10_v5", 1, "4G"),
        ("Standard_NC64as_T4_v3", 1, "4G"), ("Standard_NV6ads_A10_v5", 1, "512M"),
    ],
)  # fmt: skip
def test_the_message_follows_the_figure_and_the_memory(size: str, nodes: int, message: str) -> None:
    assert message_size(catalog.vm_size(size), nodes, "16G") == message
    assert message_size(VmSize(""), nodes, "16G") == "16G", "nobody knows the memory"


@pytest.mark.parametrize(
    ("marketed_gb", "usable_gib"),
    [(16, 15.8), (32, 31.7), (40, 39.4), (80, 79.1), (141, 139.8), (192, 184), (288, 276)],
)
def test_no_message_is_lowered_by_nccl_tests(marketed_gb: int, usable_gib: float) -> None:
    """Its rule: (total - min(ceil(total / 16), 4) - 1) / 3 GiB; NVIDIA/nccl-tests @ a0b82b2, src/common.cu:1536."""
    limit = (usable_gib - min(-(-usable_gib // 16), 4) - 1) / 3 * GIB
    largest = largest_message_bytes(marketed_gb)
    assert largest <= limit
    # The largest power of two is not lost to the share that is kept back.
    assert largest.bit_length() == int(limit).bit_length()


def test_a_job_runs_on_as_many_nodes_as_a_figure_judges() -> None:
    assert judged_nodes(catalog.vm_size(H100), 16) == 8
    assert judged_nodes(catalog.vm_size(H100), 7) is None
    assert judged_nodes(catalog.vm_size(A100), 16) == 2
    assert judged_nodes(catalog.vm_size(GB300), 18) == 18
    assert judged_nodes(catalog.vm_size(GB300), 17) is None, (
        "the figure for InfiniBand alone is for nodes of many racks"
    )


# ---------------------------------------------------------------- variables


def test_collnet_and_sharp_belong_to_benchmarks_and_to_training_that_asks() -> None:
    for name in (H100, H200):
        size = catalog.vm_size(name)
        benchmark, training = (nccl_variables.of_job(size, kind) for kind in ("validation", "training"))
        sharp = nccl_variables.for_sharp(size, "training", {"USE_SHARP": "0"})
        assert {key for key in benchmark if "SHARP" in key or "COLLNET" in key} == set(sharp)
        assert not {key for key in training if "SHARP" in key or "COLLNET" in key}
        assert (benchmark["NCCL_P2P_NET_CHUNKSIZE"], training["NCCL_P2P_NET_CHUNKSIZE"]) == ("2097152", "524288")
        machine = dict(size.nccl_env)
        assert machine.items() <= benchmark.items()
        assert machine.items() <= training.items()
        assert machine["NCCL_IB_PCI_RELAXED_ORDERING"] == "1"
        assert not nccl_variables.for_sharp(size, "validation", {}), "benchmarks have them anyway"
        assert not nccl_variables.for_sharp(size, "training", {}), "a job that cannot ask"


@pytest.mark.parametrize("name", WITH_GPUS)
def test_training_gets_sharp_on_no_size_unasked(name: str) -> None:
    variables = nccl_variables.of_job(catalog.vm_size(name), "training")
    assert not {key for key in variables if key.startswith("SHARP_") or key == "NCCL_COLLNET_ENABLE"}
