"""The scheduler's program for drained VMs: which it hands back, when, what it says, and what it leaves alone.

The lines are those of `scontrol --oneliner show node` of Slurm 22.05 and 24.11, with SLURM_TIME_FORMAT=%s.
tests/cloud/test_drained_nodes.py runs it on Slurm 24.11, whose nodes come and go.
"""

from __future__ import annotations

import re
import subprocess
import time

import pytest

from tests.bed.scripts.node import Node
from tests.projects.conftest import MakeNode

HOUR = 3600
SCONTROL = """
[[ "$SLURM_TIME_FORMAT" == %s || "$1" == update ]] || { echo "times in words" >&2; exit 9; }
[[ ! -e "$FAKE_STATE/silent" ]] || exit 1
case "$*" in
    "show config") cat "$FAKE_STATE/config" ;;
    "--oneliner show node") cat "$FAKE_STATE/nodes" ;;
    "--oneliner show node "*)
        file="$FAKE_STATE/nodes"
        [[ ! -e "$FAKE_STATE/later" ]] || file="$FAKE_STATE/later"
        grep "^NodeName=${*: -1} " "$file" ;;
    "show hostnames "*) tr , '\\n' <<<"${*: -1}" ;;
    update*) [[ ! -e "$FAKE_STATE/refuses" ]] ;;
    *) exit 8 ;;
esac
"""
OURS = "CycleForge health: gpu_count 7 GPUs, expected 8 GPUs"


def row(name: str, reason: str = OURS, hours: float = 30, state: str = "IDLE+CLOUD+DRAIN", gres: str = "gpu:8") -> str:
    """One node; `hours` ago somebody set the reason."""
    since = int(time.time() - hours * HOUR)
    words = f" Reason={reason} [root@{since}] Comment=(null)" if reason else ""
    return f"NodeName={name} Arch=x86_64 Gres={gres} State={state} Partitions=hpc,all BootTime=1{words}\n"


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    node = make_node("slurm_nhc")
    limit(node, 24)
    node.fake("scontrol", SCONTROL)
    (node.state / "config").write_text("SuspendExcNodes         = (null)\nSuspendExcParts         = (null)\n")
    return node


def limit(node: Node, hours: int) -> None:
    """What a converge writes."""
    node.write("etc/cycleforge/release.conf", f"hours={hours}\n")


def run(node: Node, *rows: str, verb: str = "run") -> str:
    """One run over these nodes; its output."""
    if rows:
        (node.state / "nodes").write_text("".join(rows))
    done = release(node, verb)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def release(node: Node, verb: str) -> subprocess.CompletedProcess[str]:
    return node.command(str(node.spec / "files/release.sh"), verb)


def handed_back(node: Node) -> list[str]:
    start, end = "scontrol update NodeName=", " State=POWER_DOWN"
    calls = node.calls("scontrol update")
    assert all(call.startswith(start) and call.endswith(end) for call in calls)
    return [call.removeprefix(start).removesuffix(end) for call in calls]


def test_what_was_drained_for_longer_than_the_limit_is_handed_back_with_its_cost(node: Node) -> None:
    output = run(node, row("a", hours=24.01), row("b", hours=23.9), row("c", hours=30, gres="gpu:h100:4(S:0-1)"))
    assert handed_back(node) == ["a", "c"]
    assert f"a: handed back after 24.0 h, 192.0 GPU hours drained: {OURS}" in output
    assert "c: handed back after 30.0 h, 120.0 GPU hours drained" in output
    assert "b: drained for 23.9 h, 191.2 GPU hours; handed back in 0.1 h unless it heals; at once: " in output
    assert "sudo scontrol update NodeName=b State=POWER_DOWN" in output


