"""Files that others can write, as root and `prove.sh` read them: data that nothing runs, follows or waits for.

Every node can write what lies on shared storage, so root on one node must not become root on the scheduler by it. The
table below names each such file with a healthy content; every word of that content is replaced by each attack in turn.
The scripts run as real processes, and another user has put the files there.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from tests.bed.scripts.healthy import healthy
from tests.bed.scripts.node import Node
from tests.bed.scripts.planned import Planned
from tests.projects.conftest import MakeNode
from tests.projects.test_guard_node import MOUNT, Share
from tests.projects.test_guard_node import NODES as MEMBERS
from tests.projects.test_guard_watch import NODES, Scheduler
from tests.projects.test_slurm_policy import AZURE
from tests.prove.folder import Bed, gate

OTHER_USER = 65534
BIG = 100_000_000
WORDS = ("PATH[$(touch${{IFS}}{0})]", "UID[`touch${{IFS}}{0}`]0", "@", "", "-1", "08", "9" * 20)
"""What a word of a file may be instead of what belongs there; the first two run a command where Bash evaluates them,
also under `set -u`, because the variables exist."""
KINDS = ("link", "link to nothing", "directory", "pipe", "binary", "empty", "large")
SECONDS = 60
"""Only a reader that waits for a pipe or reads for ever takes so long."""


@dataclass
class Reader:
    """One program, ready to run: its folder, how it is run once, and what must hold after each run."""

    folder: Path
    run: Callable[[], None]
    safe: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Given:
    """One file: who reads it, where it lies below the reader's folder, and its content on a healthy cluster.

    Where a folder is root's own, on the disk of the machine, nobody can put a link or a pipe; a text can be damaged.
    """

    reader: Callable[[Path, MakeNode], Reader]
    path: str
    text: str
    is_shared: bool = True
    words: str = r"[^\s|=,/:@]+"
    """What is replaced in it."""


def _watch(tmp_path: Path, _: MakeNode) -> Reader:
    """Three of eight nodes fail a check, whatever the record says: jobs are held."""
    watch = Scheduler(tmp_path)
    watch.partition("hpc", *NODES)
    watch.claim("mount_shared", "hpc", *NODES[:3])
    ping = "Slurmctld(primary) at scheduler is UP\nSlurmctld(backup) at other is UP\n"
    (watch.fake / "ping").write_text(ping)

    def run() -> None:
        watch.set("hpc", "up")
        watch.look()

    def safe() -> None:
        assert watch.told()[0].startswith("partition hpc 8"), "nodes are told"
        assert watch.calls("update NodeName") == []

    return Reader(tmp_path, run, safe)


def _guard(tmp_path: Path, _: MakeNode) -> Reader:
    """A node that fails a check drains, or holds that back; it says which."""
    share = Share(tmp_path)
    share.root(MEMBERS[0])
    return Reader(tmp_path, lambda: _one_of(share.runs(MEMBERS[0], MOUNT), ["drains"], ["held"]))


def _one_of(found: object, *expected: object) -> None:
    assert found in expected


def _command(node: Node, script: str, *words: str, codes: tuple[int, ...] = (0,)) -> Reader:
    def run() -> None:
        bash = str(node.bin / "bash")
        command = [bash, str(node.spec / "files" / script), *words]
        done = subprocess.run(command, env=node.environment(), timeout=SECONDS,
                              capture_output=True, text=True, errors="replace", check=False)  # fmt: skip
        assert done.returncode in codes, done.stdout + done.stderr

    return Reader(node.root, run)


SCONTROL = r"""
case "$*" in
    "--oneliner show node"*) for name in hpc-1 hpc-2; do
        reason="CycleForge health: mount [root@1700000000]"
        echo "NodeName=$name State=IDLE+CLOUD+DRAIN Gres=gpu:8 Partitions=hpc Reason=$reason"
    done ;;
    "show config") echo "SuspendExcNodes = (null)"; echo "SuspendTime = 300 sec" ;;
