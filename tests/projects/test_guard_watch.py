"""The scheduler's watch on a fake Slurm: when it raises its one alarm, what it holds, and whom it leaves alone.

`tests/sick/test_guard.py` has the same on real Slurm, which also proves what the fakes here print: the states and
their flags are those of sinfo's manual (NODE STATE CODES), `%a` is up, down, drain or inact, and a partition that is
set down keeps that until somebody changes it or slurmctld reads its files.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from generator.files import assets
from generator.health.result import alarms_of

FILES = assets.folder("projects") / "slurm_nhc/specs/default/cluster-init/files"
LIBRARY = assets.folder("projects") / "_lib/cycleforge.sh"
SCONTROL = r"""
printf '%s\n' "$*" >>"$FAKE/calls"
case "$1 $2" in
    "ping ") echo "$(<"$FAKE/ping")" ;;
    "show config") echo "$(<"$FAKE/config")" ;;
    "update PartitionName="*)
        if [[ -e "$FAKE/refuse" ]]; then exit 1; fi
        state="${3#State=}"; name="${2#PartitionName=}"
        echo "${state,,}" >"$FAKE/partition.$name" ;;
    "update NodeName="*)
        for word in "$@"; do case "$word" in Reason=*) reason="${word#Reason=}" ;; esac; done
        echo "drain|0|$reason" >"$FAKE/node.${2#NodeName=}" ;;
esac
"""
SINFO = r"""
if [[ -e "$FAKE/down" ]]; then echo "slurm_load_node: Unable to contact slurm controller" >&2; exit 1; fi
while read -r partition node; do
    read -r state <"$FAKE/partition.$partition"
    IFS= read -r shown <"$FAKE/node.$node"
    echo "$partition|$state|$node|$shown"
