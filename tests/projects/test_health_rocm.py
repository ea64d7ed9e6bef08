"""Deep checks of AMD GPUs: copies and RCCL by their floors, in the environment that belongs to them."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.bed.scripts.amd import GPUS, AmdNode
from tests.bed.scripts.rocm import another_copy_tool, rocm_tools
from tests.projects.conftest import MakeNode


@pytest.fixture
def amd(make_node: MakeNode) -> AmdNode:
    node = AmdNode(make_node("slurm_nhc"), deep_s=300)
    rocm_tools(node)
    return node


def measure(amd: AmdNode) -> dict[str, dict[str, Any]]:
    """The records of a deep run at boot, by check."""
    code, output = amd.node.health("deep", "boot")
    assert code == 0, output
    return {each["check"]: each for each in amd.node.result("deep")["checks"]}


def test_a_fast_node_passes_every_deep_check(amd: AmdNode) -> None:
    rows = measure(amd)
    assert {name: (each["verdict"], each["value"]) for name, each in rows.items()} == {
        "amd_driver": ("pass", ""), "gpu_copy_to_device": ("pass", "55.2"), "gpu_copy_from_device": ("pass", "57.0"),
        "gpu_copy_peer": ("pass", "48.4"), "rccl_all_reduce": ("pass", "330.1"), "ib_write": ("pass", "395.10"),
    }  # fmt: skip
    assert amd.node.health("gate") == (0, "")


def test_the_all_reduce_runs_in_the_environment_of_its_floor(amd: AmdNode) -> None:
    measure(amd)
    text = (amd.node.state / "mpirun.env").read_text()
    variables = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert (variables["HSA_NO_SCRATCH_RECLAIM"], variables["UCX_TLS"]) == ("1", "tcp")
    assert variables["LD_LIBRARY_PATH"].startswith("/opt/rccl/lib:")
    (call,) = amd.node.calls("mpirun")
    assert call.endswith("/opt/rccl-tests/all_reduce_perf -b 16G -e 16G -f 2 -g 1 -c 1")
    servers = [each for each in amd.node.calls("ib_write_bw") if not each.endswith("localhost")]
    assert len(servers) == GPUS
    assert not any("--use_" in each for each in servers), "the floor is that of the host's memory"


CRASH = "echo \"Test NCCL failure common.cu:100 'unhandled cuda error'\"; exit 3"
SLOW: list[tuple[dict[str, str], str, str]] = [
    ({"to": "47.9"}, "gpu_copy_to_device", "device 0 to 2"),
    ({"back": "47.9"}, "gpu_copy_from_device", "device 2 to 1"),
    ({"peer": "43.9"}, "gpu_copy_peer", "device 3 to 2"),
    ({"bus": "313.9"}, "rccl_all_reduce", "message 16G"),
    ({"wrong": "3"}, "rccl_all_reduce_wrong_values", ""),
    ({"crash": CRASH}, "rccl_all_reduce", "exit code 3: Test NCCL failure"),
    ({"network": "389.9"}, "ib_write", "mlx5_ib"),
]


LINES = {
    "gpu_copy_to_device": "amd_copies", "gpu_copy_from_device": "amd_copies", "gpu_copy_peer": "amd_copies",
    "rccl_all_reduce_wrong_values": "rccl_all_reduce",
}  # fmt: skip
"""The line of the configuration that makes a check, where it has another name."""


@pytest.mark.parametrize(("figures", "check", "detail"), SLOW)
def test_what_is_slow_wrong_or_broken_closes_the_gate(
    amd: AmdNode, figures: dict[str, str], check: str, detail: str
) -> None:
    amd.node.only(LINES.get(check, check), kind="deep")
    rocm_tools(amd, **figures)
    found = measure(amd)[check]
    assert found["verdict"] == "fail"
    assert detail in found["detail"]
    assert amd.node.health("gate")[0] != 0


def test_tools_that_are_missing_or_print_other_tables_measure_nothing(amd: AmdNode) -> None:
    amd.node.only("amd_ready", "amd_copies", "rccl_all_reduce", kind="deep")
    another_copy_tool(amd)
    (amd.node.root / "opt/rccl-tests/all_reduce_perf").unlink()
    rows = measure(amd)
    assert (rows["gpu_copies"]["verdict"], rows["rccl_all_reduce"]["verdict"]) == ("not_measured", "not_measured")
    assert rows["rccl_all_reduce"]["detail"] == "/opt/rccl-tests/all_reduce_perf is not in this image"


def test_deep_checks_wait_for_the_driver(amd: AmdNode) -> None:
    """Azure's image loads it two minutes after it has seen all GPUs."""
    amd.node.only("amd_ready", "amd_copies", "rccl_all_reduce", kind="deep")
    amd.unload_driver(uptime_s=30)
    state = amd.node.root / "sys/module/amdgpu/initstate"
    amd.node.fake("sleep", f'echo live >"{state}"\nexec {shutil.which("sleep")} 0.1')
    assert measure(amd)["gpu_copy_peer"]["verdict"] == "pass"


def test_without_the_driver_nothing_is_measured_and_the_gate_stays_shut(amd: AmdNode) -> None:
    amd.node.only("amd_ready", "amd_copies", "rccl_all_reduce", kind="deep")
    amd.unload_driver(uptime_s=2000)
    amd.node.write("etc/cycleforge/health.conf", amd.node.read("etc/cycleforge/health.conf").replace("300", "1"))
    rows = measure(amd)
    assert rows["amd_driver"]["verdict"] == "fail"
    assert {rows[name]["verdict"] for name in ("gpu_copies", "rccl_all_reduce")} == {"not_measured"}
    assert amd.node.health("gate")[0] != 0
