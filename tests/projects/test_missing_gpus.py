"""A GPU that nvidia-smi does not list is named: its address on the PCI bus, and what the driver says of it."""

from __future__ import annotations

import shutil
from typing import Any

import pytest

from tests.bed.scripts.healthy import Healthy, healthy
from tests.projects.conftest import MakeNode

GONE = 6
ADDRESS = f"{GONE + 1:04x}:00:00"
# kernel-open/nvidia/nv.c and src/nvidia/arch/nvalloc/unix/src of NVIDIA/open-gpu-kernel-modules
OFF_AT_PROBE = (
    f"NVRM: The NVIDIA GPU {ADDRESS}.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\n"
    "NVRM: fallen off the bus and is not responding to commands."
)
FAILED = f"NVRM: GPU {ADDRESS}.0: RmInitAdapter failed! (0x24:0xffff:1220)"
LATER = f"NVRM: GPU {ADDRESS}.0: rm_init_adapter failed, device minor number 6"


@pytest.fixture
def node(make_node: MakeNode) -> Healthy:
    made = healthy(make_node("slurm_nhc"))
    made.only("gpu_driver", "gpu_count", "gpu_xid")
    return made


def lose(node: Healthy, *gpus: int) -> None:
    """nvidia-smi lists the others, with their addresses."""
    node.set_gpus(node.rows)
    answers = (node.state / "nvidia-smi.sh").read_text()
    for gpu in gpus:
        answers = answers.replace(f"{node.rows[gpu]}\\n", "").replace(f"{node.rows[gpu]}'", "'")
        answers = answers.replace(f"{gpu}, 0000000{gpu + 1}:00:00.0\\n", "")
        answers = answers.replace(f"\\n{gpu}, 0000000{gpu + 1}:00:00.0", "")
    node.fake("nvidia-smi", answers.split("\n", 1)[1], light=True)


def checks(node: Healthy, name: str) -> list[dict[str, Any]]:
    """The records of one check after another quick run."""
    node.quick()
    return [row for row in node.result("quick")["checks"] if row["check"] == name]


def count(node: Healthy) -> str:
    """What the check of the number of GPUs says."""
    (row,) = checks(node, "gpu_count")
    assert (row["verdict"], row["cure"]) == ("fail", "heal")
    return str(row["detail"])


def test_a_gpu_that_the_driver_could_not_start_is_named_with_its_words(node: Healthy) -> None:
    lose(node, GONE)
    node.kernel_log(FAILED, LATER)
    assert count(node) == f"missing {ADDRESS}, the driver says: RmInitAdapter failed! (0x24:0xffff:1220)"
    assert f"gpu_count 7 GPUs, expected 8 GPUs (missing {ADDRESS}, the driver" in node.reason()


def test_a_gpu_of_which_the_driver_says_nothing_is_named(node: Healthy) -> None:
    lose(node, GONE)
    node.kernel_log(
        f"NVRM: GPU at PCI:{ADDRESS}: GPU-00000000-1111-2222-3333-444444444444", "NVRM: GPU a0:b [7]: segfault"
    )
    assert count(node) == f"missing {ADDRESS}"


def test_a_gpu_that_fell_off_the_bus_at_probe_asks_for_another_host(node: Healthy) -> None:
    lose(node, GONE)
    node.kernel_log(OFF_AT_PROBE)
    (row,) = checks(node, "gpu_xid")
    assert (row["verdict"], row["cure"]) == ("fail", "service")
    assert row["value"] == f"XID 79 ROBUST_CHANNEL_GPU_HAS_FALLEN_OFF_THE_BUS on GPU (PCI {ADDRESS})"
    assert count(node) == f"missing {ADDRESS}, the driver says: fallen off the bus and is not responding to commands"
    assert node.reason().startswith("CycleForge health: report the host to Azure and take another VM: gpu_xid XID 79")


def test_a_gpu_that_left_the_bus_is_named_by_an_earlier_list(node: Healthy) -> None:
    node.quick()
    shutil.rmtree(node.root / f"sys/bus/pci/devices/{ADDRESS}.0")
    lose(node, GONE)
    node.kernel_log(f"NVRM: Xid (PCI:{ADDRESS}): 79, pid=7, name=x, GPU has fallen off the bus.")
    assert count(node) == f"missing {ADDRESS}, no longer on the PCI bus, the driver says: XID 79"
    assert [row["cure"] for row in checks(node, "gpu_xid")] == ["service"], "its XID counts although it is gone"
    node.write("sys/class/dmi/id/product_uuid", "another-vm\n")
    assert count(node) == "", "the list was of another VM"


def test_a_list_of_another_host_names_nothing(node: Healthy) -> None:
    """A VM that was stopped and started may come back on a host where its GPUs have other addresses."""
    node.quick()
    for place in range(8):
        here = node.root / f"sys/bus/pci/devices/{place + 1:04x}:00:00.0"
        here.rename(here.with_name(f"{place + 1:04x}:00:01.0"))
    lose(node, GONE)
    assert "no longer on the PCI bus" not in count(node)


def test_many_missing_gpus_are_two_and_a_number(node: Healthy) -> None:
    lose(node, 2, 3, 4, 5)
    assert count(node) == "missing 0003:00:00, missing 0004:00:00, and 2 more"


def test_what_nobody_can_name_is_only_counted(node: Healthy) -> None:
    shutil.rmtree(node.root / "sys/bus/pci")
    lose(node, GONE)
    assert count(node) == ""


@pytest.mark.parametrize("content", ["", "garbage\n" * 99, "# vm unknown\n$(reboot) gpu\n0007:00:00 gpu; x\n\x01\n"])
def test_a_damaged_list_is_no_obstacle(node: Healthy, content: str) -> None:
    node.write("var/lib/cycleforge/health/nvidia_devices", content)
    lose(node, GONE)
    assert count(node) == f"missing {ADDRESS}"


def test_a_healthy_node_writes_its_list_once_and_asks_for_nothing_more(node: Healthy) -> None:
    node.quick()
    file = node.root / "var/lib/cycleforge/health/nvidia_devices"
    first = (file.stat().st_ino, file.read_text())
    assert sorted(first[1].splitlines())[1:3] == ["0000:a9:00 other", "0001:00:00 gpu"]
    node.forget()
    node.quick()
    assert (file.stat().st_ino, file.read_text()) == first
    assert (len(node.calls("nvidia-smi")), len(node.calls("journalctl"))) == (1, 1)
