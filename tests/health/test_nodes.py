"""What slurm_nhc's own scripts write is what the report reads: healthy, failing, with odd words, of an unknown size."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from generator.health.assess import Node, Wishes, assess
from generator.health.gather import gather
from tests.bed.scripts.healthy import Healthy, healthy
from tests.bed.scripts.node import A100
from tests.bed.scripts.node import Node as FakeNode


@pytest.fixture
def node(tmp_path: Path) -> Healthy:
    """A GPU node whose tools are fakes and whose scripts are ours."""
    (tmp_path / "node").mkdir()
    return healthy(FakeNode(tmp_path / "node", "slurm_nhc"))


def reported(node: Healthy, folder: Path) -> Node:
    """The node as the report sees its result."""
    folder.mkdir()
    shutil.copy(node.root / "var/lib/cycleforge/health/quick.json", folder)
    found = gather([str(folder)])
    assert found.problems == ()
    (seen,) = assess(found, Wishes(kinds=("quick",))).nodes
    return seen


def test_results_of_a_node_are_read(node: Healthy, tmp_path: Path) -> None:
    """Healthy; then with a GPU less, a mount less, and with a pool record of Hyper-V."""
    node.quick()
    seen = reported(node, tmp_path / "one")
    assert (seen.name, seen.vm_size, seen.state) == ("node-1", A100.lower(), "healthy")
    node.set_gpus(node.rows[:7])
    node.lose_mount()
    node.health("quick")
    seen = reported(node, tmp_path / "two")
    assert seen.state == "failed"
    texts = [finding.text for finding in seen.of("failure")]
    assert any("7" in text and "expected 8" in text for text in texts)
    assert any("/shared is not mounted" in text for text in texts)


def test_words_of_a_tool_do_not_break_the_result(node: Healthy, tmp_path: Path) -> None:
    """Quotes, backslashes, tabs and escapes."""
    node.fake("nvidia-smi", r"""printf 'fell "off" the \\ bus\t\033[2J ü\n'; exit 1""")
    node.health("quick")
    assert reported(node, tmp_path / "one").state in ("failed", "unmeasured")


def test_a_size_without_figures_is_not_measured(tmp_path: Path) -> None:
    """The node stays in service, and the report says what nobody knows of it."""
    (tmp_path / "node").mkdir()
    node = healthy(FakeNode(tmp_path / "node", "slurm_nhc"), "Standard_ND999_v9")
    node.health("quick")
    seen = reported(node, tmp_path / "one")
    assert seen.vm_size == "standard_nd999_v9"
    assert "the catalogue has no figures for this VM size" in [finding.detail for finding in seen.of("unmeasured")]
