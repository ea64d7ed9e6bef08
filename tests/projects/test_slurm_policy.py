"""slurm_policy without a Slurm: the attributes become rows, the rows of partitions become lines of azure.conf.

The real slurmdbd and slurmctld are in tests/cloud/test_policy.py.
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


# ---------------------------------------------------------------- QoS that a partition names

NAMED = """
qos cap exists=yes
qos cap maxtresperuser=gres/gpu=8
qos unused exists=yes
partition hpc AllowQos=normal,cap
partition hpc MaxTime=60
overlay urgent over=hpc
overlay urgent QOS=cap
"""
SLURMCTLD = """
case "$*" in
    ping) [[ -e "${ROOT}/up" ]] ;;
    *assoc_mgr*)
        printf 'Current Association Manager state\n\nQOS Records\n\n'
        while read -r name; do printf 'QOS=%s(1)\n    UsageRaw=0.000000\n' "${name}"; done <"${ROOT}/up"
        ;;
    reconfigure)
        [[ ! -e "${ROOT}/refuses" ]] || { echo 'slurm_reconfigure error: Unspecified error' >&2; exit 1; }
        ;;
    *) exit 1 ;;
esac
"""
"""`up` has the QoS that it knows. The texts are those of Slurm 22.05 and 26.05."""
SLURMDBD = """
[[ -e "${ROOT}/qos" ]] || { echo 'sacctmgr: error: Sending PersistInit msg: Connection refused' >&2; exit 1; }
case "$*" in
    *'show qos format=name') cat "${ROOT}/qos" ;;
    *'show qos where name='*)
        name="${5#name=}"
        if grep -qx "${name}" "${ROOT}/qos"; then echo "${name}|${name}"; fi
        ;;
    *'add qos '*) echo "${@: -1}" >>"${ROOT}/qos" ;;
    *'show cluster'*) echo lab ;;
    *) exit 1 ;;
