"""What nodes are told about their VM size: the catalogue's figures and their sources, in a form nobody misreads."""

from __future__ import annotations

import re
import shlex

import pytest

from generator import catalog
from generator.catalog.sizes import VmSize
from generator.cctemplate.values import known_value
from generator.cctemplate.writing import assignment
from generator.files import assets
from generator.plan import health_checks
from generator.plan.common_checks import common_table
from generator.plan.mig import MigPlan
from generator.plan.size_facts import MAX_CHARACTERS, written
from generator.plan.sourced import Sourced
from tests.bed.scripts.node import A100
from tests.cluster_template.rendered import parse
from tests.size_attributes import KEYS, records, size_attributes

NAMES = catalog.vm_size_names()
SETS = ("use nvidia", "use amd")
"""Records that stand for the checks which the project itself has for such nodes."""
FILES = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files"


def common(nodes: str) -> list[tuple[str, str]]:
    """The project's own checks for some nodes: line and source."""
    rows = [line.split("\t") for line in common_table().splitlines() if not line.startswith("#")]
    return [(line, source) for found, line, source in rows if found == nodes]


def lines(vm_size: str, kind: str) -> list[tuple[str, str]]:
    """The checks of a size with their sources, as a node writes them down."""
    _, found = records(size_attributes(vm_size)[f"cycleforge.vm_size.{kind}"])
    return [row for text, source in found for row in (common(text[4:]) if text in SETS else [(text, source)])]


def checks_of(vm_size: str, kind: str) -> dict[str, dict[str, str]]:
    """Check → its arguments, as the shell on the node would read them."""
    return arguments_of(lines(vm_size, kind), vm_size)


