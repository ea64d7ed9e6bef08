"""slurm_policy without a Slurm: the attributes become rows, the rows of partitions become lines of azure.conf.

The real slurmdbd and slurmctld are in tests/cluster/test_policy.py.
"""

from __future__ import annotations

import pytest

from generator.plan.policy import policy_attributes
from tests.bed.plans import plan_from, slurm_of
from tests.bed.scripts.node import Node
from tests.projects.conftest import MakeNode

AZURE = """\
# Note: CycleCloud reported a RealMemory of 16384 but we reduced it
PartitionName=hpc Nodes=lab-hpc-[1-2] Default=NO DefMemPerCPU=3891 MaxTime=INFINITE State=UP
Nodename=lab-hpc-[1-2] Feature=cloud STATE=CLOUD CPUs=4 ThreadsPerCore=1 RealMemory=15564
Nodeset=dynns Feature=dyn
PartitionName=dyn Nodes=dynns Default=YES
# The following partition has a limit of 0
# PartitionName=none Nodes= Default=NO DefMemPerCPU=3891 MaxTime=INFINITE State=UP
"""
"""As azslurm writes it: a static, a dynamic and a partition without quota.

Source: azure-slurm/slurmcc/cli.py in Azure/cyclecloud-slurm at 4.0.9
"""
LIMITS = """
partition hpc MaxTime=3-00:00:00
partition hpc PriorityTier=2
overlay urgent over=hpc,dyn
overlay urgent PriorityTier=10
overlay nowhere over=none
"""


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    made = make_node("slurm_policy")
    made.attribute("slurm.role", "scheduler")
    made.write("sched/lab/azure.conf", AZURE)
    (made.root / "etc/slurm").mkdir()
    (made.root / "etc/slurm/azure.conf").symlink_to(made.root / "sched/lab/azure.conf")
    made.link("chown")
    made.fake("sacctmgr", "exit 1")
    made.fake("scontrol", "exit 1")
    return made


def policy(node: Node, text: str, *words: str) -> str:
    """Run policy.sh with these rows; its output, whatever it returns."""
    node.write("etc/cycleforge/policy.rows", text.strip() + "\n")
    result = node.command(str(node.spec / "files/policy.sh"), *words)
    return f"{result.stdout}{result.stderr}[{result.returncode}]"


def edited(node: Node, text: str) -> list[str]:
    """The lines of azure.conf after the step before slurmctld starts, without comments."""
    assert policy(node, text, "partitions").endswith("[0]")
    return [line for line in node.read("sched/lab/azure.conf").splitlines() if not line.startswith("#")]


def test_the_line_of_azslurm_gets_the_limits_and_a_further_partition_its_nodes(node: Node) -> None:
    lines = edited(node, LIMITS)
    assert "PartitionName=hpc Nodes=lab-hpc-[1-2] Default=NO DefMemPerCPU=3891 State=UP MaxTime=3-00:00:00 " \
        "PriorityTier=2" in lines  # fmt: skip
    assert "PartitionName=dyn Nodes=dynns Default=YES" in lines
    assert lines[-1] == "PartitionName=urgent Nodes=lab-hpc-[1-2],dynns Default=NO State=UP PriorityTier=10"


def test_a_partition_without_nodes_is_left_out_because_slurmctld_would_not_start_with_it(node: Node) -> None:
    assert not [line for line in edited(node, LIMITS) if "nowhere" in line]
    assert "partition nowhere is left out: azslurm wrote none of none" in policy(node, LIMITS, "partitions")


def test_a_second_run_changes_nothing_and_fewer_rows_give_back_what_azslurm_wrote(node: Node) -> None:
    edited(node, LIMITS)
    before = node.files()
    assert "written" not in policy(node, LIMITS, "partitions")
    assert node.files()["sched/lab/azure.conf"] == before["sched/lab/azure.conf"]
    edited(node, "partition hpc MaxTime=60")
    assert "PriorityTier" not in node.read("sched/lab/azure.conf")
    edited(node, "reservation x exists=Nodes=ALL")
    assert node.read("sched/lab/azure.conf") == AZURE


