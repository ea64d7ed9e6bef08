"""Fabric manager, registration with the fabric, IMEX, nvidia_peermem and NVIDIA's daemons, by VM size."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bed.scripts.healthy import GOOD_GPU, REGISTERED, Healthy, healthy
from tests.bed.scripts.node import A100, H100
from tests.projects.conftest import MakeNode

GB200 = "Standard_ND128isr_NDR_GB200_v6"
IN_RACK = "Completed, Success, 32766, 2a2b3c4d-0000-4000-8000-00000000000a"
"""A clique and a cluster, as every GPU of a rack shows them. Source: Azure/azhpc-images, tests/test-definitions.sh"""


@pytest.fixture
def h100(make_node: MakeNode) -> Healthy:
    node = healthy(make_node("slurm_nhc"), H100)
    node.memory(1961032704)
    return node


def found(node: Healthy, check: str) -> tuple[str, str, str]:
    """Verdict, detail and cure of a check in the last quick run."""
    (row,) = [row for row in node.result("quick")["checks"] if row["check"] == check]
    return row["verdict"], row["detail"], row.get("cure", "")


def show(node: Healthy, fabric: str, gpu: int = 3, others: str = REGISTERED) -> None:
    """Fabric fields of one GPU."""
    node.set_gpus([GOOD_GPU.format(i=place, fabric=fabric if place == gpu else others) for place in range(8)])


def test_a_registered_node_passes(h100: Healthy) -> None:
    assert h100.quick()["verdict"] == "pass"
    assert found(h100, "gpu_fabric") == found(h100, "gpu_fabric_manager") == ("pass", "", "")


@pytest.mark.parametrize(("state", "words"), [
    ("inactive", "nvidia-fabricmanager is inactive, CUDA does not start without it"),
    ("failed", "nvidia-fabricmanager is failed, CUDA does not start without it"),
    ("", "nvidia-fabricmanager is not installed, CUDA does not start without it"),
])  # fmt: skip
@pytest.mark.parametrize("size", [A100, H100])
def test_without_its_fabric_manager_a_node_takes_no_job(make_node: MakeNode, size: str, state: str, words: str) -> None:
    """CUDA ends with 802 while every counter looks healthy; A100 shows no state of the fabric at all."""
    node = healthy(make_node("slurm_nhc"), size)
    node.only("gpu_services")
    if state:
        node.unit("nvidia-fabricmanager", state)
    else:
        (node.state / "active/nvidia-fabricmanager.service").unlink()
    node.booted(301)
    node.quick()
    assert found(node, "gpu_fabric_manager") == ("fail", words, "reboot")
    assert words in node.reason()
    node.booted(299)
    node.quick()
    verdict, detail, _ = found(node, "gpu_fabric_manager")
    assert (verdict, "5 minutes after boot it has to run" in detail) == ("not_measured", True)


STATES = [
    ("In Progress, N/A, 0, N/A", "GPU 3 In Progress, not Completed"),
    ("Not Started, N/A, 0, N/A", "GPU 3 Not Started, not Completed"),
    ("[N/A], [N/A], [N/A], [N/A]", "GPU 3 [N/A], not Completed"),
]


@pytest.mark.parametrize(("fabric", "words"), STATES)
def test_a_gpu_that_has_not_joined_fails_after_the_grace(h100: Healthy, fabric: str, words: str) -> None:
    h100.only("gpu_fabric")
    show(h100, fabric)
    h100.booted(120)
    h100.quick()
    assert found(h100, "gpu_fabric")[0] == "not_measured"
    assert h100.reason() == ""
    h100.booted(300)
    h100.quick()
    assert found(h100, "gpu_fabric") == ("fail", words, "reboot")
    assert words in h100.reason()


def test_a_registration_that_failed_needs_no_grace(h100: Healthy) -> None:
    h100.only("gpu_fabric")
    show(h100, "Completed, Insufficient Resources, 0, 00000000-0000-0000-0000-000000000000")
    h100.booted(10)
    h100.quick()
    assert found(h100, "gpu_fabric") == ("fail", "GPU 3 Insufficient Resources", "reboot")


def test_an_a100_shows_no_state_and_gets_no_verdict(make_node: MakeNode) -> None:
    node = healthy(make_node("slurm_nhc"), A100)
    result = node.quick()
    assert "gpu_fabric" not in {row["check"] for row in result["checks"]}
    assert found(node, "gpu_fabric_manager")[0] == "pass"


@pytest.fixture
def rack(make_node: MakeNode) -> Healthy:
    node = healthy(make_node("slurm_nhc"), GB200)
    for unit in ("nvidia-fabricmanager", "nvidia-imex"):
        (node.state / f"active/{unit}.service").unlink(missing_ok=True)
    node.unit("nvidia-imex", "inactive")
    node.write("dev/nvidia-caps-imex-channels/channel0", "")
    show(node, IN_RACK, others=IN_RACK)
    return node


def test_a_rack_needs_a_clique_and_no_fabric_manager(rack: Healthy) -> None:
    rack.quick()
    assert found(rack, "gpu_fabric")[0] == "pass"
    assert found(rack, "imex_channel")[0] == "pass"
    assert found(rack, "gpu_services")[:2] == ("pass", ""), "IMEX is stopped between jobs"
    checks: Any = {row["check"] for row in rack.result("quick")["checks"]}
    assert "gpu_fabric_manager" not in checks


@pytest.mark.parametrize(("fabric", "words"), [
    (REGISTERED, "GPU 3 clique 0, cluster 00000000-0000-0000-0000-000000000000"),
    ("Completed, Success, 32766, 00000000-0000-0000-0000-000000000000", "GPU 3 cluster 00000000-"),
    ("Completed, Success, 0, 2a2b3c4d-0000-4000-8000-00000000000a", "GPU 3 clique 0"),
    ("Completed, Success, [N/A], [N/A]", "GPU 3 clique [N/A], cluster [N/A]"),
])  # fmt: skip
def test_a_gpu_outside_its_rack_fails(rack: Healthy, fabric: str, words: str) -> None:
    rack.only("gpu_fabric")
    show(rack, fabric, others=IN_RACK)
    rack.quick()
    verdict, detail, cure = found(rack, "gpu_fabric")
    assert (verdict, cure) == ("fail", "reboot")
    assert detail.startswith(words)


def test_a_rack_without_its_imex_channel_fails(rack: Healthy) -> None:
    rack.only("gpu_services", "imex_channel")
    (rack.root / "dev/nvidia-caps-imex-channels/channel0").unlink()
    rack.unit("nvidia-imex", "failed")
    rack.quick()
    words = "/dev/nvidia-caps-imex-channels/channel0 is not there"
    assert found(rack, "imex_channel") == ("fail", words, "reboot")
    assert found(rack, "gpu_services")[:2] == ("warn", "nvidia-imex is failed")


def test_daemons_and_the_module_for_infiniband_are_warnings(h100: Healthy) -> None:
    h100.unit("nvidia-persistenced", "failed")
    h100.unit("nvidia-dcgm", "inactive")
    (h100.root / "sys/module/nvidia_peermem/initstate").unlink()
    (h100.root / "sys/module/nvidia_peermem").rmdir()
    assert h100.quick()["verdict"] == "warn"
    assert found(h100, "gpu_services")[:2] == ("warn", "nvidia-persistenced is failed, nvidia-dcgm is inactive")
    assert found(h100, "gpu_peermem")[:2] == ("warn", "nvidia_peermem is not loaded")
    assert h100.reason() == ""
    for unit in ("nvidia-persistenced", "nvidia-dcgm"):
        (h100.state / f"active/{unit}.service").unlink()
    h100.quick()
    assert found(h100, "gpu_services")[0] == "pass", "what an image does not have is not missed"


def test_a_systemd_that_does_not_answer_is_not_measured(h100: Healthy) -> None:
    h100.only("gpu_services")
    h100.fake("systemctl", "echo 'Failed to connect to bus'; exit 1")
    h100.quick()
    assert found(h100, "gpu_services")[0] == "not_measured"
    assert h100.reason() == ""
