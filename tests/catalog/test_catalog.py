"""The catalogue: every figure has a source that exists, files are stable, and the figures agree with each other."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from generator import catalog
from generator.catalog.azure_facts import Limits, Region
from generator.catalog.files import Fact
from generator.recipes import checkpoints, models, recipe, recipe_names
from tests.catalog.layout import TABLES, written

FOLDER = Path(catalog.__file__).parent
# The figures of the rules are kept in another layout.
FILES = sorted(path for path in FOLDER.rglob("*.json") if path.name != "rule_figures.json")
TABLE = json.loads((FOLDER / "other_vm_sizes.json").read_text(encoding="utf-8"))["series"]
MEASURED = sorted(path.stem for path in (FOLDER / "vm_sizes").glob("*.json"))


SIZES = [catalog.vm_size(name) for name in MEASURED]
NUMA = Path(__file__).parent / "numa.json"


def entries() -> Iterator[tuple[str, dict[str, Any]]]:
    for name in MEASURED:
        yield name, json.loads((FOLDER / "vm_sizes" / f"{name}.json").read_text(encoding="utf-8"))


def named_sources(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "source" and isinstance(item, list):
                yield from item
            else:
                yield from named_sources(item)
    elif isinstance(value, list):
        for item in value:
            yield from named_sources(item)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_have_their_layout(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == written(json.loads(text), table=path.name in TABLES)


def test_a_table_has_one_line_per_row() -> None:
    assert written({"rows": {"b": {"x": 1}, "a": {"x": [2]}}}, table=True) == (
        '{\n  "rows": {\n    "a": {"x": [2]},\n    "b": {"x": 1}\n  }\n}\n'
    )


@pytest.mark.parametrize("path", [path for path in FILES if path.stem != "health"], ids=lambda path: path.name)
def test_every_source_exists(path: Path) -> None:
    missing = {
        key
        for key in named_sources(json.loads(path.read_text(encoding="utf-8")))
        if key not in catalog.sources() and not key.startswith("https://")
    }
    assert not missing


def test_every_source_is_used() -> None:
    named = {key for path in FILES for key in named_sources(json.loads(path.read_text(encoding="utf-8")))}
    for name in recipe_names():
        found = recipe(name)
        named |= set(found.sources if found else ())
    assert set(catalog.sources()) - named == set()


def test_nothing_outside_the_catalogue_opens_its_files() -> None:
    package = FOLDER.parent
    modules = [path for path in package.rglob("*.py") if FOLDER not in path.parents]
    opening = re.compile(r"catalog\.files|catalog import files|catalog\.__file__|[\"'/](?:vm_sizes/|other_vm_sizes)")
    assert [path.name for path in modules if opening.search(path.read_text(encoding="utf-8"))] == []
    assert len(modules) > 100


def test_every_used_source_has_a_title_and_an_address() -> None:
    for key, source in catalog.sources().items():
        assert source.title, key
        assert source.url is None or source.url.startswith("https://"), key


@pytest.mark.parametrize(("name", "entry"), list(entries()), ids=MEASURED)
def test_groups_with_figures_name_a_source(name: str, entry: dict[str, Any]) -> None:
    for group, content in entry.items():
        if isinstance(content, dict) and any(
            value is not None for key, value in content.items() if key not in ("source", "note")
        ):
            named = content.values() if group == "health" else (content,)
            assert all(each["source"] for each in named), f"{name}: {group}"


@pytest.mark.parametrize("limit", sorted({*Limits.__struct_fields__} - {*Fact.__struct_fields__, "names"}))
def test_limits_have_a_source(limit: str) -> None:
    assert getattr(catalog.limits(), limit).source


def test_general_series_have_a_source_and_sizes() -> None:
    for name, series in TABLE.items():
        assert series["source"], name
        assert series["page"].startswith("https://learn.microsoft.com/"), name
        assert series["sizes"], name
        for size, figures in series["sizes"].items():
            assert size.startswith("Standard_")
            assert figures["vcpus"] >= 1
            assert figures["memory_gib"] > 0


def test_no_size_stands_in_two_places() -> None:
    general = [size for series in TABLE.values() for size in series["sizes"]]
    assert len(general) == len(set(general))
    assert not set(general) & set(MEASURED)


# ---------------------------------------------------------------- agreement


@pytest.mark.parametrize("size", SIZES, ids=MEASURED)
def test_a_size_agrees_with_itself(size: catalog.VmSize) -> None:
    assert size.gpu_count or size.infiniband
    assert bool(size.gpu_count) == bool(size.gpu_vendor)
    assert size.vcpus is not None
    if size.cpu_masks:
        assert len(size.cpu_masks) == size.tasks_per_node
        assert max(int(mask, 16).bit_length() for mask in size.cpu_masks) <= size.vcpus
    if size.tasks_per_node and size.cpus_per_task:
        assert size.tasks_per_node * size.cpus_per_task <= size.vcpus
    if "nvme_disks" in size.health:
        assert size.nvme_count
    if "gpu_count" in size.health:
        assert size.gpu_count
    if "ib_ports" in size.health:
        assert size.infiniband_nics
        assert size.infiniband_gbps_per_nic
    if "nccl_all_reduce" in size.health:
        assert [figure.nodes for figure in size.nccl].count(1) == 1
        for check in ("nccl_all_reduce", "nccl_loopback"):
            figures = size.health.get(check, {"environment": "aznhc", "attempts": 1})
            assert figures["environment"] in catalog.health_tests().environments
            assert figures["attempts"] >= 1
    if "clock_lock" in size.health:
        assert "gpu_copy" in size.health


@pytest.mark.parametrize(("name", "numa"), json.loads(NUMA.read_text(encoding="utf-8")).items())
def test_masks_lie_in_the_numa_node_of_their_gpu(name: str, numa: dict[str, Any]) -> None:
    """The NUMA nodes are those of Azure/azhpc-images:topology; a mask belongs to the GPU of the same rank."""
    size = catalog.vm_size(name)
    assert len(size.cpu_masks) == len(numa["gpu_to_numa"]) == size.gpu_count
    for mask, node in zip(size.cpu_masks, numa["gpu_to_numa"], strict=True):
        first, last = (int(number) for number in numa["cpu_lists"][node].split("-"))
        allowed = ((1 << (last + 1)) - 1) & ~((1 << first) - 1)
        assert int(mask, 16) & ~allowed == 0


def test_every_mask_is_proven() -> None:
    assert {size.name for size in SIZES if size.cpu_masks} == set(json.loads(NUMA.read_text(encoding="utf-8")))


def test_floors_are_ordered() -> None:
    for size in SIZES:
        for figure in size.nccl:
            levels = [each for each in (figure.fail, figure.warn, figure.expected) if each is not None]
            assert levels == sorted(levels), size.name
            assert figure.fail or figure.warn, size.name
        for check, figures in size.health.items():
            assert figures["source"], f"{size.name}: {check}"
            if figures.get("warn_below_gb_per_s"):
                assert figures["floor_gb_per_s"] < figures["warn_below_gb_per_s"], f"{size.name}: {check}"


def test_the_default_release_is_complete() -> None:
    defaults = catalog.default_versions()
    row, project = catalog.release(defaults.cyclecloud), catalog.slurm_project(defaults.slurm_project)
    assert row is not None
    assert project is not None
    assert row.image_version
    assert row.slurm_projects[0] == project.version
    assert project.slurm in project.slurm_versions
    assert project.carries_containers
    image = catalog.images().node_images.get(catalog.images().default)
    assert image is not None
    assert image.os in {system.os for system in row.os}


def test_releases_and_projects_agree() -> None:
    for row in catalog.releases():
        for version in row.slurm_projects:
            project = catalog.slurm_project(version)
            assert project is not None, row.cyclecloud
            assert project.slurm in project.slurm_versions
        likeliest = catalog.slurm_project(row.slurm_project or "")
        assert likeliest is None or likeliest.slurm == row.slurm, row.cyclecloud
        assert row.os, row.cyclecloud


def test_node_images_agree_with_the_operating_systems_of_the_default_release() -> None:
    row = catalog.release(catalog.default_versions().cyclecloud)
    assert row is not None
    systems = {system.os: system for system in row.os}
    for name, image in catalog.images().node_images.items():
        if image.os in systems:
            assert len(image.arch) == len(systems[image.os].arch), name


def test_every_marketplace_image_of_a_size_is_known() -> None:
    for size in SIZES:
        assert set(size.images) <= set(catalog.images().hpc_marketplace), size.name


def test_lustre_tiers_are_consistent() -> None:
    for name, tier in catalog.file_systems().amlfs.tiers.items():
        assert name.startswith("AMLFS-Durable-Premium-")
        assert tier.min_tib % tier.step_tib == 0
        assert tier.max_tib % tier.step_tib == 0


# ---------------------------------------------------------------- look-ups


def test_hardware_of_a_gpu_size() -> None:
    node = catalog.vm_size("Standard_ND96amsr_A100_v4")
    assert (node.gpu_count, node.infiniband_nics, node.nvme_count, len(node.cpu_masks)) == (8, 8, 8, 8)
    assert list(node.nccl_env) == sorted(node.nccl_env)
    assert node.quota_family == "standardNDAMSv4_A100Family"


def test_hardware_of_a_general_size() -> None:
    node = catalog.vm_size("Standard_D64ds_v5")
    assert (node.vcpus, node.memory_gib, node.gpu_count, node.infiniband_nics) == (64, 256.0, 0, 0)


@pytest.mark.parametrize(
    ("name", "vcpus", "memory_gib", "nvme_count", "quota_family"),
    [
        # Each as its page has it: `cycleforge list vm-sizes` names the size, `page` of the file the address.
        ("Standard_FX48mds", 48, 1008, None, "standardFXMDVSFamily"),
        ("Standard_FX64mds_v2", 64, 1344, 4, "StandardFXmdsv2Family"),
        ("Standard_FX2ms_v2", 2, 42, 0, "StandardFXmsv2Family"),
        ("Standard_L80s_v2", 80, 640, 10, "standardLSv2Family"),
        ("Standard_L48as_v3", 48, 384, 6, "standardLASv3Family"),
        ("Standard_L96s_v4", 96, 768, 12, "standardLsv4Family"),
        ("Standard_L2aos_v4", 2, 16, 3, "standardLaosv4Family"),
        ("Standard_L160ias_v5", 160, 1280, 8, None),
        ("Standard_L96aos_v5", 96, 768, 9, None),
        ("Standard_M8ms", 8, 218.75, None, "standardMSFamily"),
        ("Standard_M416ms_v2", 416, 11400, None, None),
        ("Standard_M176s_4_v3", 176, 3892, 0, "standardMSMediumMemoryv3Family"),
        ("Standard_M832ids_16_v3", 832, 15200, None, "standardMIDSHighMemoryv3Family"),
        ("Standard_M176bds_v3", 176, 1536, 1, "StandardMBDSMediumMemoryv3Family"),
        ("Standard_M1792ixds_32_v3", 1792, 30400, 1, None),
        ("Standard_HB368-48rs_v5", 48, 432, 8, "standardHBv5Family"),
        ("Standard_NV6ads_A10_v5", 6, 55, None, "StandardNVADSA10v5Family"),
        ("Standard_NCC40ads_H100_v5", 40, 320, None, "StandardNCCads2023Family"),
    ],
)
def test_the_families_have_the_figures_of_their_pages(
    name: str, vcpus: int, memory_gib: float, nvme_count: int | None, quota_family: str | None
) -> None:
    size = catalog.vm_size(name)
    assert (size.vcpus, size.memory_gib, size.nvme_count) == (vcpus, memory_gib, nvme_count)
    assert size.quota_family == quota_family


def test_hardware_of_hbv5_and_of_a_part_of_a_gpu() -> None:
    hbv5, part = catalog.vm_size("Standard_HB368rs_v5"), catalog.vm_size("Standard_NV12ads_A10_v5")
    assert (hbv5.infiniband_nics, hbv5.infiniband_gbps_per_nic, hbv5.gpu_count) == (4, 200, 0)
    assert (part.gpu_count, part.gpu_model, part.gpu_memory_gb) == (1, "A10 (1/3)", 8)
    assert part.needs is not None
    assert "GRID" in part.needs


def test_every_size_is_known() -> None:
    assert len(catalog.vm_size_names()) > 500
    for name in catalog.vm_size_names():
        size = catalog.vm_size(name)
        assert (size.name, size.known) == (name, True)
        assert size.infiniband == (size.infiniband_nics > 0), name
        assert bool(size.gpu_count) == bool(size.gpu_vendor), name


@pytest.mark.parametrize(
    "name", ["Standard_None", "", "../sources", "vm_sizes/Standard_ND40rs_v2", "standard_nd40rs_v2"]
)
def test_unknown_sizes_have_a_name_and_nothing_else(name: str) -> None:
    assert catalog.vm_size(name) == catalog.VmSize(name)
    assert not catalog.vm_size(name).known


def test_canonical_names_are_for_suggestions() -> None:
    assert catalog.canonical_vm_size("standard_nd96isr_h100_v5") == "Standard_ND96isr_H100_v5"
    assert catalog.canonical_vm_size("D4as_v5") == "Standard_D4as_v5"
    assert catalog.canonical_vm_size("D5000") is None


def test_regions_know_cloud_zones_and_pair() -> None:
    regions = catalog.regions().regions
    assert regions["southcentralus"] == Region(cloud="public", pair=True, zones=True)
    assert [regions[name].pair for name in ("polandcentral", "belgiumcentral")] == [False, None]
    assert regions["westus"].zones is False
    assert regions["usgovvirginia"].cloud == "usgov"
    assert {region.cloud for region in regions.values()} == {"public", "usgov", "china"}


def test_retiring_series_have_a_date() -> None:
    for name, date in (
        ("Standard_F2s_v2", "2028-11-15"),
        ("Standard_D12_v2", "2028-05-01"),
        ("Standard_HC44rs", "2027-05-31"),
        ("Standard_L8s_v2", "2028-11-15"),
        ("Standard_M192idms_v2", "2027-03-31"),
    ):
        assert catalog.vm_size(name).retirement == date


# ---------------------------------------------------------------- models


@pytest.mark.parametrize(
    ("name", "billions", "gibibytes"),
    [("mpt-30b", 29.98, 335.0), ("mpt-70b", 64.86, 724.9), ("gpt3-175b", 174.6, 2276.6), ("gpt3-375m", 0.064, 0.84)],
)
def test_parameters_and_checkpoints_match_the_published_sizes(name: str, billions: float, gibibytes: float) -> None:
    shape = models.model(name)
    assert shape is not None
    assert shape.parameters / 1e9 == pytest.approx(billions, rel=2e-3)
    assert checkpoints.checkpoint(shape, 1).checkpoint_bytes / 2**30 == pytest.approx(gibibytes, rel=5e-3)


def test_checkpoint_time_uses_real_units() -> None:
    shape = models.model("gpt3-175b")
    assert shape is not None
    plan = checkpoints.checkpoint(shape, 15, 10**15, 128)
    assert plan.seconds_per_checkpoint == pytest.approx(plan.checkpoint_bytes / 128e9)
    assert plan.needed_bytes == 15 * plan.checkpoint_bytes


def test_layouts_keep_every_divisor_rule() -> None:
    node = catalog.vm_size("Standard_ND96isr_H100_v5")
    assert node.gpu_memory_gb is not None
    found = 0
    for name in catalog.models().models:
        shape = models.model(name)
        assert shape is not None
        if shape.family != "megatron":
            continue
        for nodes in (1, 2, 3, 8, 16, 20):
            gpus = models.Gpus(nodes, node.gpu_count, node.gpu_memory_gb)
            layout = models.parallelism(shape, gpus)
            if layout is None:
                continue
            found += 1
            assert layout.gpus == node.gpu_count * nodes
            batch = models.megatron_global_batch(shape, layout)
            assert models.layout_problems(shape, layout.tensor, layout.pipeline, gpus, batch, 1) == []
    assert found > 20


def test_layout_problems_name_each_broken_rule() -> None:
    shape = models.model("gpt3-175b")
    assert shape is not None
    problems = models.layout_problems(shape, 16, 7, models.Gpus(42, 8, 80), 10, 1)
    # 16 leaves the node, 96 layers have no 7 stages, 10 samples no 3 replicas; 96 heads do divide by 16.
    assert len(problems) == 3
    assert models.layout_problems(replace(shape, heads=97), 8, 1, models.Gpus(1, 9, 80), 9, 1) == [
        "97 heads cannot be divided over 8 GPUs",
        "hidden size 12288 cannot be divided by 97 heads",
        "9 GPUs are not a multiple of tensor 8 x pipeline 1",
    ]


def test_a_model_that_does_not_fit_is_replaced_by_a_smaller_one() -> None:
    node, opt = catalog.vm_size("Standard_ND96amsr_A100_v4"), recipe("opt-175b")
    assert opt is not None
    gpus = models.Gpus(2, node.gpu_count, node.gpu_memory_gb)
    small, full = (models.largest_fitting_model(opt, replace(gpus, nodes=nodes)) for nodes in (2, 16))
    assert small is not None
    assert full is not None
    assert small.parameters < full.parameters
    assert full.name == "opt-175b"


@pytest.mark.parametrize("gpus", [8, 128, 512, 24, 2048, 4096])
def test_llm_foundry_batches_divide(gpus: int) -> None:
    shape = models.model("mpt-30b")
    assert shape is not None
    batch, micro = (
        models.llm_foundry_global_batch(shape, gpus),
        models.llm_foundry_microbatch(shape, models.Gpus(gpus // 8, 8, 80)),
    )
    if batch is None:
        assert micro is None
        assert gpus > 2048
        return
    assert micro is not None
    assert batch % gpus == 0
    assert (batch // gpus) % micro == 0


def test_recipes_name_models_that_exist_smallest_first() -> None:
    for name in recipe_names():
        found = recipe(name)
        assert found is not None
        shapes = [models.model(model) for model in found.models]
        assert None not in shapes
        sizes = [shape.parameters for shape in shapes if shape is not None]
        assert sizes == sorted(sizes)
        assert found.default_model is None or found.default_model in found.models
        assert found.steps[-1].script == "run.sh"
        assert set(found.sources) <= set(catalog.sources())
        assert found.sources or not (found.containers or found.models or found.figures), "what is not ours is named"


# ---------------------------------------------------------------- checks of GPU sizes

WITH_NVLINK = {"V100", "A100", "H100", "H100 NVL", "H200", "GB200", "GB300"}
"""GPU models that are connected by NVLink where a VM has several."""
GPU_SIZES = [size for size in SIZES if size.gpu_count]


def applying(size: catalog.VmSize) -> set[str]:
    """Checks of counters whose figure depends on the VM size, as far as a size has the hardware."""
    links = {"gpu_nvlink"} if size.gpu_model in WITH_NVLINK and size.gpu_count > 1 else set()
    return {"cpu", "gpu_count", "memory", *(["ib_ports"] if size.infiniband else []), *links}


@pytest.mark.parametrize("size", GPU_SIZES, ids=lambda size: size.name)
def test_a_gpu_size_has_each_figure_or_says_that_nobody_has_published_it(size: catalog.VmSize) -> None:
    published = applying(size) & set(size.health)
    assert published | set(size.unpublished) == applying(size)
    assert not published & set(size.unpublished)


@pytest.mark.parametrize("size", GPU_SIZES, ids=lambda size: size.name)
def test_links_of_a_size_have_a_source_of_exactly_that_size(size: catalog.VmSize) -> None:
    """What a file about every size says need not hold for this one: on NC80, 6 inactive links are healthy."""
    assert ("gpu_nvlink" in size.health) == ("gpu_nvlink" in applying(size))
    if "gpu_nvlink" not in size.health:
        return
    row = size.health["gpu_nvlink"]
    assert 0 < row.get("active", row["links"]) <= row["links"] <= 18
    conf = f"Azure/azurehpc-health-checks:conf/{size.name.removeprefix('Standard_').lower()}.conf"
    of_series = {"Standard_NC80adis_H100_v5": "Azure/azurehpc-health-checks#162"}
    named = row["source"].split()
    assert {conf, size.page, of_series.get(size.name)} & set(named), named
    assert not [source for source in named if "customTests" in source]


def test_what_microsoft_publishes_in_threads_reaches_the_sizes() -> None:
    nc80, gb200 = map(catalog.vm_size, ("Standard_NC80adis_H100_v5", "Standard_ND128isr_NDR_GB200_v6"))
    assert (nc80.health["gpu_nvlink"]["links"], nc80.health["gpu_nvlink"]["active"]) == (18, 12)
    assert "gpu_copy_peer" not in nc80.health, "256 GB/s are usual there, and no floor is published"
    assert gb200.health["memory"] == {
        "expected_kib": 904809536,
        "source": "Azure/azurehpc-health-checks#165",
        "tolerance_percent": 5,
    }