def test_what_azslurm_writes_anew_is_edited_anew(node: Node) -> None:
    edited(node, LIMITS)
    node.write("sched/lab/azure.conf", AZURE.replace("[1-2]", "[1-9]"))
    assert edited(node, LIMITS)[-1].startswith("PartitionName=urgent Nodes=lab-hpc-[1-9],dynns ")


@pytest.mark.parametrize("row", ["qos a priority=$(id)", "qos a b c=1", "shell x y=1", "qos a;b x=1", "qos a x=1 y=2"])
def test_what_is_no_row_reaches_no_command(node: Node, row: str) -> None:
    assert "line 2 of" in (said := policy(node, f"qos a exists=yes\n{row}", "load"))
    assert "is no row of a policy" in said
    assert node.calls("sacctmgr") == []


def test_while_slurm_does_not_answer_the_timer_tries_again(node: Node) -> None:
    assert policy(node, "qos a exists=yes", "load").endswith("[75]")
    assert "record" not in " ".join(node.files())


def test_usage_is_shown_for_what_is_no_command(node: Node) -> None:
    assert "policy.sh apply FILE [--dry-run]" in (said := policy(node, LIMITS, "undo"))
    assert said.endswith("[2]")


# ---------------------------------------------------------------- installation


def assign(node: Node, *changes: str) -> int:
    """The attributes of a definition's scheduler; how many there are."""
    attributes = policy_attributes(slurm_of(plan_from(*changes)).policy)
    for key, value in attributes.items():
        node.attribute(key, value)
    return len(attributes)


USERS = ["ccadmin", *(f"u{number}" for number in range(60))]
MANY = f"""
slurm:
  accounting: {{type: new}}
  policy:
    accounts: [{{name: research}}]
    users: [{", ".join(f"{{name: {name}, accounts: [research]}}" for name in USERS)}]
"""


def test_the_parts_of_the_attributes_become_the_rows_of_the_plan(node: Node) -> None:
    assert assign(node, MANY) > 1
    said = node.ok("10-policy.sh")
    planned = slurm_of(plan_from(MANY)).policy
    assert planned is not None
    assert node.read("etc/cycleforge/policy.rows").splitlines() == [row.text for row in planned.rows]
    assert f"{len(planned.rows)} rows" in said
    assert "0 files changed" in node.ok("10-policy.sh")


def test_a_part_that_is_missing_stops_instead_of_half_a_policy(node: Node) -> None:
    assign(node, MANY)
    node.attribute("cycleforge.policy.2", "")
    assert "attribute cycleforge.policy.2 is ''" in node.fails("10-policy.sh")
    assert not (node.root / "etc/cycleforge/policy.rows").exists()


def test_slurmctld_asks_for_the_partitions_before_every_start(node: Node) -> None:
    assign(node, MANY)
    node.ok("10-policy.sh")
    drop_in = node.read("etc/systemd/system/slurmctld.service.d/20-cycleforge-slurm_policy.conf")
    assert "ExecStartPre=-+/bin/bash /opt/cycleforge/slurm_policy/policy.sh partitions\n" in drop_in
    assert [line for line in node.calls("systemctl") if "cycleforge-policy.timer" in line and "restart" in line]


def test_a_scheduler_without_rows_loses_what_an_earlier_policy_left(node: Node) -> None:
    assign(node, MANY)
    node.ok("10-policy.sh")
    node.attribute("cycleforge.policy.1", "")
    assert "3 files removed" in node.ok("10-policy.sh")
    assert not list((node.root / "etc/systemd").rglob("*policy*"))


def test_the_second_scheduler_starts_no_timer(node: Node) -> None:
    assign(node, MANY)
    node.attribute("slurm.is_primary_scheduler", "False")
    node.ok("10-policy.sh")
    assert not [line for line in node.calls("systemctl") if "timer" in line]


@pytest.mark.parametrize("role", ["login", "execute"])
def test_other_nodes_do_nothing(node: Node, role: str) -> None:
    assign(node, MANY)
    node.attribute("slurm.role", role)
    assert "the scheduler applies the policy" in node.ok("10-policy.sh")
    assert not (node.root / "etc/cycleforge").exists()
