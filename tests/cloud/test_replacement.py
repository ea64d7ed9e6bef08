"""Old nodes are drained, replaced once they are idle, and nothing else is touched: nodes.sh on real Slurm."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from generator.files import assets
from tests.bed.cloud import Cloud, Pool, running_cloud
from tests.bed.machines.overlay import Result

OLD, NEW = "htc.000000000001", "htc.000000000002"
NODES = tuple(f"emu-htc-{number}" for number in range(1, 5))
REASON = f"CycleForge replace: {OLD}"
RECORDS = "etc/cycleforge/nodes"
UP, LEAVING = {"IDLE", "CLOUD"}, {"POWER_DOWN", "POWERING_DOWN"}
BOOT = """\
mkdir -p /etc/slurm/cycleforge/nodes
if [[ -s "/mnt/shared/generation.${name}" ]]; then
    echo "$(<"/mnt/shared/generation.${name}") $(date +%s)" >"/etc/slurm/cycleforge/nodes/${name}"
fi
"""
"""What the cluster-init script leaves before slurmd starts: tests/projects/test_generation.py runs it."""


@pytest.fixture(scope="module")
def running() -> Iterator[Cloud]:
    # Nobody but the program powers a node down here.
    with running_cloud([Pool("htc", len(NODES), default=True)], ["SuspendTime=600000", "SuspendTimeout=1"]) as cloud:
        for source in ("projects/misc_ubuntu/specs/default/cluster-init/files/nodes.sh", "projects/_lib/cycleforge.sh"):
            shutil.copy(assets.root() / source, cloud.shared)
        node = cloud.folder / "machine/node.sh"
        text = node.read_text()
        assert text.count("\nstart_munge\n") == 1
        node.write_text(text.replace("\nstart_munge\n", f"\n{BOOT}start_munge\n"))
        yield cloud


@pytest.fixture
def cloud(running: Cloud) -> Cloud:
    running.restore()
    shutil.rmtree(running.folder / "etc/cycleforge", ignore_errors=True)
    return running


def nodes_sh(cloud: Cloud, *words: str, poll_s: float = 0.2) -> Result:
    command = f'CYCLEFORGE_POLL_S={poll_s} bash /mnt/shared/nodes.sh "$@"'
    return cloud.run(command, *words)


def gets(cloud: Cloud, generation: str, *names: str) -> None:
    """What the next VMs of nodes will be; nothing: they leave no record."""
    for name in names:
        (cloud.shared / f"generation.{name}").write_text(generation)


def boot(cloud: Cloud, *names: str) -> None:
    cloud.slurm("scontrol", "update", f"NodeName={','.join(names)}", "State=POWER_UP")

    def are_up() -> bool:
        flags = cloud.all_flags()
        return all(flags[name] == UP for name in names)

    cloud.wait("the nodes are up", are_up)


@contextmanager
def job_on(cloud: Cloud, *names: str) -> Iterator[None]:
    """A job that lasts as long as the block, on all of these nodes until the end."""
    options = ["--no-shell", "--job-name=hold", f"--nodes={len(names)}", f"--nodelist={','.join(names)}"]
    cloud.slurm("salloc", *options)
    number = cloud.slurm("squeue", "-h", "-n", "hold", "-o", "%i").strip()
    yield
    assert sorted(
        cloud.ok(f"srun --jobid={number} --nodes={len(names)} --ntasks={len(names)} hostname").split()
    ) == sorted(names)
    assert cloud.job(number)["JobState"] == "RUNNING"
    cloud.slurm("scancel", number)
    cloud.finish(number)


def is_drained(flags: set[str]) -> bool:
    return "DRAIN" in flags


def record(cloud: Cloud, name: str) -> Path:
    return cloud.folder / RECORDS / name


def settled(cloud: Cloud) -> None:
    cloud.wait("no node is on its way down", lambda: not set().union(*cloud.all_flags().values()) & LEAVING)


def test_old_nodes_go_when_their_jobs_have_ended_and_new_ones_stay(cloud: Cloud) -> None:
    gets(cloud, OLD, *NODES[:2])
    gets(cloud, NEW, NODES[2])
    boot(cloud, *NODES[:3])
    with job_on(cloud, NODES[0]):
        assert "1 new, 2 old, 0 without a record" in nodes_sh(cloud, "list", NEW).output
        before, calls = [cloud.node(name) for name in NODES], cloud.calls()
        dry = nodes_sh(cloud, "replace", NEW, "--dry-run", "--at-once", "1")
        assert dry.code == 0, dry.output
        assert f"would: {NODES[1]}: drained, it started as {OLD}" in dry.output
        assert NODES[0] not in dry.output
        assert [cloud.node(name) for name in NODES] == before
        assert cloud.calls() == calls
        first = nodes_sh(cloud, "replace", NEW, "--at-once", "4", "--once")
        assert first.code == 3, first.output
        settled(cloud)
        assert cloud.vms() == {NODES[0], NODES[2]}
        # Nothing new starts on it, and the scheduler says why.
        assert "DRAIN" in cloud.flags(NODES[0])
        assert cloud.states()[NODES[0]].reason == REASON
        assert not record(cloud, NODES[1]).exists()
    gets(cloud, NEW, NODES[0])
    second = nodes_sh(cloud, "replace", NEW)
    assert second.code == 0, second.output
    settled(cloud)
    assert cloud.vms() == {NODES[2]}
    # The names are free again, without a drain, and the next job gets a new node.
    assert {row.reason for row in cloud.states().values()} == {"", *([REASON] if cloud.keeps_reasons else [])}
    assert not any(map(is_drained, cloud.all_flags().values()))
    assert cloud.ok(f"srun --nodelist={NODES[0]} hostname").split() == [NODES[0]]
    calls = cloud.calls()
    third = nodes_sh(cloud, "replace", NEW)
    assert third.code == 0, third.output
    assert "no old node is left" in third.output
    assert cloud.calls() == calls
    assert cloud.vms() == {NODES[0], NODES[2]}


def test_what_an_administrator_has_drained_or_keeps_stays(cloud: Cloud) -> None:
    gets(cloud, OLD, *NODES)
    boot(cloud, *NODES)
    before = cloud.states()[NODES[1]].reason
    assert cloud.keeps_reasons or not before
    cloud.drain(NODES[0], "disk 3 is sick")
    with cloud.with_settings(f"SuspendExcNodes={NODES[1]}"):
        with job_on(cloud, NODES[2]):
            assert nodes_sh(cloud, "replace", NEW, "--at-once", "4", "--once").code == 3
            cloud.drain(NODES[2], "mine now")
        done = nodes_sh(cloud, "replace", NEW, "--at-once", "4")
    assert done.code == 3, done.output
    assert f"{NODES[0]}: old, left as it is: DRAIN (disk 3 is sick)" in done.output
    assert f"{NODES[1]}: old, left as it is: kept" in done.output
    assert f"{NODES[2]}: old, left as it is: DRAIN (mine now)" in done.output
    settled(cloud)
    assert cloud.vms() == set(NODES[:3])
    assert [cloud.states()[name].reason for name in NODES[:3]] == ["disk 3 is sick", before, "mine now"]
    assert cloud.flags(NODES[1]) == UP


def test_a_killed_run_is_continued_within_its_limit_or_taken_back(cloud: Cloud) -> None:
    gets(cloud, OLD, *NODES)
    boot(cloud, *NODES)
    with job_on(cloud, *NODES):
        script = 'CYCLEFORGE_POLL_S=0.2 bash /mnt/shared/nodes.sh replace "$1" --at-once 2 &>/mnt/shared/log & echo $!'
        pid = cloud.ok(script, NEW).strip()
        drained = {True: 2, False: 2}
        cloud.wait("it has drained two", lambda: Counter(map(is_drained, cloud.all_flags().values())) == drained)
        other = nodes_sh(cloud, "replace", NEW)
        assert other.code == 1
        assert "another run is going on" in other.output
        cloud.ok(f"kill -KILL {pid}")
        cloud.wait("the lock is free", lambda: cloud.run("flock -n /run/cycleforge-nodes.lock true").code == 0)
        released = nodes_sh(cloud, "release")
        assert "2 nodes are in service again" in released.output
        assert not any(map(is_drained, cloud.all_flags().values()))
        # The default is a tenth of what runs, and at least one.
        assert nodes_sh(cloud, "replace", NEW, "--once").code == 3
        assert nodes_sh(cloud, "replace", NEW, "--once").code == 3
        assert sum(map(is_drained, cloud.all_flags().values())) == 1
    done = nodes_sh(cloud, "replace", NEW, "--at-once", "3")
    assert done.code == 0, done.output
    settled(cloud)
    assert cloud.vms() == set()


def test_nodes_of_a_static_pool_start_again_each_once(cloud: Cloud) -> None:
    """The second one comes back old: without a limit nodes whose template nobody has imported would come and go."""
    gets(cloud, OLD, *NODES[:2])
    boot(cloud, *NODES[:2])
    gets(cloud, NEW, NODES[0])
    calls = len(cloud.calls())
    done = nodes_sh(cloud, "replace", NEW, "--start", "--at-once", "1")
    assert done.code == 3, done.output
    assert f"{NODES[1]}: old, left as it is: was replaced and came back old" in done.output
    assert NODES[0] not in done.output.splitlines()[-1]
    assert record(cloud, NODES[0]).read_text().split()[0] == NEW
    flags = cloud.all_flags()
    assert [flags[name] for name in NODES[:2]] == [UP, UP]
    first, second = (f"suspend {NODES[0]}", f"resume {NODES[0]}"), (f"suspend {NODES[1]}", f"resume {NODES[1]}")
    assert cloud.calls()[calls:] == [*first, *second]


def test_only_nodes_that_are_known_to_be_old_go(cloud: Cloud) -> None:
    """Nodes of other node arrays stay, those without a record too, unless they are asked for."""
    for name, generation in zip(NODES, ("gpu.000000000001", "", NEW, NEW), strict=True):
        gets(cloud, generation, name)
    boot(cloud, *NODES)
    assert "2 new, 0 old, 1 without a record" in nodes_sh(cloud, "list", NEW).output
    assert nodes_sh(cloud, "replace", NEW).code == 0
    assert cloud.vms() == set(NODES)
    # Another version of the same image changes no generation.
    now = int(time.time())
    record(cloud, NODES[2]).write_text(f"{NEW} {now - 7200}\n")
    done = nodes_sh(cloud, "replace", NEW, "--no-record", "--started-before", f"@{now - 3600}")
    assert done.code == 0, done.output
    settled(cloud)
    assert cloud.vms() == {NODES[0], NODES[3]}
