"""NVLinks are counted on each GPU, and compared with what the VM size has."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from generator import catalog
from generator.plan.health_checks import nvlinks
from tests.bed.fakes import NVIDIA_SMI
from tests.bed.fakes.nvlink import ALL_INACTIVE, IN_MIG_MODE, INACTIVE, NO_NVLINK, status
from tests.bed.scripts.healthy import UNWIRED, Healthy, healthy
from tests.bed.scripts.node import A100, H100
from tests.projects.conftest import MakeNode

NC80 = "Standard_NC80adis_H100_v5"
LINKED = [size for size in map(catalog.vm_size, catalog.vm_size_names()) if nvlinks(size)[0]]
EVERY_LINE = """
rows="${CYCLEFORGE_ROWS}"
mapfile -t lines <"${HEALTHY}"
for ((gone = -1; gone < ${#lines[@]}; gone++)); do
    OUTPUT="" SMI_HUNG=false GPU_QUERY=""
    for place in "${!lines[@]}"; do if ((place != gone)); then OUTPUT+="${lines[place]}"$'\\n'; fi; done
    answer="${OUTPUT}"
    ask_smi() { OUTPUT="${answer}"; }
    : >"${rows}"
    check_gpu_nvlink
    printf '%s\\t%s\\n' "$((gone + 1))" "$(cut -d $'\\x1f' -f 1 "${rows}")"
done
"""


def shown(node: Healthy, text: str, check: str = "gpu_nvlink_inactive") -> dict[str, Any]:
    """The record of a quick run in which nvidia-smi prints these links."""
    node.only("gpu_nvlink")
    node.set_gpus(node.rows, nvlink=text)
    node.quick()
    (row,) = [row for row in node.result("quick")["checks"] if row["check"] == check]
    return dict(row)


@pytest.mark.parametrize("size", [A100, H100, NC80, "Standard_ND40rs_v2", "Standard_ND128isr_NDR_GB200_v6"])
def test_a_healthy_node_passes(size: str, make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), size)
    row = shown(node, node.nvlinks)
    assert (row["verdict"], row["value"]) == ("pass", "0"), row


@pytest.mark.fault("nvlink-gpu-dark")
def test_one_gpu_without_any_link_is_named_and_needs_a_reboot(make_node: MakeNode) -> None:
    """The driver ends with 0. Seen on NC H100 v5 after half of the boots: Azure/azhpc-images#443."""
    node = healthy(make_node("slurm_nhc"), H100)
    row = shown(node, status("H100", 8, 18, words={3: ALL_INACTIVE}))
    assert (row["verdict"], row["cure"], row["value"]) == ("fail", "reboot", "18")
    assert row["detail"] == "GPU 3: all links inactive"
    assert node.reason().startswith("CycleForge health: reboot the node: gpu_nvlink_inactive 18 of 144 links")
    assert "GPU 3: all links inactive" in node.reason()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (ALL_INACTIVE, "GPU 1: all links inactive"),
        ("\n".join(f"\t Link {link}: {INACTIVE}" for link in range(18)), "GPU 1: all links inactive"),
        (NO_NVLINK, f"GPU 1: {NO_NVLINK}"),
        ("", "GPU 1: all links inactive"),
    ],
)
def test_a_gpu_without_an_active_link_never_passes(words: str, said: str, make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), NC80)
    row = shown(node, status("H100 NVL", 2, 18, UNWIRED, words={1: words}))
    assert (row["verdict"], row["cure"], row["detail"]) == ("fail", "reboot", said)


def test_links_that_nothing_is_wired_to_are_healthy_and_one_more_is_not(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), NC80)
    assert shown(node, status("H100 NVL", 2, 18, UNWIRED))["verdict"] == "pass"
    assert node.reason() == ""
    row = shown(node, status("H100 NVL", 2, 18, (*UNWIRED, 0)))
    assert (row["verdict"], row["value"]) == ("fail", "2")
    assert row["detail"] == "GPU 0: 11 of 12 links active, GPU 1: 11 of 12 links active"