done <"$FAKE/members"
"""
LOGGER = 'printf "%s\\n" "${*: -1}" >>"$FAKE/log"\n'
SHARE = "CycleForge health: mount_shared (/shared is not mounted)"


class Scheduler:
    """A scheduler with the watch on it."""

    def __init__(self, folder: Path) -> None:
        self.root, self.fake = folder / "root", folder / "fake"
        self.opt, self.results = self.root / "opt", self.root / "sched/results"
        self.claims = self.root / "sched/results.guard/claims"
        for made in (
            self.opt,
            self.fake,
            self.results,
            self.claims,
            self.root / "etc/cycleforge",
            self.root / "etc/slurm",
        ):
            made.mkdir(parents=True)
        for name in ("guard-watch.sh", "guard-slurm.sh", "guard-record.sh", "guard-rule.sh", "guard.tsv"):
            (self.opt / name).write_bytes((FILES / name).read_bytes())
        (self.opt / "cycleforge.sh").write_bytes(LIBRARY.read_bytes())
        (self.root / "etc/cycleforge/guard.conf").write_text("results=/sched/results\n")
        (self.root / "etc/slurm/azure.conf").write_text("")
        (self.fake / "ping").write_text("Slurmctld(primary) at scheduler is UP\n")
        (self.fake / "config").write_text("BOOT_TIME               = 2026-01-01T00:00:00\n")
        for name, text in (("scontrol", SCONTROL), ("sinfo", SINFO), ("logger", LOGGER)):
            (self.fake / name).write_text(f"#!/bin/bash\n{text}")
            (self.fake / name).chmod(0o755)
        (self.fake / "members").write_text("")

    def partition(self, name: str, *nodes: str, state: str = "up") -> None:
        with (self.fake / "members").open("a") as stream:
            stream.writelines(f"{name} {node}\n" for node in nodes)
        (self.fake / f"partition.{name}").write_text(f"{state}\n")
        for node in nodes:
            self.node(node)

    def node(self, name: str, state: str = "idle", reason: str = "none", age_s: float = 0) -> None:
        (self.fake / f"node.{name}").write_text(f"{state}|{int(time.time() - age_s)}|{reason}\n")

    def claim(self, check: str, partition: str, *nodes: str, age_s: float = 0) -> None:
        folder = self.claims / f"{check}@{partition}"
        folder.mkdir(exist_ok=True)
        for node in nodes:
            (folder / node).touch()
            os.utime(folder / node, (time.time() - age_s,) * 2)

    def passes(self, check: str, partition: str, *nodes: str) -> None:
        for node in nodes:
            (self.claims / f"{check}@{partition}" / node).unlink()

    def run(self, *words: str, host: str = "scheduler") -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.fake}:{os.environ['PATH']}", "FAKE": str(self.fake), "HOSTNAME": host,
                       "CYCLEFORGE_ROOT": str(self.root), "LC_ALL": "C"}  # fmt: skip
        return subprocess.run(["bash", str(self.opt / "guard-watch.sh"), *words], env=environment, capture_output=True,
                              text=True, check=False, timeout=60)  # fmt: skip

    def look(self, times: int = 1, host: str = "scheduler") -> str:
        said = ""
        for _ in range(times):
            done = self.run("look", host=host)
            assert done.returncode == 0, done.stdout + done.stderr
            said += done.stdout + done.stderr
        return said

    def state(self, partition: str = "hpc") -> str:
        return (self.fake / f"partition.{partition}").read_text().strip()

    def set(self, partition: str, state: str) -> None:
        """Somebody else does."""
        (self.fake / f"partition.{partition}").write_text(f"{state}\n")

    def calls(self, start: str = "update") -> list[str]:
        path = self.fake / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [line for line in lines if line.startswith(start)]

    def alarms(self) -> list[str]:
        path = self.fake / "log"
        return path.read_text().splitlines() if path.exists() else []

    def shown(self) -> str:
        path = self.results / "ALARM"
        return path.read_text() if path.exists() else ""

    def told(self) -> list[str]:
        return (self.root / "sched/results.guard/state").read_text().splitlines()


NODES = tuple(f"hpc-{number}" for number in range(1, 9))


@pytest.fixture
def watch(tmp_path: Path) -> Scheduler:
    made = Scheduler(tmp_path)
    made.partition("hpc", *NODES)
    return made


def test_claims_of_three_of_eight_hold_jobs_until_the_check_passes_again(watch: Scheduler) -> None:
    watch.look()
    assert watch.told() == ["partition hpc 8", *(f"node {node} hpc" for node in NODES)]
    watch.claim("mount_shared", "hpc", *NODES[:3])
    watch.look()
    assert watch.state() == "down"
    watch.look(2)
    (alarm,) = watch.alarms()
    assert alarm.startswith("partition hpc: mount_shared fails on 3 of 8 nodes within 10 minutes")
    assert watch.calls() == ["update PartitionName=hpc State=DOWN"]
    assert watch.told()[0] == "partition hpc 8 mount_shared"
    assert watch.shown().startswith("partition hpc: mount_shared fails on 3 of 8 nodes, since ")
    (read,) = alarms_of(watch.shown()) or ()
    assert (read.partition, read.check, read.failing, read.total) == ("hpc", "mount_shared", 3, 8), "for the report"
    watch.passes("mount_shared", "hpc", *NODES[:3])
    watch.look()
    assert watch.state() == "down", "one look is not enough"
    watch.look()
    assert watch.state() == "up"
    assert watch.shown() == ""
    assert watch.told()[0] == "partition hpc 8"
    assert len(watch.alarms()) == 2
    watch.look(2)
    assert len(watch.calls()) == 2


@pytest.mark.parametrize(
    ("failing", "of", "ages"),
    [(2, 2, [0, 0]), (2, 3, [0, 0]), (3, 10, [0, 0, 0]), (3, 8, [0, 300, 700]), (3, 8, [1300, 1300, 1300])],
)
def test_too_few_or_too_slowly_or_too_long_ago_is_no_alarm(
    failing: int, of: int, ages: list[int], tmp_path: Path
) -> None:
    watch = Scheduler(tmp_path)
    nodes = [f"a-{number}" for number in range(of)]
    watch.partition("hpc", *nodes)
    for node, age_s in zip(nodes[:failing], ages, strict=True):
        watch.claim("mount_shared", "hpc", node, age_s=age_s)
    watch.look()
    assert (watch.state(), watch.alarms(), watch.shown()) == ("up", [], "")


def test_reasons_in_slurm_are_enough_when_the_share_with_the_claims_is_gone(watch: Scheduler) -> None:
    (watch.root / "sched/results.guard").rename(watch.root / "gone")
    for node in NODES[:4]:
        watch.node(node, "drain", f"{SHARE}; ib_ports_active 7 ports")
    said = watch.look()
    assert "does not answer: only Slurm's reasons are counted" in said
    assert watch.state() == "down"
    assert {alarm.split()[2] for alarm in watch.alarms()} == {"mount_shared", "ib_ports_active"}
    for node in NODES[:4]:
        watch.node(node)
    watch.look(2)
    assert watch.state() == "up"


def test_an_alarm_from_claims_does_not_end_because_nobody_can_read_them(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES[:5])
    watch.look()
    (watch.root / "sched/results.guard").rename(watch.root / "gone")
    watch.look(4)
    assert watch.state() == "down"
    (watch.root / "gone").rename(watch.root / "sched/results.guard")
    watch.passes("mount_shared", "hpc", *NODES[:5])
    watch.look(2)
    assert watch.state() == "up"


@pytest.mark.parametrize(
    "reason",
    ["CycleForge health: gpu_xid 1 fatal XIDs in 2 h, at most 0 fatal XIDs in 2 h (79 on 0001:00:00)",
     "CycleForge health: reboot the node: gpu_driver 9, expected 0", "disk is changed", "NHC: mount_shared",
     "Healthcheck failures. Run 'health -s' view health report."],
)  # fmt: skip
def test_hardware_and_drains_of_others_raise_no_alarm(watch: Scheduler, reason: str) -> None:
    for node in NODES[:6]:
        watch.node(node, "drain", reason)
    watch.look()
    assert (watch.state(), watch.alarms()) == ("up", [])


def test_only_nodes_that_report_and_may_get_jobs_count(watch: Scheduler) -> None:
    """Powered down, booting, silent, or drained by others: neither for nor against. 3 of 10 would be too few."""
    watch.partition("big", *(f"big-{number}" for number in range(10)))
    states = ["idle~", "idle#", "idle%", "down*", "drain", "down"]
    for number, state in enumerate(states, start=4):
        watch.node(f"big-{number}", state, "not ours")
    watch.claim("mount_shared", "big", "big-5", "big-8", "big-9")
    watch.look()
    assert "partition big 4" in watch.told()
    assert watch.state("big") == "up"
    watch.claim("mount_shared", "big", "big-0", "big-1", "big-2")
    watch.look()
    assert watch.state("big") == "down"


def test_claims_of_nodes_without_a_vm_are_removed(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES[:2], "hpc-99")
    watch.node(NODES[0], "idle~")
    watch.look()
    assert [path.name for path in sorted(watch.claims.glob("*/*"))] == [NODES[1]]


@pytest.mark.parametrize("state", ["down", "drain", "inact"])
def test_a_partition_that_an_administrator_took_out_stays_so(watch: Scheduler, state: str) -> None:
    watch.set("hpc", state)
    watch.claim("mount_shared", "hpc", *NODES)
    watch.look(2)
    assert len(watch.alarms()) == 1
    assert "an administrator decides" in watch.shown()
    watch.passes("mount_shared", "hpc", *NODES)
    watch.look(3)
    assert (watch.state(), watch.calls()) == (state, [])


@pytest.mark.parametrize("state", ["drain", "inact"])
def test_what_an_administrator_changes_meanwhile_stays(watch: Scheduler, state: str) -> None:
    watch.claim("mount_shared", "hpc", *NODES)
    watch.look()
    watch.set("hpc", state)
    watch.look()
    watch.set("hpc", "down")
    watch.passes("mount_shared", "hpc", *NODES)
    watch.look(3)
    assert watch.state() == "down"


def test_an_administrator_who_opens_the_partition_is_obeyed_until_the_next_alarm(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES)
    watch.look()
    watch.set("hpc", "up")
    watch.look(3)
    assert watch.state() == "up"
    watch.passes("mount_shared", "hpc", *NODES)
    watch.look(2)
    watch.claim("mount_shared", "hpc", *NODES)
    watch.look()
    assert watch.state() == "down"


@pytest.mark.parametrize("how", ["restart", "reconfigure"])
def test_slurm_that_reads_its_files_again_is_no_administrator(watch: Scheduler, how: str) -> None:
    watch.claim("mount_shared", "hpc", *NODES)
    watch.look()
    if how == "restart":
        (watch.fake / "config").write_text("BOOT_TIME               = 2026-01-01T00:07:00\n")
    else:
        os.utime(watch.root / "etc/slurm/azure.conf", (time.time() + 60,) * 2)
    watch.set("hpc", "up")
    watch.look()
    assert watch.state() == "down"
    assert len(watch.alarms()) == 1


def test_forget_leaves_the_partition_to_a_person(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES)
    watch.look()
    assert "does not hold partition htc" in watch.run("forget", "htc").stderr
    assert watch.run("forget", "hpc").returncode == 0
    watch.passes("mount_shared", "hpc", *NODES)
    watch.look(3)
    assert watch.state() == "down"


def test_jobs_come_back_when_the_last_nodes_that_fail_have_drained_themselves(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES[:5])
    watch.look()
    watch.passes("mount_shared", "hpc", *NODES[1:5])
    watch.look(3)
    assert watch.told()[0] == "partition hpc 8", "nodes hold nothing back any more"
    assert watch.state() == "down"
    watch.node(NODES[0], "drain", SHARE)
    watch.look()
    assert watch.state() == "up"
    assert watch.calls("update NodeName") == []


def test_who_fails_and_runs_no_checks_any_more_is_drained_by_the_watch(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES[:5])
    watch.look()
    watch.passes("mount_shared", "hpc", *NODES[1:5])
    watch.look(2)
    record = watch.root / "var/lib/cycleforge/guard/record"
    began = int(record.read_text().split("ends:")[1].split()[0])
    record.write_text(record.read_text().replace(f"ends:{began}", f"ends:{began - 601}"))
    watch.look()
    assert watch.calls()[1:] == [
        "update NodeName=hpc-1 State=DRAIN Reason=CycleForge guard: mount_shared failed here last, passes on other "
        "nodes again, and this one runs no checks",
        "update PartitionName=hpc State=UP",
    ]


def test_an_alarm_that_ends_and_comes_back_is_the_same(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES[:5])
    watch.look()
    watch.passes("mount_shared", "hpc", *NODES[1:5])
    watch.look(2)
    watch.claim("mount_shared", "hpc", *NODES[:5])
    watch.look()
    assert watch.told()[0] == "partition hpc 8 mount_shared"
    assert (watch.state(), len(watch.alarms())) == ("down", 1)


def test_a_slurm_that_does_not_answer_changes_nothing(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES)
    (watch.fake / "down").touch()
    assert "Slurm does not answer, nothing is changed" in watch.look()
    assert watch.calls() == []
    (watch.fake / "down").unlink()
    (watch.fake / "refuse").touch()
    assert "could not be set down; tried again" in watch.look()
    (watch.fake / "refuse").unlink()
    watch.look()
    assert watch.state() == "down"
    watch.passes("mount_shared", "hpc", *NODES)
    watch.look()
    (watch.fake / "refuse").touch()
    assert "could not be set up; tried again" in watch.look()
    (watch.fake / "refuse").unlink()
    watch.look()
    assert watch.state() == "up"


def test_a_watch_that_was_killed_after_it_told_slurm_still_knows_its_own_hold(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES)
    watch.look()
    record = watch.root / "var/lib/cycleforge/guard/record"
    record.write_text(record.read_text().replace("hold hpc down", "hold hpc asked"))
    watch.look()
    watch.passes("mount_shared", "hpc", *NODES)
    watch.look(2)
    assert watch.state() == "up"


def test_what_the_watch_is_about_to_do_is_on_the_disk_before_slurm_hears_of_it(watch: Scheduler) -> None:
    """Killed in between, it would take its own hold for that of an administrator."""
    record = watch.root / "var/lib/cycleforge/guard/record"
    (watch.fake / "scontrol").write_text(
        f"#!/bin/bash\n[[ $1 != update ]] || cp {record} {watch.fake}/then\n{SCONTROL}"
    )
    watch.claim("mount_shared", "hpc", *NODES)
    watch.look()
    assert "hold hpc asked" in (watch.fake / "then").read_text()


def test_two_alarms_hold_one_partition_until_the_second_is_over(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES)
    watch.claim("ib_ports_active", "hpc", *NODES[:3])
    watch.look()
    assert len(watch.alarms()) == 2
    watch.passes("mount_shared", "hpc", *NODES)
    watch.look(3)
    assert watch.state() == "down"
    watch.passes("ib_ports_active", "hpc", *NODES[:3])
    watch.look(2)
    assert watch.state() == "up"
    assert len(watch.calls()) == 2


def test_nodes_in_two_partitions_count_in_each(watch: Scheduler) -> None:
    watch.partition("all", *NODES, *(f"x-{number}" for number in range(8)))
    for partition in ("hpc", "all"):
        watch.claim("mount_shared", partition, *NODES[:4])
    watch.look()
    assert (watch.state("hpc"), watch.state("all")) == ("down", "up")
    assert "node hpc-1 hpc,all" in watch.told()


def test_of_two_schedulers_the_one_acts_that_slurm_runs_on_and_each_knows_what_the_other_did(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES)
    ping = "Slurmctld(primary) at one.example is {}\nSlurmctld(backup) at two.example is UP\n"
    (watch.fake / "ping").write_text(ping.format("UP"))
    watch.look(host="two")
    assert watch.state() == "up"
    watch.look(host="one")
    assert watch.state() == "down"
    (watch.fake / "ping").write_text(ping.format("DOWN"))
    (watch.root / "var/lib/cycleforge/guard/record").unlink()
    watch.passes("mount_shared", "hpc", *NODES)
    watch.look(2, host="two")
    assert watch.state() == "up"
    assert len(watch.alarms()) == 2


def test_two_looks_at_once_raise_one_alarm(watch: Scheduler) -> None:
    watch.claim("mount_shared", "hpc", *NODES)
    code = 'for number in 1 2 3 4; do bash "$1" look & done; wait'
    environment = {"PATH": f"{watch.fake}:{os.environ['PATH']}", "FAKE": str(watch.fake), "HOSTNAME": "scheduler",
                   "CYCLEFORGE_ROOT": str(watch.root)}  # fmt: skip
    subprocess.run(
        ["bash", "-c", code, "bash", str(watch.opt / "guard-watch.sh")], env=environment, check=True, timeout=60
    )
    assert len(watch.alarms()) == 1
    assert watch.calls() == ["update PartitionName=hpc State=DOWN"]


def test_without_shared_results_reasons_alone_count(watch: Scheduler) -> None:
    (watch.root / "etc/cycleforge/guard.conf").write_text("results=\n")
    for node in NODES[:3]:
        watch.node(node, "drng", SHARE)
    watch.look()
    assert watch.state() == "down"
    assert not (watch.root / "sched/results.guard/state").exists()


DEEP = "CycleForge health: deep_checks ({} 455.00 GB/s, at least 460 GB/s (azhpc-ndv5, message 16G; attempt 10 of 10))"
"""As standing.sh writes it; some words in the inner brackets have a semicolon."""


def below(watch: Scheduler, check: str, *nodes: str) -> None:
    """Drained nodes that have missed a floor, and said so."""
    watch.claim(f"deep_checks.{check}", "hpc", *nodes)
    for node in nodes:
        watch.node(node, "drain", DEEP.format(check))


@pytest.mark.parametrize("folder_is_there", [True, False])
def test_three_nodes_below_different_floors_are_three_faults(watch: Scheduler, folder_is_there: bool) -> None:
    below(watch, "nccl_all_reduce", *NODES[:2])
    below(watch, "nccl_loopback", NODES[2])
    watch.claim("deep_passed.nccl_all_reduce", "hpc", *NODES[2:])
    if not folder_is_there:
        (watch.root / "sched/results.guard").rename(watch.root / "gone")
    watch.look(2)
    assert (watch.state(), watch.alarms(), watch.shown()) == ("up", [], "")


def test_a_floor_that_most_miss_is_a_fault_of_the_floor_and_jobs_start(watch: Scheduler) -> None:
    below(watch, "nccl_all_reduce", *NODES[:3])
    watch.claim("deep_passed.nccl_all_reduce", "hpc", *NODES[3:5])
    watch.claim("deep_passed.nccl_loopback", "hpc", *NODES)
    watch.node(NODES[7], "idle#")
    watch.look(2)
    assert (watch.state(), watch.calls()) == ("up", [])
    (alarm,) = watch.alarms()
    assert alarm.startswith(
        "partition hpc: nccl_all_reduce is missed by 3 of 5 nodes that measured it, so its floor or the image"
    )
    assert "floor hpc nccl_all_reduce" in watch.told()
    assert f"boots {NODES[7]} hpc" in watch.told()
    (read,) = alarms_of(watch.shown()) or ()
    assert (read.check, read.failing, read.total) == ("deep_checks.nccl_all_reduce", 3, 5)
    assert "further nodes that miss it only warn, and jobs start" in read.words
    (watch.root / "sched/results.guard").rename(watch.root / "gone")
    watch.look()
    (watch.root / "gone").rename(watch.root / "sched/results.guard")
    watch.claim("deep_passed.nccl_all_reduce", "hpc", NODES[5])
    watch.look(2)
    assert watch.shown() == "", "3 of 6 is no more than half"
    assert len(watch.alarms()) == 2


def test_of_several_deep_faults_in_one_reason_each_is_its_own(watch: Scheduler) -> None:
    """And a quick check behind them is a quick check."""
    (watch.root / "sched/results.guard").rename(watch.root / "gone")
    for node in NODES[:5]:
        deep = (
            DEEP.format("nccl_all_reduce").removesuffix(")")
            + "; ib_write 350.00 Gb/s (mlx5_ib3; slowest)); mount (/shared; gone)"
        )
        watch.node(node, "drain", deep)
    watch.look()
    assert {alarm.split()[2] for alarm in watch.alarms()} == {"nccl_all_reduce", "ib_write", "mount"}
    assert watch.state() == "down", "for the mount"