esac
"""


def _nodes(verb: str, _: Path, make_node: MakeNode) -> Reader:
    node = make_node("misc_ubuntu")
    (node.root / "sched/prolog.d").mkdir(parents=True)
    (node.root / "etc/slurm").mkdir()
    (node.root / "run").mkdir()
    (node.root / "etc/slurm/prolog.d").symlink_to(node.root / "sched/prolog.d")
    node.fake("scontrol", SCONTROL)
    words = (verb, f"hpc.{'0' * 12}") + (("--once", "--started-before", "2026-01-01") if verb == "replace" else ())
    return _command(node, "nodes.sh", *words, codes=(0, 3))


def _release(_: Path, make_node: MakeNode) -> Reader:
    node = make_node("slurm_nhc")
    node.write("etc/cycleforge/release.conf", "hours=24\n")
    node.fake("scontrol", SCONTROL)
    return _command(node, "release.sh", "run")


def _policy(_: Path, make_node: MakeNode) -> Reader:
    node = make_node("slurm_policy")
    node.write("sched/lab/azure.conf", AZURE)
    node.write("etc/cycleforge/policy.rows", "qos night exists=\n")
    (node.root / "etc/slurm").mkdir()
    (node.root / "etc/slurm/azure.conf").symlink_to(node.root / "sched/lab/azure.conf")
    node.fake("scontrol", "exit 0")
    node.fake("sacctmgr", 'case "$*" in *"show cluster"*) echo lab ;; *) exit 0 ;; esac')
    node.link("chown")
    return _command(node, "policy.sh", "load", codes=(0, 1))


def _partitions(_: Path, make_node: MakeNode) -> Reader:
    """What slurmctld waits for when it starts, while slurmdbd does not answer."""
    node = make_node("slurm_policy")
    node.write("sched/lab/azure.conf", PARTITION)
    node.write("etc/cycleforge/policy.rows", "partition hpc AllowQos=day,night\npartition hpc MaxTime=60\n")
    (node.root / "etc/slurm").mkdir()
    (node.root / "etc/slurm/azure.conf").symlink_to(node.root / "sched/lab/azure.conf")
    for tool in ("scontrol", "sacctmgr"):
        node.fake(tool, "exit 1")
    node.link("chown")
    return _command(node, "policy.sh", "partitions", codes=(0, 1))


def _health(*words: str, codes: tuple[int, ...] = (0,)) -> Callable[[Path, MakeNode], Reader]:
    def made(_: Path, make_node: MakeNode) -> Reader:
        node = Planned(healthy(make_node("slurm_nhc")))
        node.configure("strikes=3", "strikes=5")
        node.says("quick", ("fail", "mount", "/shared is not mounted"))

        def run() -> None:
            code, output = node.node.health(*words)
            assert code in codes, output

        return Reader(node.node.root, run)

    return made


PROVEN = "prove.state/quick-gpu-20260101T000000Z-1"


def _prove(tmp_path: Path, _: MakeNode) -> Reader:
    """A run that another user of the folder has left half done."""
    bed = Bed(tmp_path, [gate("smoke")], {"smoke": "passes"})
    state = bed.jobs / PROVEN
    (state / "01-smoke").mkdir(parents=True)
    (state / "gates.tsv").write_text(gate("smoke") + "\n")
    (state / "out.tsv").write_text("")
    (state / "spent").write_text("5\n")
    (state / "run").write_text(PROVE_RUN)

    def run() -> None:
        bed.prove("quick", "--yes")
        (state / "ended").unlink(missing_ok=True)

    return Reader(bed.jobs, run)


PROVE_RUN = (
    "burn_minutes=60\nconstraint=\ndrain=no\nid=quick-gpu-1\nlevel=quick\nmax_gpu_s=99999\nmax_s=99999\nnodes=n1,n2\n"
    "partition=gpu\nruns=runs\nskip=\nstarted=2026-01-01T00:00:00Z\nvm_size=Standard_ND96isr_H100_v5\n"
)
RECORD = (
    "written 1700000000\nalarm hpc mount_shared 1700000000 claims 1\nfloor hpc nccl_all_reduce 1700000000\n"
    "hold hpc down BOOT_TIME2026-01-01T00:00:00/1700000000\n"
)
PARTITION = "PartitionName=hpc Nodes=lab-hpc-[1-2] MaxTime=INFINITE State=UP\n"
STANDING = (
    "state=sick\ncure=heal\nkind=quick\nsince=1700000000\nboot=boot-1\nreason=mount\ndrain=none\nrefused=1700000000\n"
    "passes=1\nrepaired=1700000000\nretested=1700000000\nfound=quick heal 1700000000 boot-1 mount\n"
)
TABLE = (
    Given(_watch, "root/sched/results.guard/record", RECORD.replace("written 17", "written 18")),
    Given(_watch, "root/var/lib/cycleforge/guard/record", RECORD, is_shared=False),
    Given(_watch, "root/sched/results.guard/claims/mount_shared@hpc/hpc-1", ""),
    Given(_guard, "share/results.guard/state", "partition hpc 8 ib_rate\nnode hpc-1 hpc,all\n"),
    Given(_guard, "share/results.guard/claims/mount_shared@hpc/hpc-1", ""),
    Given(_guard, "root-hpc-1/var/lib/cycleforge/health/claims", "boot-1\nib_rate claimed\n", is_shared=False),
    Given(partial(_nodes, "list"), "sched/cycleforge/nodes/hpc-1", f"hpc.{'a' * 12} 1700000000\n"),
    Given(partial(_nodes, "replace"), "sched/cycleforge/nodes/hpc-1", f"hpc.{'0' * 12} 1700000000\n"),
    Given(partial(_nodes, "replace"), "sched/cycleforge/leaving/hpc-2", f"hpc.{'a' * 12}\n"),
    Given(_release, "var/lib/cycleforge/release/hpc-1", "1700000000 1700000000\n", is_shared=False),
    Given(_policy, "sched/lab/cycleforge-policy.record", "qos day exists|found|\nqos day priority|5|5\nfile|abc  -|\n"),
    Given(_partitions, "sched/lab/azure.conf", PARTITION),
    Given(_partitions, "sched/lab/cycleforge-policy.qos", "day\nnight\n"),
    Given(
        _health("quick"),
        "var/lib/cycleforge/health/standing",
        STANDING,
        is_shared=False,
        words=r"(?<==)\d+|(?<=heal )\d+",
    ),
    Given(
        _health("gate", codes=(0, 3)),
        "var/lib/cycleforge/health/standing",
        STANDING,
        is_shared=False,
        words=r"(?<==)\d+|(?<=heal )\d+",
    ),
    Given(_health("epilog"), "var/lib/cycleforge/health/strikes", "vm - \n1700000000 own\n", is_shared=False),
    Given(_health("quick"), "var/lib/cycleforge/health/vm", "1700000000 - vm\n", is_shared=False),
    Given(_prove, f"{PROVEN}/run", PROVE_RUN, words=r"(?<==)\d{2,}(?=\n)"),
    Given(_prove, f"{PROVEN}/spent", "5\n"),
    Given(_prove, f"{PROVEN}/gates.tsv", gate("smoke") + "\n", words=r"(?<=\t)\d+(?=\t)"),
    Given(_prove, f"{PROVEN}/01-smoke/smoke-1.end", "pass\tfine\t1\t20\n"),
)
PLANT = """
rm -rf -- "./$1"
case "$2" in
    link) ln -s -- "$3" "./$1" ;;
    "link to nothing") ln -s -- "$3.new" "./$1" ;;
    directory) mkdir -p -- "./$1/inside" ;;
    pipe) mkfifo -- "./$1" ;;
    large) truncate --size="$4" -- "./$1" ;;
    *) cat >"./$1" ;;