LEFT = {
    "an-administrators": ("disk 3 is sick", "IDLE+CLOUD+DRAIN", None),
    "another-tools": ("Healthcheck failures. Run 'health -s'", "IDLE+CLOUD+DRAIN", None),
    "a-replacement-of-ours": ("CycleForge replace: hpc.0123456789ab", "IDLE+CLOUD+DRAIN", None),
    "not-drained": (OURS, "IDLE+CLOUD", None),
    "powered-down": (OURS, "IDLE+CLOUD+DRAIN+POWERED_DOWN", None),
    "on-its-way-down": (OURS, "IDLE+CLOUD+DRAIN+POWER_DOWN", None),
    "on-its-way-up": (OURS, "IDLE+CLOUD+DRAIN+POWERING_UP", None),
    "busy": (OURS, "MIXED+CLOUD+DRAIN", "it has jobs"),
    "job-is-ending": (OURS, "IDLE+CLOUD+DRAIN+COMPLETING", "it is COMPLETING"),
    "a-persons-reservation": (OURS, "IDLE+CLOUD+DRAIN+MAINTENANCE", "it is MAINTENANCE"),
    "boots-again": (OURS, "IDLE+CLOUD+DRAIN+REBOOT_ISSUED", "it is REBOOT_ISSUED"),
    "evidence": (
        "CycleForge health: report the host to Azure and take another VM: gpu_xid XID 79",
        "IDLE+CLOUD+DRAIN",
        "the VM is the evidence: report it to Azure first",
    ),
}
"""Name of a node: its reason, its state, and what is said of it."""


def test_what_is_left_alone_whatever_its_age(node: Node) -> None:
    rows = [row(name, reason, state=state) for name, (reason, state, _) in LEFT.items()]
    output = run(node, *rows, row("from-tomorrow", hours=-24))
    assert handed_back(node) == []
    said = dict(re.findall(r" ([a-z-]+): drained for [^;]*; ([^;]*);", output))
    assert said == {name: why for name, (_, _, why) in LEFT.items() if why} | {
        "from-tomorrow": "handed back in 24.0 h unless it heals"
    }


@pytest.mark.parametrize("config", ["SuspendExcNodes = b,a:1", "SuspendExcParts = other,all"])
def test_what_somebody_keeps_is_left_alone(node: Node, config: str) -> None:
    (node.state / "config").write_text(config + "\n")
    assert "a: drained for 30.0 h, 240.0 GPU hours; it is kept" in run(node, row("a"))
    assert handed_back(node) == []


def test_a_node_whose_vm_does_not_answer_is_handed_back_too(node: Node) -> None:
    """SuspendExcStates=DRAIN keeps it as well: its state has DRAIN beside DOWN."""
    run(node, row("a", state="DOWN*+CLOUD+DRAIN", gres="(null)"))
    assert handed_back(node) == ["a"]


def test_a_reason_that_changes_begins_no_new_wait(node: Node) -> None:
    run(node, row("a", hours=23.5))
    run(node, row("a", OURS + " [again]", hours=0.1))
    record = node.root / "var/lib/cycleforge/release/a"
    first, said = map(int, record.read_text().split())
    record.write_text(f"{first - HOUR} {said}\n")
    run(node)
    assert handed_back(node) == ["a"]
    assert not record.exists()


def test_a_node_that_healed_begins_anew_at_its_next_drain(node: Node) -> None:
    run(node, row("a", hours=23.9))
    run(node, row("a", "", state="IDLE+CLOUD"))
    assert "a: drained for 0.0 h" in run(node, row("a", hours=0))
    assert handed_back(node) == []


def test_it_says_what_a_wait_costs_once_a_day(node: Node) -> None:
    limit(node, 0)
    assert "a: drained for 30.0 h, 240.0 GPU hours; nobody hands it back but a person" in run(node, row("a"))
    assert run(node) == ""
    record = node.root / "var/lib/cycleforge/release/a"
    first, said = map(int, record.read_text().split())
    record.write_text(f"{first} {said - 24 * HOUR}\n")
    assert "a: drained for" in run(node)
    assert handed_back(node) == []


def test_what_has_changed_since_the_look_is_left_as_it_is(node: Node) -> None:
    later = {
        "resumed": row("resumed", "", state="ALLOCATED+CLOUD"),
        "drained-by-a-person": row("drained-by-a-person", "mine now"),
        "by-the-other-scheduler": row("by-the-other-scheduler", state="IDLE+CLOUD+DRAIN+POWER_DOWN"),
        "gone": "",
    }
    (node.state / "later").write_text("".join(later.values()))
    output = run(node, *map(row, later))
    assert output.count(": changed meanwhile, left as it is") == len(later)
    assert handed_back(node) == []