def test_links_that_are_not_listed_are_what_is_said_of_them(make_node: MakeNode) -> None:
    """Those of an NC H100 that nothing is wired to: all that count are up."""
    node = healthy(make_node("slurm_nhc"), NC80)
    lines = status("H100 NVL", 2, 18, UNWIRED).splitlines(keepends=True)
    row = shown(node, "".join(line for line in lines if INACTIVE not in line))
    assert (row["verdict"], row["value"]) == ("fail", "12")
    assert row["detail"] == "GPU 0: 6 of 18 links not listed, GPU 1: 6 of 18 links not listed"
    row = shown(node, "".join(line for line in lines if "Link 0:" not in line))
    assert row["detail"].startswith("GPU 0: 11 of 12 links active, 1 of 18 links not listed, GPU 1: ")


@pytest.mark.parametrize("rate", ["0.000 GB/s", "0 GB/s"])
def test_a_rate_of_nothing_is_no_active_link(rate: str, make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), H100)
    text = node.nvlinks.replace("Link 5: 26.562 GB/s", f"Link 5: {rate}", 1)
    row = shown(node, text)
    assert (row["verdict"], row["value"], row["detail"]) == ("fail", "1", "GPU 0: 17 of 18 links active")


def test_mig_mode_is_no_failure_and_no_pass(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), H100)
    row = shown(node, status("H100", 8, 18, words=dict.fromkeys(range(8), IN_MIG_MODE)), "gpu_nvlink")
    assert row["verdict"] == "not_measured"
    assert "MIG mode" in row["detail"]
    assert node.reason() == ""


@pytest.mark.parametrize("text", ["", "<html>\n", "\t Link 0: 26.562 GB/s\n"])
def test_an_answer_without_gpus_measures_nothing(text: str, make_node: MakeNode) -> None:
    assert shown(healthy(make_node("slurm_nhc"), H100), text, "gpu_nvlink")["verdict"] == "not_measured"


@pytest.mark.parametrize("size", LINKED, ids=lambda size: size.name)
def test_no_line_can_be_left_out_of_a_healthy_answer(size: catalog.VmSize, make_node: MakeNode) -> None:
    """Each line once, of every size: a heading, a link that is active, one that is inactive by design."""
    node = healthy(make_node("slurm_nhc"), size.name)
    listed, active = nvlinks(size)
    text = status(size.gpu_model or "", size.gpu_count, listed, UNWIRED[: listed - active])
    node.write("healthy.txt", text)
    done = node.command(
        "-c",
        f". {node.root}/opt/cycleforge/slurm_nhc/checks.sh; "
        f"declare -A GIVEN=([gpus]={size.gpu_count} [links]={listed} [active]={active}); {EVERY_LINE}",
        CYCLEFORGE_ROWS=str(node.folder / "rows"),
        CYCLEFORGE_BUDGET_S="60",
        HEALTHY=str(node.root / "healthy.txt"),
    )
    verdicts = dict(line.split("\t") for line in done.stdout.splitlines())
    assert verdicts.pop("0") == "pass", done.stderr
    assert len(verdicts) == text.count("\n")
    assert [line for line, verdict in verdicts.items() if verdict != "fail"] == []


def test_no_block_can_be_left_out_of_a_healthy_answer(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), NC80)
    blocks = node.nvlinks.split("GPU ")[1:]
    for gone in range(2):
        text = "".join(f"GPU {block}" for place, block in enumerate(blocks) if place != gone)
        row = shown(node, text)
        assert (row["verdict"], row["detail"]) == ("fail", f"GPU {gone}: not listed")


@pytest.mark.parametrize("model", ["a100", "h100"])
def test_the_fake_of_the_machines_prints_the_same_bytes(model: str, tmp_path: Any) -> None:
    (tmp_path / "model").write_text(model)
    command = ["bash", str(NVIDIA_SMI), "nvlink", "--status"]
    done = subprocess.run(command, env={"FAKE_STATE": str(tmp_path)}, capture_output=True, text=True, check=True)
    assert done.stdout == status(model.upper(), 8, {"a100": 12, "h100": 18}[model])
