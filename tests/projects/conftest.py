"""Nodes for the tests of the project scripts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bed.scripts.node import Node

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
