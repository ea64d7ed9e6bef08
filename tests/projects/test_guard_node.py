"""The node's half of the guard: whether it holds a drain back, on a share that answers, hangs, lies or is not there."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from generator.files import assets

FILES = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files"
LIBRARY = assets.folder("projects") / "_lib/cycleforge.sh"
HARNESS = f"""
set -euo pipefail
. {LIBRARY}
HERE={FILES}
boot_id() {{ REPLY="$BOOT"; }}
forgive_strike() {{ echo forgiven >>"$SAID.forgiven"; }}
declare -A FOUND=() NOTES=([passes]=0)
PASSES_TO_RESUME=2
if [[ -n "${{STANDS:-}}" ]]; then FOUND["quick heal"]=yes NOTES[passes]="$STANDS"; fi
. {FILES}/guard.sh
declare -A VERDICTS=() COUNTS=([not_measured]=0)
CF_CONF=([results]=/shared/results [guard]=true)
# Each line of input: the node, then CHECK=VERDICT of one run. One line of answer.
while read -r node words; do
    SLURMD_NODENAME="$node" VERDICTS=() COUNTS[not_measured]=0
    for word in $words; do
        VERDICTS["${{word%%=*}}"]="${{word#*=}}"
        if [[ "$word" == *=not_measured ]]; then COUNTS[not_measured]=1; fi
    done
    if guard_holds 2>"$SAID"; then echo held; else echo drains; fi
