"""What an image can measure: the tools that Azure's HPC images bring, by architecture."""

from __future__ import annotations

import pytest

from generator import catalog
from generator.plan.image_tools import missing_tools

UBUNTU, CUSTOM, PLAIN = "cycle.image.ubuntu24", "/subscriptions/x/image", "canonical:ubuntu-24_04-lts:server:latest"
COPIES = ("gpu_copy_to_device", "gpu_copy_from_device", "gpu_copy_peer")


def missing(size: str, image: str) -> dict[str, tuple[str, ...]] | None:
    found = missing_tools(catalog.vm_size(size), image)
    return None if found is None else {each.check: each.tools for each in found}


@pytest.mark.parametrize(
    "size",
    ["Standard_ND96isr_H100_v5", "Standard_ND96isr_H200_v5", "Standard_ND96asr_v4", "Standard_ND128isr_GB300_v6"],
)
def test_the_default_image_has_a_tool_for_every_deep_check(size: str) -> None:
    assert missing(size, UBUNTU) == {}


def test_the_images_of_grace_have_nvbandwidth_and_no_azure_checks() -> None:
    """The container is not on them (Azure/azhpc-images: distros/ubuntu24.04/install.sh), the tool is only there."""
    rows = catalog.health_tests().tools
    assert rows["nvbandwidth"].arch == ("aarch64",)
    assert rows["aznhc"].arch == ("x86_64",)


def test_a_tool_of_the_other_architecture_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("generator.plan.image_tools._tools_of", lambda _size, _image: ("nvbandwidth", "dcgm"))
    x86, grace = missing("Standard_ND96isr_H100_v5", UBUNTU), missing("Standard_ND128isr_GB300_v6", UBUNTU)
    assert x86 is not None
    assert grace is not None
    assert set(COPIES) <= set(x86)
    assert not set(COPIES) & set(grace)


def test_a_plain_image_has_none() -> None:
    found = missing("Standard_ND96isr_H200_v5", PLAIN)
    assert found is not None
    assert set(found) == {*COPIES, "nccl_all_reduce", "nccl_loopback", "gpu_diagnostic", "ib_write"}
    assert found["nccl_all_reduce"] == ("aznhc",), "its floor was measured in the container"
    assert found["nccl_loopback"] == ("nccl-tests", "aznhc"), "no floor: either will do"
    host = missing("Standard_ND96isr_H100_v5", PLAIN)
    assert host is not None
    assert host["nccl_all_reduce"] == ("nccl-tests",), "its floor was measured on the host"


def test_nothing_is_said_of_an_image_that_nobody_knows() -> None:
    assert missing("Standard_ND96isr_H100_v5", CUSTOM) is None
    assert missing("Standard_ND96isr_H100_v5", "cycle.image.sles15-hpc") is None
    assert missing("Standard_ND128isr_GB300_v6", "almalinux9") is None, "it does not run there at all"


def test_sizes_with_infiniband_and_no_gpus_need_stream_and_perftest() -> None:
    assert missing("Standard_HB176rs_v4", UBUNTU) == {}
    assert missing("Standard_HB176rs_v4", PLAIN) == {"cpu_stream": ("aznhc",), "ib_write": ("perftest", "aznhc")}
    assert missing("Standard_HC44rs", PLAIN) == {"ib_write": ("perftest", "aznhc")}, "nobody has published its STREAM"


def test_sizes_without_floors_need_nothing() -> None:
    assert missing("Standard_D4as_v5", PLAIN) == {}


def test_the_rocm_images_have_what_mi300x_nodes_measure_with() -> None:
    """Source: Azure/azhpc-images components/install_rocm.sh, install_rccl.sh and install_doca.sh."""
    size = "Standard_ND96isr_MI300X_v5"
    for image in catalog.vm_size(size).images:
        assert missing(size, image) == {}, image
    assert missing(size, PLAIN) == {
        "gpu_copies": ("rocm-bandwidth-test",), "rccl_all_reduce": ("rccl-tests",), "ib_write": ("perftest", "aznhc"),
    }  # fmt: skip
    assert missing(size, UBUNTU) is None, "NVIDIA's driver: the nodes do not work at all, which E0405 says"


def test_an_image_of_another_generation_is_not_asked_for_tools() -> None:
    assert missing("Standard_ND40rs_v2", UBUNTU) is None, "V100 needs a driver of its own"
    assert missing("Standard_ND40rs_v2", catalog.vm_size("Standard_ND40rs_v2").images[0]) == {}
