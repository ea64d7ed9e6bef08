"""misc_ndv4: what every job's NCCL is told of the node, and nothing of one benchmark."""

from __future__ import annotations

import pytest

from tests.bed.scripts.node import A100, H100, Node


@pytest.fixture
def node(gpu_node: Node) -> Node:
    return gpu_node


def variables_of(node: Node) -> dict[str, str]:
    return dict(line.split("=", 1) for line in node.read("etc/cycleforge/nccl.env").splitlines() if "=" in line)


def test_nccl_files_of_an_a100(node: Node) -> None:
    node.write("opt/microsoft/ndv4-topo.xml", "<system/>")
    (node.root / "etc/enroot").mkdir()
    (node.root / "usr/local/nccl-rdma-sharp-plugins/lib").mkdir(parents=True)
    node.ok("50-nccl.sh")
    variables = variables_of(node)
    assert variables == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "NCCL_IB_PCI_RELAXED_ORDERING": "1", "NCCL_IGNORE_CPU_AFFINITY": "1",
        "NCCL_SOCKET_IFNAME": "eth0", "NCCL_TOPO_FILE": "/opt/microsoft/ndv4-topo.xml",
    }  # fmt: skip
    assert node.read("etc/enroot/environ.d/50-cycleforge-nccl.env").splitlines() == [
        f"{k}={v}" for k, v in sorted(variables.items())
    ]
    assert node.read("etc/enroot/mounts.d/50-cycleforge-nccl.fstab").startswith("/opt/microsoft /opt/microsoft none ")
    assert "NCCL_TOPO_FILE=/opt/microsoft/ndv4-topo.xml" in node.read("etc/nccl.conf")
    shown = node.command(
        "-c",
        '. "$CYCLEFORGE_ROOT/etc/cycleforge/nccl.sh"; echo "$NCCL_TOPO_FILE $LD_LIBRARY_PATH"',
        LD_LIBRARY_PATH="/a:/b",
    )
    assert shown.stdout == "/opt/microsoft/ndv4-topo.xml /usr/local/nccl-rdma-sharp-plugins/lib:/a:/b\n"


def test_the_other_name_of_the_topology_file_is_found(node: Node) -> None:
    node.vm_size(H100)
    node.write("opt/microsoft/ndv5/topo.xml", "<system/>")
    node.ok("50-nccl.sh")
    assert "NCCL_TOPO_FILE=/opt/microsoft/ndv5/topo.xml" in node.read("etc/cycleforge/nccl.env")


def test_a_missing_topology_file_is_reported_and_not_named_to_nccl(node: Node) -> None:
    output = node.ok("50-nccl.sh")
    assert "the image has no /opt/microsoft/ndv4-topo.xml" in output
    assert "NCCL_TOPO_FILE" not in node.read("etc/cycleforge/nccl.env")


def test_an_interface_that_does_not_exist_is_reported_and_not_named_to_nccl(node: Node) -> None:
    """NCCL ends every job otherwise."""
    (node.root / "sys/class/net/eth0/mtu").unlink()
    (node.root / "sys/class/net/eth0").rmdir()
    assert "this node has no interface eth0" in node.ok("50-nccl.sh")
    assert "NCCL_SOCKET_IFNAME" not in variables_of(node)


def test_variables_of_one_benchmark_do_not_reach_every_job(node: Node) -> None:
    for size in (A100, H100):
        node.vm_size(size)
        node.ok("50-nccl.sh")
        assert not [
            word
            for word in ("UCX_", "OMPI_", "SHARP_", "CHANNELS", "COLLNET")
            if word in node.read("etc/cycleforge/nccl.env")
        ]


def test_the_nccl_conf_of_the_image_stays(node: Node) -> None:
    node.write("etc/nccl.conf", "NCCL_IB_PCI_RELAXED_ORDERING=1\n")
    assert "nccl.conf: the image's own stays" in node.ok("50-nccl.sh")
    assert node.read("etc/nccl.conf") == "NCCL_IB_PCI_RELAXED_ORDERING=1\n"


@pytest.mark.parametrize("size", ["Standard_D4as_v5", "Standard_Unknown_v9"])
def test_sizes_without_nccl_figures_get_nothing_and_lose_what_another_size_left(node: Node, size: str) -> None:
    (node.root / "etc/enroot").mkdir()
    before = node.content()
    node.ok("50-nccl.sh")
    assert node.content() != before
    node.vm_size(size)
    assert "no NCCL variables" in node.ok("50-nccl.sh")
    assert node.content() == before
