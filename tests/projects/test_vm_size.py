"""What a node makes of the attributes that describe its VM size, and of those that do not describe it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from generator import catalog, pipeline
from generator.files import assets
from generator.plan.common_checks import common_table
from generator.projects.lock import shipped_problems
from tests.bed.scripts.healthy import healthy
from tests.bed.scripts.node import A100, H100, Node
from tests.cluster_template.rendered import read
from tests.projects.conftest import MakeNode
from tests.size_attributes import KEYS, records, several_attributes, size_attributes

BASE, QUICK, DEEP = KEYS
SHOW = (
    """for place in "${!CF_RECORDS[@]}"; do printf '%s\\t%s\\n' "${CF_RECORDS[place]}" "${CF_SOURCES[place]}"; done"""
)


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    return make_node("misc_ndv4")


def lib(node: Node, text: str) -> tuple[int, str]:
    """Run a few lines after sourcing the library; exit code and output."""
    sources = "".join(f'. "$CYCLECLOUD_SPEC_PATH/files/{name}.sh"\n' for name in ("cycleforge", "vm_size"))
    result = node.command("-c", f"set -euo pipefail\n{sources}{text}")
    return result.returncode, result.stdout + result.stderr


def test_vm_size_from_the_agent_from_metadata_or_unknown(node: Node) -> None:
    assert lib(node, 'cf_vm_size; echo "$REPLY"') == (0, "unknown\n")
    node.fake("curl", "printf Standard_HB120rs_v3")
    assert lib(node, 'cf_vm_size; echo "$REPLY"') == (0, "standard_hb120rs_v3\n")
    node.fake("curl", 'printf "<html>proxy error</html>"')
    assert lib(node, 'cf_vm_size; echo "$REPLY"') == (0, "unknown\n")
    node.vm_size(A100)
    assert lib(node, 'cf_vm_size; echo "$REPLY"') == (0, A100.lower() + "\n")


def test_bash_reads_of_every_size_what_was_written(node: Node) -> None:
    """All sizes of the catalogue, all attributes, in one go."""
    names = catalog.vm_size_names()
    wanted = ""
    for name in names:
        for key, text in size_attributes(name).items():
            node.attribute(f"{key}.{name}", text)
            rows = "".join(f"{line}\t{source}\n" for line, source in records(text)[1])
            wanted += f"{key} {name} true\n{rows}"
    code, output = lib(
        node,
        # A thousand calls of the agent would take a minute and prove nothing that others do not.
        f"""cf_attribute() {{ read -r REPLY <"$FAKE_STATE/attributes/$1"; }}
for name in {" ".join(names)}; do
    for key in {" ".join(KEYS)}; do
        cf_size_records "$key.$name" "${{name,,}}"
        echo "$key $name $CF_SIZE_KNOWN"
        {SHOW}
    done
