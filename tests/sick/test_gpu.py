"""Faults of GPUs, their driver and what CUDA needs beside them: what docs/node-health.md promises, on running Slurm."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping

import pytest

from tests.bed.sick import SickCluster, SickNode
from tests.bed.sick.table import rows

Break = Callable[[SickNode], None]
HANDLE = "Unable to determine the device handle for GPU0000:20:00.0: Unknown Error"


def _unit(name: str, state: str) -> Break:
    return lambda node: node.state(f"active/{name}.service", state)


def _field(name: str, value: str) -> Break:
    return lambda node: node.field(3, name, value)


def _exit(code: int) -> Break:
    return lambda node: node.state("nvidia-smi.exit", code)


DRIVER: dict[str, Break] = {
    "smi-gpu-lost": _exit(15),
    "smi-crashes": _exit(139),
    "smi-driver-mismatch": _exit(18),
    "gpu-requires-reset": _field("temperature.gpu", "[GPU requires reset]"),
    "gpu-says-lost": _field("ecc.errors.corrected.volatile.sram", "[GPU is lost]"),
    "gpu-says-err": _field("persistence_mode", "ERR!"),
    "gpu-list-ends-early": lambda node: node.state("nvidia-smi.handle", HANDLE),
    "smi-asked-wrongly": _exit(13),
}
CUDA: dict[str, Break] = {
    "smi-hangs": lambda node: node.state("nvidia-smi.hang"),
    "fabric-manager-down": _unit("nvidia-fabricmanager", "failed"),
    "fabric-not-joined": _field("fabric.state", "In Progress"),
    "fabric-refused": _field("fabric.status", "Insufficient Resources"),
    "rows-to-remap": _field("remapped_rows.pending", "Yes"),
    "remap-failed": _field("remapped_rows.failure", "Yes"),
    "daemon-down": _unit("nvidia-dcgm", "inactive"),
    "peermem-missing": lambda node: shutil.rmtree(node.files / "sys/module/nvidia_peermem"),
}

OFF_AT_PROBE = (
    "NVRM: The NVIDIA GPU 0003:00:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands."
)
"""Source: NVIDIA/open-gpu-kernel-modules, src/nvidia/arch/nvalloc/unix/src/osapi.c."""
FORGED = (
    "NVRM: GPU a0:b [24066]: segfault at 0 ip 00005562e8f3716a sp 00007ffc0969fbc0 error 6 in fallen off the bus"
    "[116a,5562e8f37000+1000] likely on CPU 1 (core 1, socket 0)",
    f"x[24073]: segfault at 0 ip 000055556d13916a sp 00007ffc71246930 error 6 in x\n{OFF_AT_PROBE}"
    "[116a,55556d139000+1000] likely on CPU 1 (core 1, socket 0)",
)
"""What Linux 6.18 wrote of two programs with such names."""


def _not_started(node: SickNode) -> None:
    node.gpus(7)
    node.kernel("NVRM: GPU 0008:00:00.0: RmInitAdapter failed! (0x24:0xffff:1220)")


ASKED_FOR: dict[str, Break] = {
    "recovery-reset": _field("gpu_recovery_action", "Reset"),
    "recovery-reboot": _field("gpu_recovery_action", "Reboot"),
    "recovery-drain-and-reset": _field("gpu_recovery_action", "Drain and Reset"),
    "recovery-drain-p2p": _field("gpu_recovery_action", "Drain P2P"),
    "recovery-unknown": _field("gpu_recovery_action", "Unknown(9)"),
    "xid-off-at-probe": lambda node: node.kernel(OFF_AT_PROBE),
    "gpu-not-started": _not_started,
    "program-named-like-the-driver": lambda node: node.kernel(*FORGED),
}


def _fall_ill(sick: SickCluster, faults: Mapping[str, Break]) -> dict[str, SickNode]:
    """One fault per node, and a run of each; the nodes by fault."""
    nodes = dict(zip(faults, sick.nodes.values(), strict=True))
    for fault, node in nodes.items():
        faults[fault](node)
    sick.quick()
    return nodes


def _as_promised(sick: SickCluster, nodes: Mapping[str, SickNode]) -> None:
    """Drained with the row's reason or idle, and no job starts on what is drained."""
    shown = sick.states()
    for fault, node in nodes.items():
        row, state = rows()[fault], shown[node.name]
        assert state.state == ("drained" if row.drained else "idle"), (fault, state, node.result("quick"))
        assert state.reason.startswith(row.reason), (fault, state.reason)
    sick_names = [node.name for fault, node in nodes.items() if rows()[fault].drained]
    jobs = [sick.submit("true", f"--nodelist={name}") for name in sick_names]
    healthy = next(node.name for fault, node in nodes.items() if not rows()[fault].drained)
    assert sick.finish(sick.submit("true", f"--nodelist={healthy}"))["ExitCode"] == "0:0"
    assert {sick.job(job)["JobState"] for job in jobs} == {"PENDING"}