esac
"""
"""`qos` has the QoS of slurmdbd, which is away without that file."""


@pytest.fixture
def slurm(node: Node) -> Node:
    """A scheduler before the first start of its slurmctld: slurmdbd has what every database has."""
    node.fake("scontrol", f"ROOT={node.root}\n{SLURMCTLD}")
    node.fake("sacctmgr", f"ROOT={node.root}\n{SLURMDBD}")
    node.write("qos", "normal\n")
    return node


def named(node: Node) -> tuple[bool, bool, bool]:
    """Whether azure.conf names the QoS of the partition, all of them, and that of the overlay."""
    text = node.read("sched/lab/azure.conf")
    return "AllowQos=" in text, "AllowQos=normal,cap" in text, "QOS=cap" in text


def test_before_the_first_start_the_qos_that_partitions_name_are_made_and_only_those(slurm: Node) -> None:
    assert policy(slurm, NAMED, "qos").endswith("[0]")
    assert slurm.read("qos").split() == ["normal", "cap"]
    edited(slurm, NAMED)
    assert named(slurm) == (True, True, True)


def test_a_partition_names_no_qos_that_slurmdbd_does_not_have(slurm: Node) -> None:
    said = policy(slurm, NAMED, "partitions")
    assert named(slurm) == (True, False, False)
    assert "MaxTime=60" in slurm.read("sched/lab/azure.conf")
    assert "partition hpc is without AllowQos=cap for now: slurmctld does not know this QoS" in said


def test_without_slurmdbd_a_start_names_what_slurmctld_knew_and_nothing_more(slurm: Node) -> None:
    (slurm.root / "qos").unlink()
    assert policy(slurm, NAMED, "qos").endswith("[75]")
    edited(slurm, NAMED)
    assert named(slurm) == (False, False, False)
    slurm.write("up", "normal\ncap\n")
    policy(slurm, NAMED, "load")
    assert named(slurm) == (True, True, True)
    (slurm.root / "up").unlink()
    slurm.write("sched/lab/azure.conf", AZURE)
    edited(slurm, NAMED)
    assert named(slurm) == (True, True, True)


def test_a_running_slurmctld_is_asked_what_it_knows_not_slurmdbd(slurm: Node) -> None:
    slurm.write("qos", "normal\ncap\n")
    slurm.write("up", "normal\n")
    policy(slurm, NAMED, "partitions")
    assert named(slurm) == (True, False, False)


def test_a_dry_run_names_the_qos_that_it_would_make(slurm: Node) -> None:
    slurm.write("up", "normal\n")
    slurm.write("new.rows", NAMED.lstrip().replace("qos cap maxtresperuser=gres/gpu=8\n", ""))
    said = slurm.command(str(slurm.spec / "files/policy.sh"), "apply", str(slurm.root / "new.rows"), "--dry-run")
    assert "qos cap added (dry run: nothing was done)" in said.stdout
    assert "is without" not in said.stderr
    assert slurm.read("qos") == "normal\n"


# ---------------------------------------------------------------- slurmctld reads azure.conf


@pytest.fixture
def running(slurm: Node) -> Node:
    slurm.write("up", "normal\n")
    return slurm


def test_a_reconfigure_that_slurmctld_refused_is_tried_again_until_it_is_done(running: Node) -> None:
    running.write("refuses", "")
    for _ in range(2):
        said = policy(running, LIMITS, "load")
        assert "ERROR: slurmctld did not read its partitions anew" in said
        assert "why: slurm_reconfigure error: Unspecified error" in said
        assert said.endswith("[1]")
    (running.root / "refuses").unlink()
    assert "slurmctld has read its partitions anew" in policy(running, LIMITS, "load")
    assert "anew" not in policy(running, LIMITS, "load")
    assert len(running.calls("scontrol reconfigure")) == 3


def test_what_azslurm_wrote_without_a_restart_reaches_slurmctld(running: Node) -> None:
    policy(running, LIMITS, "load")
    running.write("sched/lab/azure.conf", AZURE)
    assert "slurmctld has read its partitions anew" in policy(running, LIMITS, "load")


def test_a_slurmctld_that_starts_reads_azure_conf_and_a_second_one_that_runs_is_told(slurm: Node) -> None:
    edited(slurm, LIMITS)
    slurm.write("up", "normal\n")
    policy(slurm, LIMITS, "load")
    assert slurm.calls("scontrol reconfigure") == []
    slurm.write("sched/lab/azure.conf", AZURE)
    edited(slurm, LIMITS)
    policy(slurm, LIMITS, "load")
    assert slurm.calls("scontrol reconfigure") == ["scontrol reconfigure"]


@pytest.mark.parametrize(("left", "up", "stays"), [
    ((), False, False),
    (("last_config_lite", "priority_last_decay_ran"), False, False),
    ((), True, True),
    (("job_state",), False, True),
    (("assoc_usage.old",), False, True),
])  # fmt: skip
def test_what_a_first_start_that_failed_has_left_stops_no_other(
    slurm: Node, left: tuple[str, ...], up: bool, stays: bool
) -> None:
    """slurmctld 26.05 leaves clustername, and then ends for want of its state."""
    if up:
        slurm.write("up", "normal\n")
    for name in ("clustername", *left):
        slurm.write(f"sched/lab/spool/slurmctld/{name}", "lab|1")
    policy(slurm, LIMITS, "partitions")
    assert (slurm.root / "sched/lab/spool/slurmctld/clustername").exists() is stays


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
    assert "4 files removed" in node.ok("10-policy.sh")
    assert not list((node.root / "etc/systemd").rglob("*policy*"))


@pytest.mark.parametrize("first", [True, False])
def test_only_the_first_scheduler_writes_into_slurmdbd(node: Node, first: bool) -> None:
    assign(node, MANY)
    node.attribute("slurm.is_primary_scheduler", str(first))
    node.ok("10-policy.sh")
    assert bool([line for line in node.calls("systemctl") if "timer" in line]) is first
    drop_ins = sorted((node.root / "etc/systemd/system/slurmctld.service.d").iterdir())
    verbs = [path.read_text().rsplit("policy.sh ", 1)[1].strip() for path in drop_ins]
    assert verbs == (["qos", "partitions"] if first else ["partitions"])


@pytest.mark.parametrize("role", ["login", "execute"])
def test_other_nodes_do_nothing(node: Node, role: str) -> None:
    assign(node, MANY)
    node.attribute("slurm.role", role)
    assert "the scheduler applies the policy" in node.ok("10-policy.sh")
    assert not (node.root / "etc/cycleforge").exists()
