"""Nodes for the tests of the project scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.bed.scripts import blockdevices
from tests.bed.scripts.node import A100, Node
from tests.projects import nvme

MakeNode = Callable[..., Node]
NDV4_SCRIPTS = ("20-gpu.sh", "30-limits.sh", "40-nfs.sh", "50-nccl.sh", "60-pmix.sh")
"""Those of misc_ndv4 beside the one for the disks."""


@pytest.fixture
def make_node(tmp_path: Path) -> MakeNode:
    """Make any number of nodes: `make_node("misc_ndv4")`."""
    count = 0

    def make(project: str) -> Node:
        nonlocal count
        count += 1
        folder = tmp_path / f"node{count}"
        folder.mkdir()
        return Node(folder, project)

    return make


@pytest.fixture(scope="module")
def block_layer() -> Iterator[str]:
    """What the fakes of the block layer do."""
    with blockdevices.serving() as body:
        yield body


@pytest.fixture
def disk_node(make_node: MakeNode, block_layer: str) -> Node:
    """A node of misc_ndv4 on which a block layer answers; disks are attached with `nvme.attach`."""
    made = make_node("misc_ndv4")
    made.vm_size("Standard_Unknown_v9")
    made.link("sync")
    (made.state / "active/cycleforge-nvme.service").write_text("active")
    for tool in nvme.TOOLS:
        made.fake(tool, block_layer.replace("NAME", tool), light=True)
    return made


@pytest.fixture
def gpu_node(make_node: MakeNode) -> Node:
    """An A100 node of misc_ndv4."""
    made = make_node("misc_ndv4")
    made.vm_size(A100)
    made.write("dev/nvidia-uvm", "")
    made.write("sys/class/net/eth0/mtu", "1500\n")
    (made.state / "active/cycleforge-gpu.service").write_text("active")
    return made