def arguments_of(rows: list[tuple[str, str]], where: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for line, _ in rows:
        check, *words = shlex.split(line)
        assert check not in found, f"{where} has {check} twice"
        found[check] = dict(word.split("=", 1) for word in words)
    return found


# ---------------------------------------------------------------- the form


def test_every_size_that_is_known_has_all_three_and_no_other_has_any() -> None:
    assert {tuple(size_attributes(name)) for name in NAMES} == {KEYS}
    assert size_attributes("Standard_ND1024_v9") == {}


@pytest.mark.parametrize("key", KEYS)
def test_each_is_one_short_line_that_names_its_size(key: str) -> None:
    for name in NAMES:
        text = size_attributes(name)[key]
        assert len(text) <= MAX_CHARACTERS
        assert text.isascii()
        assert text.isprintable()
        assert records(text)[0] == f"1 {name.lower()}"


def test_each_is_plain_quoted_text_in_a_template_and_is_read_back_as_it_was() -> None:
    """Only what Microsoft documents of its template language: `"…"` forces a string."""
    for name in NAMES:
        for key, text in size_attributes(name).items():
            shown = assignment(text)
            assert shown == f'= "{text}"'
            (cluster,) = parse(f"[cluster c]\n[[node n]]\n[[[configuration]]]\n{key} {shown}\n").clusters
            (attribute,) = cluster.sections[0].sections[0].attributes
            assert known_value(attribute.value, {}) == text


def test_what_would_be_misread_is_escaped() -> None:
    text = written(VmSize("Standard_X"), [Sourced('a=|%"\\$`\n\té', "x | y"), Sourced("b=1", "x | y")])
    assert text == "1 standard_x | from x %7C y | a=%7C%25%22%5C%24%60%0A%09%C3%A9 | b=1"
    assert records(text)[1] == [('a=|%"\\$`\n\té', "x | y"), ("b=1", "x | y")]


def test_what_is_too_long_is_not_cut_off() -> None:
    with pytest.raises(ValueError, match=r"an attribute of Standard_X has \d+ characters, more than 2000"):
        written(VmSize("Standard_X"), [Sourced("a=" + "x" * MAX_CHARACTERS, "null")])


# ---------------------------------------------------------------- the figures


def test_every_figure_of_the_node_base_is_that_of_the_catalogue() -> None:
    for name in catalog.vm_size_names():
        size = catalog.vm_size(name)
        _, rows = records(size_attributes(name)["cycleforge.vm_size.base"])
        found = dict(text.split("=", 1) for text, _ in rows)
        assert len(found) == len(rows)
        assert found.pop("nvme_disks") == ("null" if size.nvme_count is None else str(size.nvme_count))
        assert found.pop("gpus", "0") == str(size.gpu_count)
        assert found.pop("gpu_vendor", None) == size.gpu_vendor
        for key in ("nccl_topo_file", "nccl_topo_link", "nccl_graph_file"):
            assert found.pop(key, None) == getattr(size, key)
        variables = dict(size.nccl_conf) | dict(size.nccl_env)
        assert found.pop("nccl_library_path", None) == variables.get("LD_LIBRARY_PATH_PREPEND")
        assert {(key.removeprefix("variable."), value) for key, value in found.items()} <= set(variables.items())
        for text, source in rows:
            assert text.endswith("=null") or source != "null", (name, text)


def test_variables_that_tune_one_benchmark_stay_with_the_jobs() -> None:
    told = {text for name in NAMES for text, _ in records(size_attributes(name)["cycleforge.vm_size.base"])[1]}
    assert "variable.CUDA_DEVICE_ORDER=PCI_BUS_ID" in told
    assert not [text for text in told if re.search(r"UCX_|OMPI_|SHARP_|CHANNELS|COLLNET|NCCL_DEBUG", text)]


def test_every_check_exists_on_the_node() -> None:
    """A check that nobody defined drained every H100 node of a reference."""
    text = "".join(file.read_text() for file in FILES.glob("checks-*.sh"))
    defined = set(re.findall(r"^check_([a-z0-9_]+)\(\)", text, re.MULTILINE))
    rows = [row for name in NAMES for kind in ("quick", "deep") for row in lines(name, kind)]
    slices = MigPlan(profile="1g.10gb", per_gpu=7, slices=56, devices="/dev/cycleforge/mig[0-55]")
    rows += [(each.text, str(each.source)) for each in health_checks.deep(catalog.vm_size(A100), slices)]
    told = health_checks.quick(catalog.vm_size(A100), slices)
    rows += [(each.text, str(each.source)) for each in told if each.text not in SETS]
    used = {line.split()[0] for line, _ in [*rows, *common("every"), *common("unknown")]}
    assert used <= defined
    assert defined - used <= {"mounts", "site", "image_nhc", "one_mount", "array"}, "written by 20-health.sh or helpers"


def test_every_limit_has_a_source() -> None:
    rows = [row for name in NAMES for kind in ("quick", "deep") for row in lines(name, kind)]
    for line, source in [*rows, *common("every"), *common("unknown")]:
        numbers = [word for word in shlex.split(line)[1:] if not word.endswith("=null")]
        free = all(word.split("=")[0] in ("ranks", "attempts", "expected") for word in numbers)
        assert source != "null" or free, line


def test_the_lines_are_those_of_the_catalogue_with_their_sources() -> None:
    """Nothing is lost on the way through text: what was made of the catalogue is what a node reads."""
    for name in NAMES:
        size = catalog.vm_size(name)
        for kind, made in (("quick", health_checks.quick(size)), ("deep", health_checks.deep(size))):
            _, found = records(size_attributes(name)[f"cycleforge.vm_size.{kind}"])
            wanted = [(line.text, line.source) for line in made]
            assert [text for text, _ in found] == [text for text, _ in wanted]
            assert [row for row in found if row[0] not in SETS] == [row for row in wanted if row[0] not in SETS]


@pytest.mark.parametrize(
    ("size", "kind", "check", "arguments"),
    [
        ("Standard_ND96amsr_A100_v4", "deep", "nccl_all_reduce",
         {"ranks": "8", "message": "1G", "message_end": "2G", "floor_gb_per_s": "228", "attempts": "10"}),
        ("Standard_ND96asr_v4", "deep", "nccl_loopback",
         {"ranks": "8", "message": "500M", "message_end": "1G", "floor_gb_per_s": "18", "attempts": "10"}),
        ("Standard_ND96isr_H100_v5", "deep", "nccl_all_reduce",
         {"ranks": "8", "message": "16G", "floor_gb_per_s": "460", "attempts": "10"}),
        ("Standard_ND96isr_H100_v5", "deep", "nccl_loopback",
         {"ranks": "8", "message": "500M", "message_end": "1G", "floor_gb_per_s": "40", "attempts": "10"}),
        ("Standard_ND96isr_H200_v5", "deep", "nccl_all_reduce",
         {"ranks": "8", "message": "16G", "floor_gb_per_s": "431", "attempts": "1"}),
        ("Standard_ND96isr_H200_v5", "deep", "nccl_loopback",
         {"ranks": "8", "message": "500M", "message_end": "1G", "floor_gb_per_s": "null", "attempts": "1"}),
        ("Standard_ND96isr_H200_v5", "deep", "ib_write",
         {"floor_gbit_per_s": "360", "message_bytes": "8388608", "gpu_memory": "yes"}),
        ("Standard_ND40rs_v2", "deep", "ib_write",
         {"floor_gbit_per_s": "78", "message_bytes": "65536", "gpu_memory": "no", "queue_pairs": "2", "seconds": "10"}),
        ("Standard_ND96isr_H100_v5", "quick", "gpu_remap",
         {"gpus": "8", "pending_max": "0", "failure_max": "0", "uncorrectable_max": "512"}),
        ("Standard_ND96isr_H100_v5", "quick", "gpu_nvlink", {"gpus": "8", "links": "18", "active": "18"}),
        ("Standard_NC80adis_H100_v5", "quick", "gpu_nvlink", {"gpus": "2", "links": "18", "active": "12"}),
        ("Standard_NC80adis_H100_v5", "deep", "gpu_copy_peer",
         {"floor_gb_per_s": "null", "warn_below_gb_per_s": "null"}),
        ("Standard_ND128isr_NDR_GB200_v6", "quick", "gpu_nvlink", {"gpus": "4", "links": "18", "active": "18"}),
        ("Standard_ND128isr_NDR_GB200_v6", "quick", "cpu", {"threads": "128"}),
        ("Standard_ND128isr_NDR_GB200_v6", "quick", "memory", {"expected_kib": "904809536", "tolerance_percent": "5"}),
        ("Standard_ND128isr_NDR_GB200_v6", "quick", "ib_ports", {"count": "4", "rate_gbit_per_s": "400"}),
        ("Standard_NC4as_T4_v3", "quick", "memory", {"expected_kib": "null", "tolerance_percent": "null"}),
        ("Standard_NC4as_T4_v3", "quick", "gpu_pages", {"retired_max": "null"}),
        ("Standard_ND96isr_H100_v5", "quick", "nccl_topology",
         {"file": "/opt/microsoft/ndv5-topo.xml", "link": "/opt/microsoft/ndv5/topo.xml"}),
        ("Standard_ND40rs_v2", "quick", "gpu_pages", {"gpus": "8", "retired_max": "61"}),
        ("Standard_HX176-48rs", "deep", "cpu_stream",
         {"floor_mb_per_s": "665500", "program": "stream4.exe", "threads": "24",
          "places": "0,2,4,6,8,10,12,14,16,18,20,22,24,26,28,30,32,34,36,38,40,42,44,46"}),
        ("Standard_HC44rs", "deep", "cpu_stream", {"floor_mb_per_s": "null"}),
        ("Standard_ND96isr_MI300X_v5", "quick", "amd_xgmi", {"peers": "7"}),
        ("Standard_HB120-64rs_v3", "quick", "cpu", {"threads": "64", "sockets": "2"}),
        ("Standard_D4as_v5", "quick", "cpu", {"threads": "4"}),
        ("Standard_ND96isr_H100_v5", "quick", "nvme_disks", {"count": "8"}),
        ("Standard_ND128isr_GB300_v6", "deep", "gpu_copy_to_device",
         {"floor_gb_per_s": "null", "warn_below_gb_per_s": "null"}),
        ("Standard_ND96isr_H100_v5", "quick", "gpu_throttling", {"error_mask": str(0xE8)}),
        ("Standard_NC96ads_A100_v4", "deep", "gpu_copy_peer",
         {"floor_gb_per_s": "238", "warn_below_gb_per_s": "249.9"}),
        ("Standard_ND128isr_GB300_v6", "deep", "ib_write",
         {"floor_gbit_per_s": "null", "message_bytes": "8388608", "gpu_memory": "yes"}),
    ],
)  # fmt: skip
def test_lines_have_the_figures_of_the_catalogue(size: str, kind: str, check: str, arguments: dict[str, str]) -> None:
    assert checks_of(size, kind)[check] == arguments


_A = {
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_IB_PCI_RELAXED_ORDERING": "1", "NCCL_SOCKET_IFNAME": "eth0",
    "NCCL_TOPO_FILE": "", "UCX_IB_PCI_RELAXED_ORDERING": "on", "UCX_NET_DEVICES": "eth0", "UCX_TLS": "tcp",
}  # fmt: skip
_PLUGIN = "/usr/local/nccl-rdma-sharp-plugins/lib"


@pytest.mark.parametrize(
    ("size", "environment"),
    [
        # Azure/azurehpc-health-checks: customTests/azure_nccl_allreduce.nhc
        ("Standard_ND96isr_H200_v5", {
            "name": "aznhc", "place": "container", "bind_to": "numa", "hcoll": "off", "module": "mpi/hpcx", **_A}),
        # Azure/azurehpc: experimental/cc_slurm_nhc, azure_nccl_allreduce.nhc, the branch of each size
        ("Standard_ND96isr_H100_v5", {
            "name": "azhpc-ndv5", "place": "host", "bind_to": "none", "hcoll": "off", "module": "mpi/hpcx",
            "library_path": _PLUGIN, "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_IB_PCI_RELAXED_ORDERING": "1",
            "NCCL_MIN_NCHANNELS": "32", "NCCL_SOCKET_IFNAME": "eth0",
            "NCCL_TOPO_FILE": "/opt/microsoft/ndv5-topo.xml"}),
        ("Standard_ND96asr_v4", {
            "name": "azhpc-ndv4", "place": "host", "bind_to": "numa", "hcoll": "off", "module": "mpi/hpcx",
            "library_path": _PLUGIN, **_A, "NCCL_TOPO_FILE": "/opt/microsoft/ndv4-topo.xml"}),
        ("Standard_NC96ads_A100_v4", {
            "name": "azhpc-ncv4", "place": "host", "bind_to": "numa", "hcoll": "default", "module": "mpi/openmpi",
            "NCCL_GRAPH_FILE": "/opt/microsoft/ncv4/graph.xml", "NCCL_IB_DISABLE": "1",
            "NCCL_TOPO_FILE": "/opt/microsoft/ncv4/topo.xml"}),
    ],
)  # fmt: skip
def test_a_floor_comes_with_the_environment_of_its_own_row(size: str, environment: dict[str, str]) -> None:
    """Variables of multi-node runs (CollNet, SHARP, PXN) beside a floor of one node made it another test."""
    assert checks_of(size, "deep")["nccl_environment"] == environment


def test_no_test_of_one_node_has_variables_of_several_nodes() -> None:
    for name in NAMES:
        variables = checks_of(name, "deep").get("nccl_environment", {})
        assert not {key for key in variables if re.search("COLLNET|SHARP|PXN|OMPI", key)}, name
        assert variables.get("UCX_TLS") in (None, "tcp"), "MPI_Init fails when one port is down"


def test_clocks_are_held_as_the_source_of_the_floor_held_them() -> None:
    held = {name: checks_of(name, "deep")["ib_write"].get("lock_mhz") for name in NAMES if "_ND96isr_H" in name}
    assert held == {
        "Standard_ND96isr_H100_v5": "2619", "Standard_ND96isr_H200_v5": None,
    }  # fmt: skip
    assert checks_of("Standard_ND96asr_v4", "deep")["gpu_copy_peer"]["lock_mhz"] == "1400"


def test_a_single_gpu_has_nothing_to_talk_to() -> None:
    assert not {"gpu_copy_peer", "nccl_all_reduce"} & set(checks_of("Standard_NC24ads_A100_v4", "deep"))


def test_amd_sizes_are_measured_by_rocm_and_nothing_of_nvidia_is_asked_there() -> None:
    deep, quick = (checks_of("Standard_ND96isr_MI300X_v5", kind) for kind in ("deep", "quick"))
    assert set(deep) == {"amd_ready", "amd_copies", "rccl_all_reduce", "ib_write"}
    assert next(iter(deep)) == "amd_ready", "the others need the driver"
    assert deep["amd_copies"] == {"host_floor_gb_per_s": "48", "peer_floor_gb_per_s": "44"}
    reduce = deep["rccl_all_reduce"]
    assert {key: reduce[key] for key in ("ranks", "message", "floor_gb_per_s", "HSA_NO_SCRATCH_RECLAIM")} == {
        "ranks": "8", "message": "16G", "floor_gb_per_s": "314", "HSA_NO_SCRATCH_RECLAIM": "1",
    }  # fmt: skip
    assert (deep["ib_write"]["floor_gbit_per_s"], deep["ib_write"]["gpu_memory"]) == ("390", "no")
    assert quick["amd_gpu_count"] == {"count": "8"}
    assert not set(quick) & set(arguments_of(common("nvidia"), "nvidia"))


def test_an_unknown_size_demands_no_gpu() -> None:
    found = arguments_of(common("unknown"), "unknown")
    gpu = [arguments for check, arguments in found.items() if check.startswith("gpu_") and check != "gpu_xid"]
    assert all(arguments["expected"] == "no" for arguments in gpu)
    assert {check for check in arguments_of(common("nvidia"), "nvidia") if check not in found} == set()


# ---------------------------------------------------------------- the project's table


def test_the_table_of_the_project_is_three_full_columns_and_names_no_size() -> None:
    rows = [line.split("\t") for line in common_table().splitlines() if not line.startswith("#")]
    assert all(len(row) == 3 and all(row) for row in rows)
    assert {row[0] for row in rows} == {"every", "nvidia", "amd", "unknown"}
    assert "standard_" not in common_table().lower()
    common_table().encode("ascii")


DIVIDED = MigPlan(profile="1g.10gb", per_gpu=7, slices=56, devices="/dev/cycleforge/mig[0-55]")
NOT_IN_MIG_MODE = ("gpu_remap", "gpu_nvlink", "gpu_copy_peer", "nccl_all_reduce", "nccl_loopback", "gpu_diagnostic")
"""What the driver shows of whole GPUs only. Source: utkuozdemir/nvidia_gpu_exporter, internal/captures, h100-mig."""


@pytest.mark.parametrize(
    "name", [name for name in NAMES if catalog.vm_size(name).gpu_model in ("A100", "H100", "H200")]
)
def test_no_check_is_made_of_what_a_divided_gpu_does_not_show(name: str) -> None:
    """It would be "not measured" in each run for ever. What stands in is rendered, and its source says what for."""
    size = catalog.vm_size(name)
    made = {line.text.split()[0]: line.source for line in health_checks.quick(size, DIVIDED)}
    assert not set(made) & set(NOT_IN_MIG_MODE)
    assert {"gpu_spare_rows", "gpu_xid", "mig_slices"} <= set(made)
    assert "XID 63 and 64 and remapped_rows.histogram.none take the place of gpu_remap" in made["gpu_spare_rows"]
    assert [line.text.split()[0] for line in health_checks.deep(size, DIVIDED)] == ["boot_services"]


@pytest.mark.parametrize("name", [name for name in NAMES if catalog.vm_size(name).gpu_vendor == "NVIDIA"])
def test_rows_are_remapped_or_pages_retired(name: str) -> None:
    """The GPU decides which: before the A100 there are no spare rows."""
    size = catalog.vm_size(name)
    made = {line.text.split()[0] for line in health_checks.quick(size)} & {"gpu_remap", "gpu_pages"}
    assert made == ({"gpu_pages"} if size.gpu_model in ("T4", "V100") else {"gpu_remap"})
