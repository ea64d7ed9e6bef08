"""What a node leaves for nodes.sh on the scheduler, and the programs that the scheduler gets."""

from __future__ import annotations

import pytest

from tests.bed.scripts.node import Node
from tests.projects.conftest import MakeNode

OLD, NEW = "hpc.000000000001", "hpc.000000000002"
RECORD = "sched/lab/cycleforge/nodes/lab-hpc-3"


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    """An execute node whose Slurm is installed and not started."""
    node = make_node("misc_ubuntu")
    node.attribute("cycleforge.generation", OLD)
    (node.root / "sched/lab/prolog.d").mkdir(parents=True)
    (node.root / "etc/slurm").mkdir(parents=True)
    (node.root / "etc/slurm/prolog.d").symlink_to(node.root / "sched/lab/prolog.d")
    node.write("etc/default/slurmd", "SLURMD_OPTIONS='-b -N lab-hpc-3'\n")
    return node


def test_a_node_leaves_generation_and_start_in_the_folder_of_the_cluster(node: Node) -> None:
    node.ok("70-generation.sh")
    generation, since = node.read(RECORD).split()
    assert generation == OLD
    assert since.isdecimal()


def test_a_node_is_as_old_as_its_disk(node: Node) -> None:
    """A converge that reads other attributes makes no old node new; a new OS disk does."""
    node.ok("70-generation.sh")
    before = node.read(RECORD)
    node.attribute("cycleforge.generation", NEW)
    node.ok("70-generation.sh")
    assert node.read(RECORD) == before
    (node.root / RECORD).unlink()
    node.ok("70-generation.sh")
    assert node.read(RECORD) == before
    (node.root / "var/lib/cycleforge/generation").unlink()
    node.ok("70-generation.sh")
    assert node.read(RECORD).startswith(NEW)


def test_a_node_works_where_it_cannot_leave_its_record(node: Node) -> None:
    (node.root / "sched/lab/cycleforge").write_text("not a folder")
    assert "cannot be written" in node.ok("70-generation.sh")
    (node.root / "etc/slurm/prolog.d").unlink()
    assert "prolog.d is missing" in node.ok("70-generation.sh")


def test_an_older_template_names_no_generation(node: Node) -> None:
    (node.state / "attributes/cycleforge.generation").unlink()
    assert "earlier CycleForge" in node.ok("70-generation.sh")
    assert not (node.root / RECORD).exists()


@pytest.mark.parametrize(("role", "has"), [("scheduler", True), ("login", False), ("execute", False)])
def test_only_the_scheduler_gets_the_programs(node: Node, role: str, has: bool) -> None:
    node.attribute("slurm.role", role)
    node.ok("70-generation.sh")
    assert (node.root / "opt/cycleforge/misc_ubuntu/nodes.sh").exists() == has
    assert (node.root / "opt/cycleforge/misc_ubuntu/cycleforge.sh").exists() == has
    assert (node.root / RECORD).exists() == (role == "execute")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["replace"], "no generation is given"),
        (["replace", "hpc"], "'hpc' is not a generation"),
        (["replace", NEW, "--at-once", "0"], "--at-once needs a whole number"),
        (["replace", NEW, "--started-before", "yesterdayish"], "is not a time"),
        (["renew", NEW], "expected list, replace or release"),
    ],
)
def test_wrong_words_are_refused_before_slurm_is_asked(node: Node, words: list[str], says: str) -> None:
    node.attribute("slurm.role", "scheduler")
    node.ok("70-generation.sh")
    node.fake("scontrol", "exit 1")
    done = node.command(str(node.root / "opt/cycleforge/misc_ubuntu/nodes.sh"), *words)
    assert done.returncode == 2
    assert says in done.stderr
    assert not node.calls("scontrol")


def test_a_controller_that_does_not_answer_changes_nothing(node: Node) -> None:
    node.attribute("slurm.role", "scheduler")
    node.ok("70-generation.sh")
    (node.root / "run").mkdir()
    node.fake("scontrol", "exit 1")
    done = node.command(str(node.root / "opt/cycleforge/misc_ubuntu/nodes.sh"), "replace", NEW)
    assert done.returncode == 1
    assert "slurmctld does not answer" in done.stderr
    assert not node.calls("scontrol update")