def test_a_refusal_is_said_and_tried_again(node: Node) -> None:
    (node.state / "refuses").touch()
    assert "a: Slurm refuses State=POWER_DOWN" in run(node, row("a"))
    (node.state / "refuses").unlink()
    assert "a: handed back" in run(node)


def test_nothing_is_done_while_slurm_does_not_answer(node: Node) -> None:
    run(node, row("a", hours=1))
    (node.state / "silent").touch()
    done = release(node, "run")
    assert done.returncode == 1
    assert "slurmctld does not answer; no node was handed back" in done.stderr
    assert handed_back(node) == []
    # What it knows about the wait is not lost: the share may be back in a minute.
    assert (node.root / "var/lib/cycleforge/release/a").exists()


def test_a_second_run_leaves_the_first_alone(node: Node) -> None:
    lock = node.root / "run/cycleforge/release.lock"
    lock.parent.mkdir(parents=True)
    with subprocess.Popen(["flock", str(lock), "sleep", "60"]) as other:
        while subprocess.run(["flock", "--nonblock", str(lock), "true"], check=False).returncode == 0:
            time.sleep(0.02)
        try:
            assert "another run is going" in run(node, row("a"))
        finally:
            subprocess.run(["pkill", "--parent", str(other.pid)], check=False)
    assert handed_back(node) == []


def test_the_list_has_every_drained_node_and_the_sum(node: Node) -> None:
    rows = (row("a"), row("b", "disk 3 is sick", hours=10), row("c", hours=4), row("d", state="IDLE+CLOUD"))
    output = run(node, *rows, verb="list")
    assert output.splitlines() == [
        f"a: drained for 30.0 h, 240.0 GPU hours; handed back in 0.0 h: {OURS}",
        "b: drained for 10.0 h, 80.0 GPU hours; not ours: who drained it resumes it: disk 3 is sick",
        f"c: drained for 4.0 h, 32.0 GPU hours; handed back in 20.0 h: {OURS}",
        "3 drained nodes have a VM; 352.0 GPU hours so far",
    ]
    assert handed_back(node) == []


def test_a_converge_repeats_nothing_and_takes_it_away_when_switched_off(node: Node) -> None:
    node.attribute("slurm.role", "scheduler")
    node.attribute("cycleforge.health.hand_back_h", "24")
    for kind in ("prolog", "epilog"):
        (node.root / f"etc/slurm/{kind}.d").mkdir(parents=True)
    (node.root / "sched").mkdir()
    node.ok("10-hooks.sh")
    assert "drained VMs: 0 files changed" in node.ok("10-hooks.sh")
    assert node.read("etc/cycleforge/release.conf") == "hours=24\n"
    assert (node.root / "opt/cycleforge/slurm_nhc/release.sh").stat().st_mode & 0o777 == 0o755
    units = node.root / "etc/systemd/system"
    assert (units / "cycleforge-release.timer").exists()
    node.attribute("cycleforge.health.enabled", "false")
    node.ok("10-hooks.sh")
    assert list(units.iterdir()) == []
    assert any("disable --now cycleforge-release.timer" in call for call in node.calls("systemctl"))


def test_the_words_of_a_report_are_those_that_nodes_write(node: Node) -> None:
    """It knows a fault that Azure has to hear of by the beginning of its reason; other cures have other beginnings."""
    loop = 'for cure in reset reboot service; do cure_words "$cure"; echo "$REPLY"; done'
    words = f'CF_ROOT="" CF_STATE_DIR=/x; . "$1/standing.sh"; {loop}'
    said = subprocess.run(
        ["bash", "-c", words, "bash", str(node.spec / "files")], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    output = run(node, *(row(f"n{place}", f"CycleForge health: {cure}: gpu_xid") for place, cure in enumerate(said)))
    assert handed_back(node) == ["n0", "n1"]
    assert "n2: drained for 30.0 h, 240.0 GPU hours; the VM is the evidence" in output