done
"""
NODES = tuple(f"hpc-{number}" for number in range(1, 9))
MOUNT = "mount_shared=heal"


class Share:
    """Nodes with one folder of results. Each has a root of its own, in which `shared` is a link to what has it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.guard = folder / "share/results.guard"
        self.claims = self.guard / "claims"
        self.claims.mkdir(parents=True)
        self.state(*(f"node {node} hpc" for node in NODES), partitions=("hpc 8",))

    def state(self, *nodes: str, partitions: Sequence[str]) -> None:
        lines = [*(f"partition {partition}" for partition in partitions), *nodes]
        (self.guard / "state").write_text("".join(f"{line}\n" for line in lines))

    def root(self, node: str) -> Path:
        root = self.folder / f"root-{node}"
        if not root.exists():
            (root / "var/lib/cycleforge/health").mkdir(parents=True)
            (root / "shared").symlink_to(self.guard.parent)
        return root

    def start(self, node: str, *runs: str, boot: str = "boot-1", **extra: str) -> subprocess.Popen[str]:
        root = self.root(node)
        environment = {"PATH": os.environ["PATH"], "CYCLEFORGE_ROOT": str(root), "BOOT": boot, "LC_ALL": "C",
                       "SAID": str(root / "said")} | extra  # fmt: skip
        process = subprocess.Popen(["bash", "-c", HARNESS], env=environment, stdin=subprocess.PIPE, text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # fmt: skip
        assert process.stdin is not None
        process.stdin.write("".join(f"{node} {run}\n" for run in runs))
        process.stdin.close()
        process.stdin = None
        return process

    def runs(self, node: str, *runs: str, boot: str = "boot-1", **extra: str) -> list[str]:
        """What each of these runs of one node does."""
        process = self.start(node, *runs, boot=boot, **extra)
        out, errors = process.communicate(timeout=60)
        assert process.returncode == 0, errors
        return out.split()

    def said(self, node: str) -> str:
        return (self.root(node) / "said").read_text()

    def who(self, check: str = "mount_shared", partition: str = "hpc") -> list[str]:
        return sorted(path.name for path in (self.claims / f"{check}@{partition}").glob("*"))

    def age(self, seconds: float, *nodes: str, check: str = "mount_shared", partition: str = "hpc") -> None:
        for node in nodes:
            os.utime(self.claims / f"{check}@{partition}" / node, (time.time() - seconds,) * 2)


@pytest.fixture
def share(tmp_path: Path) -> Share:
    return Share(tmp_path)


def test_the_first_two_of_eight_drain_and_the_third_does_not(share: Share) -> None:
    assert share.runs(NODES[0], MOUNT) == ["drains"]
    assert share.runs(NODES[1], MOUNT) == ["drains"]
    assert share.runs(NODES[2], MOUNT, MOUNT) == ["held", "held"]
    assert "mount_shared fails on 3 of 8 nodes of partition hpc: the cause is shared" in share.said(NODES[2])
    assert share.who() == list(NODES[:3])


def test_of_eight_in_the_same_moment_at_most_two_drain(share: Share) -> None:
    processes = [share.start(node, MOUNT) for node in NODES]
    answers = [process.communicate(timeout=60)[0].strip() for process in processes]
    assert answers.count("drains") <= 2, answers
    assert share.who() == list(NODES)


def test_a_check_that_passes_again_takes_its_claim_back_and_one_not_measured_does_not(share: Share) -> None:
    share.runs(NODES[0], MOUNT, "mount_shared=not_measured")
    assert share.who() == [NODES[0]]
    share.runs(NODES[0], "mount_shared=pass")
    assert share.who() == []
    share.runs(NODES[0], MOUNT, "cpu_threads=pass")
    assert share.who() == [], "the definition has no such check any more"


def test_a_claim_stays_as_long_as_the_prolog_refuses_jobs(share: Share) -> None:
    """The partition must not come up before: each job would be refused and drain its node."""
    share.runs(NODES[0], MOUNT)
    share.runs(NODES[0], "mount_shared=pass", STANDS="0")
    assert share.who() == [NODES[0]]
    share.runs(NODES[0], "mount_shared=pass", STANDS="1")
    assert share.who() == []


@pytest.mark.parametrize("alarm", ["mount_shared", "ib_rate"])
def test_a_drain_whose_cause_is_shared_is_no_strike(alarm: str, share: Share) -> None:
    """The first two nodes drain before anybody knows; they hear of it while they fail, or when they pass again."""
    for run in (MOUNT, "mount_shared=pass"):
        share.state(*(f"node {node} hpc" for node in NODES), partitions=("hpc 8",))
        share.runs(NODES[0], MOUNT)
        forgiven = share.root(NODES[0]) / "said.forgiven"
        assert not forgiven.exists()
        share.state(*(f"node {node} hpc" for node in NODES), partitions=(f"hpc 8 {alarm}",))
        share.runs(NODES[0], run)
        assert forgiven.exists() == (alarm == "mount_shared")
        forgiven.unlink(missing_ok=True)


def test_a_failure_that_goes_on_is_not_a_new_one(share: Share) -> None:
    """Else nodes that break one by one over days would add up."""
    for node in NODES[:2]:
        share.runs(node, MOUNT)
    share.age(700, *NODES[:2])
    share.runs(NODES[0], MOUNT)
    share.runs(NODES[1], MOUNT)
    assert share.runs(NODES[2], MOUNT) == ["drains"]


def test_hardware_and_a_fault_of_its_own_drain_at_once(share: Share) -> None:
    runs = (
        "gpu_xid=reboot", f"{MOUNT} gpu_xid=heal", f"{MOUNT} gpu_ecc_dram=heal", f"{MOUNT} gpu_driver=reboot",
        f"{MOUNT} gpu_count=service", f"{MOUNT} gpu_count=reset", f"{MOUNT} ib_rate=heal",
    )  # fmt: skip
    others = [f"other-{number}" for number in range(len(runs))]
    share.state(*(f"node {node} hpc" for node in (*NODES, *others)), partitions=(f"hpc {len(NODES) + len(others)}",))
    for node in NODES[:5]:
        share.runs(node, MOUNT)
    assert share.runs(NODES[5], MOUNT) == ["held"]
    for node, run in zip(others, runs, strict=True):
        assert share.runs(node, run) == ["drains"], run
    assert share.runs(NODES[6], MOUNT) == ["held"]


@pytest.mark.parametrize("check", ["nvidia_smi", "gpu_answers", "gpu_fabric_manager"])
def test_a_driver_broken_by_an_update_is_shared_and_a_lost_gpu_is_not(check: str, share: Share) -> None:
    """Both fail the same check; the cure tells them apart."""
    assert [share.runs(node, f"{check}=reboot") for node in NODES[:4]] == [["drains"], ["drains"], ["held"], ["held"]]
    assert [share.runs(NODES[4], f"{check}={cure}") for cure in ("service", "reset")] == [["drains"]] * 2
    assert share.who(check) == list(NODES[:4])


def test_half_of_the_partition_with_xids_drains(share: Share) -> None:
    assert [share.runs(node, "gpu_xid=reboot") for node in NODES[:4]] == [["drains"]] * 4
    assert list(share.claims.iterdir()) == []


def test_an_alarm_of_the_scheduler_holds_whatever_the_claims_say(share: Share) -> None:
    share.state(f"node {NODES[0]} hpc", partitions=("hpc 100 ib_rate mount_shared",))
    assert share.runs(NODES[0], MOUNT, "nvme_disks=heal") == ["held", "drains"]


def test_each_partition_of_the_node_must_be_held(share: Share) -> None:
    """Jobs would reach it through the other one."""
    nodes = tuple(f"node {node} hpc,all" for node in NODES)
    share.state(*nodes, partitions=("hpc 8", "all 100"))
    assert [share.runs(node, MOUNT) for node in NODES[:5]] == [["drains"]] * 5
    assert share.who(partition="all") == list(NODES[:5])
    share.state(*nodes, partitions=("hpc 8", "all 100 mount_shared"))
    assert share.runs(NODES[5], MOUNT) == ["held"]


def test_only_members_count(share: Share) -> None:
    """Claims of nodes that an administrator has drained, or that have no VM, are in the folder still."""
    for node in NODES[:4]:
        share.runs(node, MOUNT)
    share.state(*(f"node {node} hpc" for node in NODES[4:]), partitions=("hpc 4",))
    assert share.runs(NODES[4], MOUNT) == ["drains"]
    assert share.runs(NODES[0], MOUNT) == ["drains"]
    assert "hpc-1 is in no partition that the watch of the scheduler counts" in share.said(NODES[0])


@pytest.mark.parametrize(("total", "failing"), [(2, 2), (3, 2), (10, 3)])
def test_small_partitions_and_small_shares_drain(total: int, failing: int, share: Share) -> None:
    nodes = [f"a-{number}" for number in range(total)]
    share.state(*(f"node {node} hpc" for node in nodes), partitions=(f"hpc {total}",))
    assert [share.runs(node, MOUNT) for node in nodes[:failing]] == [["drains"]] * failing


def test_after_a_reboot_the_failure_is_a_new_one_and_old_claims_are_gone(share: Share) -> None:
    share.runs(NODES[0], f"{MOUNT} ib_rate=heal")
    share.age(5000, NODES[0])
    share.runs(NODES[0], MOUNT, boot="boot-2")
    assert time.time() - (share.claims / "mount_shared@hpc" / NODES[0]).stat().st_mtime < 1000
    assert share.who("ib_rate") == []


def test_a_new_vm_under_the_old_name_takes_the_claims_of_the_old_one_back(share: Share) -> None:
    share.runs(NODES[0], MOUNT)
    (share.root(NODES[0]) / "var/lib/cycleforge/health/claims").unlink()
    assert share.runs(NODES[0], "mount_shared=pass") == ["drains"]
    assert share.who() == []


def test_without_a_living_watch_nothing_is_held(share: Share) -> None:
    """Who holds a drain back relies on the scheduler to keep jobs away."""
    for node in NODES[:4]:
        share.runs(node, MOUNT)
    assert share.runs(NODES[4], MOUNT) == ["held"]
    for node, age_s in ((NODES[5], 601), (NODES[6], -700)):
        os.utime(share.guard / "state", (time.time() - age_s,) * 2)
        assert share.runs(node, MOUNT) == ["drains"]
        assert "the watch of the scheduler is silent" in share.said(node)
    (share.guard / "state").unlink()
    assert share.runs(NODES[7], MOUNT) == ["drains"]
    assert "the scheduler does not watch" in share.said(NODES[7])


def test_a_share_that_hangs_delays_the_drain_by_two_seconds_and_no_more(share: Share) -> None:
    """The hanging tool ignores every signal it can, and is not waited for."""
    for node in NODES[:5]:
        share.runs(node, MOUNT)
    tools = share.folder / "tools"
    tools.mkdir()
    hangs = "trap '' TERM INT; sleep 40 & wait; wait"
    (tools / "stat").write_text(
        f'#!/bin/bash\nif [[ "$2" == %Y ]]; then {hangs}; fi\nexec {shutil.which("stat")} "$@"\n'
    )
    (tools / "stat").chmod(0o755)
    began = time.monotonic()
    assert share.runs(NODES[5], MOUNT, PATH=f"{tools}:{os.environ['PATH']}") == ["drains"]
    assert time.monotonic() - began < 30, "it was waited for"
    assert "did not answer in 2 s" in share.said(NODES[5])
    assert share.runs(NODES[5], MOUNT) == ["held"], "what it could not claim is claimed at the next run"


def test_a_folder_that_is_not_there_changes_nothing(share: Share) -> None:
    share.guard.rename(share.folder / "gone")
    assert share.runs(NODES[0], MOUNT, "mount_shared=pass") == ["drains", "drains"]
    assert not share.guard.exists()


def test_a_healthy_node_asks_the_folder_once_in_a_boot(share: Share) -> None:
    share.runs(NODES[0], "mount_shared=pass")
    share.guard.rename(share.folder / "gone")
    assert share.runs(NODES[0], *["mount_shared=pass"] * 3) == ["drains"] * 3
    assert share.said(NODES[0]) == ""


def test_odd_names_reach_no_path(share: Share) -> None:
    assert share.runs(NODES[0], "../../x=heal a/b=heal Q@x=heal") == ["drains"]
    assert sorted(path.name for path in share.guard.rglob("*")) == ["claims", "state"]