@pytest.mark.fault(
    "smi-gpu-lost", "smi-crashes", "smi-driver-mismatch", "gpu-requires-reset", "gpu-says-lost", "gpu-says-err",
    "gpu-list-ends-early", "smi-asked-wrongly",
)  # fmt: skip
def test_what_the_driver_says_of_a_sick_gpu(sick: SickCluster) -> None:
    nodes = _fall_ill(sick, DRIVER)
    _as_promised(sick, nodes)
    assert nodes["smi-asked-wrongly"].verdict("nvidia_smi") == "not_measured"
    node = nodes["smi-crashes"]
    node.heal()
    for _ in range(2):
        assert node.quick()["verdict"] == "pass"
    assert sick.states()[node.name].state == "drained", "passing runs of this boot are not the cure"
    node.reboot()
    node.quick()
    assert sick.states()[node.name].state == "idle"


@pytest.mark.fault(
    "smi-hangs", "fabric-manager-down", "fabric-not-joined", "fabric-refused", "rows-to-remap", "remap-failed",
    "daemon-down", "peermem-missing",
)  # fmt: skip
def test_what_cuda_needs_beside_the_gpus(sick: SickCluster) -> None:
    nodes = _fall_ill(sick, CUDA)
    hangs = nodes["smi-hangs"]
    assert hangs.verdict("nvidia_smi") == "not_measured"
    assert sick.states()[hangs.name].state == "idle", "one hang may be a moment"
    hangs.quick()
    _as_promised(sick, nodes)
    assert nodes["daemon-down"].verdict("gpu_services") == "warn"
    assert nodes["peermem-missing"].verdict("gpu_peermem") == "warn"


@pytest.mark.fault(
    "recovery-reset", "recovery-reboot", "recovery-drain-and-reset", "recovery-drain-p2p", "recovery-unknown",
    "xid-off-at-probe", "gpu-not-started", "program-named-like-the-driver",
)  # fmt: skip
def test_what_the_driver_itself_asks_for(sick: SickCluster) -> None:
    nodes = _fall_ill(sick, ASKED_FOR)
    _as_promised(sick, nodes)
    assert nodes["recovery-drain-p2p"].verdict("gpu_recovery_action") == "warn"
    assert nodes["recovery-unknown"].verdict("gpu_recovery_action") == "not_measured"
    assert nodes["program-named-like-the-driver"].result("quick")["verdict"] == "pass"
    node = nodes["recovery-reset"]
    node.heal()
    node.reboot()
    node.quick()
    assert sick.states()[node.name].state == "idle", "a boot has reset the GPUs"


@pytest.mark.fault("cuda-not-ready")
def test_a_node_whose_cuda_does_not_initialise_gets_no_job(sick: SickCluster) -> None:
    node = sick["n8"]
    node.converge(deep_s="60")
    try:
        node.state(
            "nvbandwidth.fails", "[CUDA_ERROR_SYSTEM_NOT_READY] system not yet initialized in expression cuInit(0)"
        )
        assert node.deep()["verdict"] == "fail"
        assert node.hook("prolog")[0] != 0
        state = sick.states()[node.name]
        assert state.state == "drained"
        assert state.reason.startswith(rows()["cuda-not-ready"].reason)
    finally:
        node.heal()
        node.converge(deep_s="0")
