"""Nodes for the tests of the project scripts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.bed.scripts import blockdevices
from tests.bed.scripts.node import Node
from tests.projects import nvme

MakeNode = Callable[..., Node]


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