done""",
    )
    assert (code, output) == (0, wanted)


def test_escaped_bytes_arrive_and_what_nobody_published_is_no_figure(node: Node) -> None:
    node.attribute("k", "1 standard_x | from a %7C b | plain=1 | odd=%7C%25%22%5C%24%60 | none=null | use nvidia")
    assert lib(node, f"cf_size_records k standard_x; {SHOW}")[1].splitlines() == [
        "plain=1\ta | b", 'odd=|%"\\$`\ta | b', "none=null\ta | b", "use nvidia\ta | b",
    ]  # fmt: skip
    show = (
        'cf_size_figures k standard_x; echo "${#CF_FIGURES[@]} ${CF_FIGURES[plain]} ${CF_FIGURES[odd]} $CF_SIZE_KNOWN"'
    )
    assert lib(node, show) == (0, '2 1 |%"\\$` true\n')


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("", ""),
        ("None", ""),
        ("2 standard_x | gpus=8", "attribute k has format 2, this project reads 1"),
        ("gpus=8", "attribute k cannot be read, it begins with 'gpus=8'"),
        ("1 standard_x;reboot | gpus=8", "attribute k cannot be read"),
        ("1 standard_y | gpus=8", "the VM size of this node is standard_x, the cluster describes standard_y (k)"),
        ("1 Standard_X | gpus=8", "attribute k cannot be read"),
    ],
)
def test_what_does_not_describe_this_size_is_not_used(node: Node, text: str, warning: str) -> None:
    node.attribute("k", text)
    code, output = lib(node, 'cf_size_figures k standard_x; echo "${#CF_FIGURES[@]} ${#CF_RECORDS[@]} $CF_SIZE_KNOWN"')
    assert code == 0
    assert output.startswith("0 0 false\n")
    assert warning in output
    assert ("WARNING" in output) is bool(warning)


def test_a_node_of_several_sizes_reads_the_attribute_of_its_own(node: Node) -> None:
    """As the template has it for a node array of both; a size that is not among them is unknown, without a warning."""
    for name in (A100, H100):
        for key, text in several_attributes(A100, H100).items():
            node.attribute(key, text)
        known, figure = size_attributes(name)[BASE], 'echo "$CF_SIZE_KNOWN ${#CF_RECORDS[@]}"'
        code, output = lib(node, f"cf_size_records {BASE} {name.lower()}; {figure}")
        assert (code, output) == (0, f"true {len(records(known)[1])}\n")
    assert lib(node, f'cf_size_records {BASE} standard_d64ds_v5; echo "$CF_SIZE_KNOWN"') == (0, "false\n")


def test_a_size_without_a_record_is_known_all_the_same(node: Node) -> None:
    node.attribute("k", "1 standard_x")
    assert lib(node, 'cf_size_records k standard_x; echo "${#CF_RECORDS[@]} $CF_SIZE_KNOWN"') == (0, "0 true\n")


# ---------------------------------------------------------------- another size than the definition's


def test_the_node_base_of_another_size_takes_no_figure_of_the_described_one(node: Node) -> None:
    """An operator changed the VM size of the node array in the portal."""
    node.vm_size("Standard_NC24ads_A100_v4", described=A100)
    node.fake("systemctl", "exit 0", light=True)
    node.write("sys/class/net/eth0/mtu", "1500")
    output = node.ok("10-nvme.sh")
    assert (
        "the VM size of this node is standard_nc24ads_a100_v4, the cluster describes standard_nd96amsr_a100_v4"
        in output
    )
    assert "has no figures" in output
    assert "expected_disks=0\n" in node.read("etc/cycleforge/nvme.conf")
    node.ok("20-gpu.sh")
    assert "expected_gpus=0\n" in node.read("etc/cycleforge/gpu.conf")
    assert "no NCCL variables" in node.ok("50-nccl.sh")


def test_health_of_another_size_is_not_measured_by_the_described_one(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), A100)
    node.vm_size(H100, described=A100)
    assert "'standard_nd96isr_h100_v5' has no figures" in node.ok("20-health.sh")
    result = node.quick()
    assert (result["verdict"], result["size_known"]) == ("incomplete", False)
    assert "no_baseline" in {row["verdict"] for row in result["checks"]}
    assert "228" not in node.read("etc/cycleforge/nhc/deep.conf")


# ---------------------------------------------------------------- the configuration of a node


def configured(node: Node, kind: str) -> list[tuple[str, str]]:
    """Check and source of each line that came from a table or an attribute."""
    text = node.read(f"etc/cycleforge/nhc/{kind}.conf")
    return re.findall(r"^# (.*)\n\* \|\| cycleforge (.*)$", text, re.MULTILINE)


@pytest.mark.parametrize("size", [A100, H100, "Standard_ND96isr_MI300X_v5", "Standard_HB176rs_v4", "Standard_D4as_v5"])
def test_the_configuration_has_every_check_of_the_template_below_its_source(make_node: MakeNode, size: str) -> None:
    """From the definition through the rendered template to the two files that the engine reads."""
    definition = (
        f"name: lab\nlocation: southcentralus\nslurm:\n  partitions: [{{name: p, vm_size: {size}, max_nodes: 1}}]\n"
    )
    plan = pipeline.check(definition.encode(), "lab.yaml", {}, Path()).plan
    assert plan is not None
    template = read(plan)
    node = healthy(make_node("slurm_nhc"), A100)
    node.vm_size(size)
    for key in KEYS:
        node.attribute(key, str(template.configuration("p", key)))
    assert "has no figures" not in node.ok("20-health.sh")
    common = [line.split("\t") for line in common_table().splitlines()[1:]]
    sets = ("every", "nvidia", "amd")
    of_project = {nodes: [(source, line) for name, line, source in common if name == nodes] for nodes in sets}
    quick = [("of this cluster", "mounts paths=/sched,/shared"), *of_project["every"]]
    for line, source in records(size_attributes(size)[QUICK])[1]:
        quick += of_project[line.removeprefix("use ")] if line.startswith("use ") else [(source, line)]
    assert configured(node, "quick") == quick
    deep = [(source, line) for line, source in records(size_attributes(size)[DEEP])[1]]
    assert configured(node, "deep") == deep
    assert node.read("etc/cycleforge/nhc/deep.conf").splitlines()[-1] == "* || cycleforge image_nhc policy=report"


@pytest.mark.parametrize(
    "record",
    [
        "cpu threads=1; touch /tmp/x",
        "cpu threads=$(touch /tmp/x)",
        "cpu 'threads=1",
        "use nothing",
        "cpu threads=1%0Areboot",
    ],
)
def test_what_is_no_check_reaches_no_configuration(make_node: MakeNode, record: str) -> None:
    """The engine evaluates its lines as root."""
    node = healthy(make_node("slurm_nhc"), A100)
    node.attribute(QUICK, f"1 {A100.lower()} | cpu threads=96 | {record}")
    output = node.ok("20-health.sh")
    assert f"attribute {QUICK} holds what is no check" in output
    assert "has no figures" in output
    assert "threads=96" not in node.read("etc/cycleforge/nhc/quick.conf")
    assert "size_known=false" in node.read("etc/cycleforge/health.conf")


def test_one_missing_attribute_makes_the_size_unknown(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), A100)
    (node.state / "attributes" / DEEP).unlink()
    assert "has no figures" in node.ok("20-health.sh")
    assert "size_known=false" in node.read("etc/cycleforge/health.conf")


# ---------------------------------------------------------------- a new size and the projects


def test_a_new_and_an_altered_size_change_no_file_of_any_project(tmp_path: Path) -> None:
    """In a copy of the checkout whose catalogue is changed and whose derived files are written anew."""
    root = assets.root()
    for name in ("generator", "projects", "cluster_defs", "docs"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    file = tmp_path / "generator/catalog/vm_sizes" / f"{H100}.json"
    entry = json.loads(file.read_text())
    entry["local_storage"]["nvme_count"] = 7
    for target in (file, file.with_name("Standard_ND1024_v9.json")):
        target.write_text(json.dumps(entry))
    tell = (
        "from generator import references; references.main(); from generator import catalog;"
        "from generator.plan.size_facts import base_attributes;"
        f"[print(base_attributes((catalog.vm_size(name),))) for name in ('{H100}', 'Standard_ND1024_v9')]"
    )
    result = subprocess.run([sys.executable, "-c", tell], cwd=tmp_path, capture_output=True, text=True, check=True)
    altered, new = result.stdout.splitlines()[-2:]
    assert "nvme_disks=7" in altered
    assert "1 standard_nd1024_v9 | " in new
    for path in (path for path in (root / "projects").rglob("*") if path.is_file()):
        assert (tmp_path / path.relative_to(root)).read_bytes() == path.read_bytes(), path
    names = ("misc_ndv4", "misc_ubuntu", "pyxis_enroot", "slurm_nhc")
    assert shipped_problems(names, tmp_path / "projects") == ()