esac
"""


def plant(path: Path, kind: str, victim: Path, text: bytes = b"") -> None:
    """Put it there as another user, who may write this folder and does not see the folders above."""
    os.chown(path.parent, OTHER_USER, OTHER_USER)
    command = ["/bin/bash", "-euc", PLANT, "plant", path.name, kind, str(victim), str(BIG)]
    subprocess.run(
        command,
        input=text,
        check=True,
        cwd=path.parent,
        user=OTHER_USER,
        group=OTHER_USER,
        extra_groups=[],
        timeout=SECONDS,
    )


def attacks(given: Given, canary: Path) -> Iterator[str]:
    """The text with each word in turn replaced by each attack."""
    for word in WORDS:
        for place in re.finditer(given.words, given.text):
            yield given.text[: place.start()] + word.format(canary) + given.text[place.end() :]


def ids(given: Given) -> str:
    reader = given.reader.func if isinstance(given.reader, partial) else given.reader
    return f"{reader.__qualname__.strip('_').partition('.')[0]}-{Path(given.path).name}"


@pytest.mark.skipif(os.geteuid() != 0, reason="another user plants the files")
@pytest.mark.parametrize("given", TABLE, ids=ids)
def test_what_others_write_is_data(given: Given, tmp_path: Path, make_node: MakeNode) -> None:
    reader = given.reader(tmp_path, make_node)
    path, canary, victim = reader.folder / given.path, tmp_path / "canary", tmp_path / "victim"
    path.parent.mkdir(parents=True, exist_ok=True)
    victim.write_text(given.text or "keep\n")
    before = (victim.read_bytes(), victim.stat().st_mtime_ns, victim.stat().st_mode)
    kinds = KINDS if given.is_shared else ("binary", "empty")
    contents = [(kind, b"\x00\xff\x80$(" if kind == "binary" else b"") for kind in kinds]
    contents += [("text", text.encode()) for text in attacks(given, canary)]
    for kind, content in contents:
        plant(path, kind, victim, content)
        reader.run()
        assert not canary.exists(), content
        assert (victim.read_bytes(), victim.stat().st_mtime_ns, victim.stat().st_mode) == before, kind
        assert not victim.with_name("victim.new").exists(), kind
        reader.safe()


SWITCHES = r"""
plant() {
    for name in topology.conf site_specific.conf .topology.conf.new; do
        rm -rf "$CYCLEFORGE_ROOT/sched/$name"
        case "$(<"$FAKE_STATE/kind")" in
            link) ln -s "$FAKE_STATE/secret" "$CYCLEFORGE_ROOT/sched/$name" ;;
            "link to nothing") ln -s "$FAKE_STATE/secret.new" "$CYCLEFORGE_ROOT/sched/$name" ;;
            directory) mkdir -p "$CYCLEFORGE_ROOT/sched/$name/inside" ;;
            pipe) mkfifo "$CYCLEFORGE_ROOT/sched/$name" ;;
            large) truncate --size=100000000 "$CYCLEFORGE_ROOT/sched/$name" ;;
        esac
    done
}
if [[ "$1" == "$(<"$FAKE_STATE/when")" ]]; then plant; fi
case "$*" in
    topology*) for out in "$@"; do :; done; echo "SwitchName=pg0 Nodes=hpc-1" >"$out" ;;
    "--version") echo "slurm 25.05.2" ;;
    ping) echo "Slurmctld(primary) at scheduler is UP" ;;
    "show config") echo "TopologyPlugin          = topology/tree" ;;
    "show hostnames"*) echo hpc-1 ;;
    "show topology"*) echo "SwitchName=pg0 Level=0 LinkSpeed=1 Nodes=hpc-1" ;;
    --noheader*) echo "hpc-1 idle" ;;
esac
"""
"""azslurm, scontrol and sinfo; what is planted when the first of them, or a later one, is asked."""


@pytest.mark.parametrize("when", ["topology", "--version", "reconfigure"])
@pytest.mark.parametrize("kind", ["link", "link to nothing", "directory", "pipe", "large"])
def test_a_topology_is_not_written_or_copied_through_what_comes_while_azslurm_runs(
    kind: str, when: str, make_node: MakeNode
) -> None:
    """azslurm takes up to half an hour, and every node can write the folder of topology.conf meanwhile."""
    node = make_node("misc_ubuntu")
    node.write("sched/topology.conf", "SwitchName=pg9 Nodes=hpc-1\n")
    node.write("sched/site_specific.conf", "# of the site\n")
    for folder in ("sched/prolog.d", "etc/slurm", "run"):
        (node.root / folder).mkdir(parents=True)
    (node.root / "etc/slurm/prolog.d").symlink_to(node.root / "sched/prolog.d")
    for tool in ("chown", "mkfifo", "truncate", "realpath"):
        node.link(tool)
    for tool in ("azslurm", "scontrol", "sinfo"):
        node.fake(tool, SWITCHES)
    for name, text in (("kind", kind), ("when", when), ("secret", "of root alone\n")):
        (node.state / name).write_text(text)
    command = [str(node.bin / "bash"), str(node.spec / "files/topology.sh"), "update", "tree"]
    done = subprocess.run(command, env=node.environment(), timeout=SECONDS, capture_output=True, text=True, check=False)
    assert (node.state / "secret").read_text() == "of root alone\n"
    assert not (node.state / "secret.new").exists()
    texts = [path.read_bytes() for path in (node.root / "sched").iterdir() if path.is_file() and not path.is_symlink()]
    assert not any(b"of root alone" in text for text in texts)
    if when == "topology":
        assert done.returncode == 1
        assert "is no plain file of at most" in done.stderr
    elif kind != "directory":
        assert done.returncode == 0, done.stderr
    if when == "--version":
        (kept,) = (node.root / "sched").glob("topology.conf.2*")
        assert kept.read_text() == "SwitchName=pg9 Nodes=hpc-1\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="another user plants the files")
@pytest.mark.parametrize("reader", [_watch, _guard])
def test_names_of_claims_are_data_and_linked_folders_are_left_alone(
    reader: Callable[[Path, MakeNode], Reader], tmp_path: Path, make_node: MakeNode
) -> None:
    made = reader(tmp_path, make_node)
    guard = next(path for path in tmp_path.rglob("results.guard") if path.is_dir() and not path.is_symlink())
    elsewhere, canary = tmp_path / "elsewhere", tmp_path / "canary"
    elsewhere.mkdir()
    for name in ("hpc-1", "hpc-99"):
        (elsewhere / name).write_text("keep\n")
    before = sorted((path.name, path.stat().st_mtime_ns) for path in elsewhere.iterdir())
    inside = guard / "claims/mount_shared@hpc"
    inside.mkdir(exist_ok=True)
    for word in WORDS:
        # A name has no slash.
        name = word.format("canary")
        if name:
            plant(guard / f"claims/{name}@hpc", "directory", canary)
            plant(guard / f"claims/mount_shared@{name}", "directory", canary)
            plant(inside / name, "text", canary)
    plant(guard / "claims/ib_rate@hpc", "link", elsewhere)
    made.run()
    plant(inside, "link", elsewhere)
    made.run()
    for name in ("claims", "."):
        folder = guard / name if name != "." else guard
        folder.rename(tmp_path / f"old-{name.strip('.')}")
        folder.symlink_to(elsewhere)
        made.run()
        folder.unlink()
        (tmp_path / f"old-{name.strip('.')}").rename(folder)
    assert sorted((path.name, path.stat().st_mtime_ns) for path in elsewhere.iterdir()) == before
    assert not canary.exists()
    assert not Path("/canary").exists()
