"""The cluster itself: its folder, its first process, its daemons, and what a test can do to the VMs of its nodes."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.bed.cloud.files import ACCOUNTING, CLUSTER, Pool, config_files, hosts
from tests.bed.cloud.inside import ENVIRONMENT, bash, inside
from tests.bed.limits import COMMAND_S
from tests.bed.machines.overlay import PATH, Result
from tests.bed.slurm.client import Client
from tests.bed.slurm.newer import Slurm, chosen_slurm

MACHINE = Path(__file__).with_name("machine")
PROGRAMS = "opt/azurehpc/slurm"
FOLDERS = ("azure/vms", "azure/options", "azure/refuse", "azure/hang", "azure/keep_alive", "dev", "etc/prolog.d",
           "etc/epilog.d", "layer", "log/scheduler/slurmctld", "nodes", PROGRAMS, "shared",
           "spool/slurmctld")  # fmt: skip
AZURE = "source /mnt/machine/azure.sh; "
MODES = {"slurmdbd.conf": 0o600}
"""slurmdbd refuses a file that others can read."""
IDLE_LINE = "sched: Running job scheduler for full queue"
"""What slurmctld logs every second whatever happens."""
DYNAMIC = ("-b", "-Z", "--conf")


class Cloud(Client):
    """Scheduler, nodes that come and go, and the Azure below them. Paths inside begin with /mnt."""

    shared_inside = "/mnt/shared"

    def __init__(self, folder: Path, holder: int, pools: Sequence[Pool], release: tuple[int, ...]) -> None:
        self.folder, self.pools = folder, {pool.name: pool for pool in pools}
        self.slurm_release = release
        """Of the Slurm that runs: (24, 11)."""
        self.shared = folder / "shared"
        self.holder = holder
        """The process that the namespaces belong to."""

    @property
    def keeps_reasons(self) -> bool:
        """Whether the reason of a drain outlives the drain, until a job begins there; 22.05 and 26.05 forget it."""
        return (24, 11) <= self.slurm_release < (26, 5)

    # What a test asks of the scheduler

    def run(self, script: str, *arguments: str, timeout_s: float = COMMAND_S, user: int = 0) -> Result:
        """Run Bash text on the scheduler, as root or as another user id. Code 124: it did not end in time."""
        identity = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []
        done = inside(self.holder, [*identity, *bash(script, *arguments)], timeout_s)
        return Result(done.returncode, done.stdout + done.stderr)

    def ok(self, script: str, *arguments: str, timeout_s: float = COMMAND_S) -> str:
        """Run Bash text on the scheduler as root; it must succeed. What it wrote to standard output."""
        return self._ok(bash(script, *arguments), f"{script} {arguments}", timeout_s)

    def slurm(self, *command: str) -> str:
        """Output of a Slurm command that must succeed, without a shell around it: nothing is asked for more often."""
        return self._ok(command, " ".join(command), COMMAND_S)

    def _ok(self, command: Sequence[str], shown: str, timeout_s: float) -> str:
        done = inside(self.holder, command, timeout_s)
        if done.returncode:
            said = f"{shown} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            raise AssertionError(f"{said}\n{self.report()}")
        return done.stdout

    def report(self) -> str:
        """What a failed test shows: Slurm's view, what power saving asked for, and the ends of all logs."""
        show = "pgrep -x slurmctld >/dev/null && { scontrol show nodes --oneliner; squeue -a; }"
        lines = ["--- Slurm", self.run(show, timeout_s=20).output, "--- calls", *self.calls()]
        for path in sorted((self.folder / "log").rglob("*")):
            if path.is_file():
                said = [line for line in path.read_text(errors="replace").splitlines() if IDLE_LINE not in line]
                lines += [f"--- {path.relative_to(self.folder)}", *said[-60:]]
        return "\n".join(lines)

    # The daemons of the scheduler

    def start_controller(self) -> None:
        """Start slurmctld and wait until it answers; one that ends instead fails the test with its log."""
        self.ok("slurmctld")
        self.wait("slurmctld answers", self._answers)

    def _answers(self) -> bool:
        if "UP" in self.run("scontrol ping", timeout_s=20).output:
            return True
        # It forks before it has read everything, so its end is not seen by who has started it.
        if self.run("pgrep -x slurmctld").code:
            raise AssertionError(f"slurmctld has ended\n{self.report()}")
        return False

    def start_accounting(self) -> None:
        """Start MariaDB and slurmdbd, and make the cluster known; before slurmctld, which registers there."""
        self.ok('/mnt/machine/accounting.sh "$1" >/dev/null', CLUSTER)

    def stop_controller(self) -> None:
        self.ok('pid=$(</run/slurmctld.pid); kill "$pid"; while pgrep -x slurmctld >/dev/null; do sleep 0.05; done')

    def configure(self, **files: str) -> None:
        """Replace files of /etc/slurm, named without their `.conf`, and let the daemons read them again."""
        for name, text in files.items():
            (self.folder / "etc" / f"{name}.conf").write_text(text)
        self.slurm("scontrol", "reconfigure")

    @contextmanager
    def with_settings(self, *lines: str) -> Iterator[None]:
        path = self.folder / "etc/slurm.conf"
        before = path.read_text()
        self.configure(slurm=before + "\n".join([*lines, ""]))
        try:
            yield
        finally:
            self.configure(slurm=before)

    # Azure

    def vms(self) -> set[str]:
        return set(self.ok(AZURE + "vm_list").split())

    def calls(self) -> list[str]:
        """What power saving has asked for, in order: `resume`, `suspend` or `resume_fail` and a host list."""
        path = self.folder / "azure/calls"
        return path.read_text().splitlines() if path.exists() else []

    def start(self, *names: str) -> None:
        """Create the VMs of nodes, as someone does in the portal of CycleCloud."""
        self.ok(AZURE + 'for name; do vm_start "${name}"; done', *names)

    def kill(self, name: str) -> None:
        """Take a node's VM away without a word to Slurm: an eviction, or someone in the portal."""
        self.ok(AZURE + 'vm_stop "$1"', name)

    @contextmanager
    def mark(self, kind: str, *names: str) -> Iterator[None]:
        """For a while, for these nodes. `refuse`: Azure has no capacity; `hang`: the VM starts, slurmd never does;
        `keep_alive`: the box in the portal."""
        for name in names:
            (self.folder / "azure" / kind / name).touch()
        try:
            yield
        finally:
            for name in names:
                (self.folder / "azure" / kind / name).unlink()

    def options(self, name: str, *words: str) -> None:
        """Options of a node's slurmd from its next start on, before its name."""
        (self.folder / "azure/options" / name).write_text("".join(f"{word}\n" for word in words))

    # States

    def add_dynamic(self, name: str, *features: str) -> None:
        """Create a node of a dynamic pool as an administrator does; the first feature is the pool's.

        Its slurmd has the options that cyclecloud-slurm gives it (install.py, setup_slurmd).
        """
        pool = next(pool for pool in self.pools.values() if name in pool.node_names)
        words = f"Feature={','.join(features)}"
        self.options(name, *DYNAMIC, words)
        size = [f"CPUs={pool.cpus}", f"RealMemory={pool.memory_mib}"]
        self.slurm("scontrol", "create", f"NodeName={name}", "State=CLOUD", words, *size)

    def restore(self) -> None:
        """No jobs, no VMs, every node powered down and free again: what a test may begin with."""
        self.run("scancel --quiet --user=root; scancel --quiet --state=PENDING")
        self.wait("no jobs", lambda: self.slurm("squeue", "-h", "-a") == "")
        for name, flags in self.all_flags().items():
            if not {"IDLE", "POWERED_DOWN"} <= flags:
                self.slurm("scontrol", "update", f"NodeName={name}", "State=POWER_DOWN_FORCE")
        self.wait("all nodes are powered down", self._all_off)
        assert self.vms() == set(), self.report()

    def _all_off(self) -> bool:
        off = True
        for name, flags in self.all_flags().items():
            if "POWERED_DOWN" in flags and not flags & {"IDLE"}:
                self.resume(name)
            off = off and {"IDLE", "POWERED_DOWN"} <= flags and "POWERING_DOWN" not in flags
        return off


@contextmanager
def running_cloud(
    pools: Sequence[Pool] = (Pool("hpc", 2, default=True),),
    lines: Sequence[str] = (),
    files: Mapping[str, str] | None = None,
    *,
    accounting: bool = False,
    start: bool = True,
    release: str = "",
    kind: type[Cloud] = Cloud,
) -> Iterator[Cloud]:
    """Start a cluster and end everything that belongs to it. Without `start` slurmctld is left to the test.

    With `accounting`, slurmdbd and a MariaDB begin before slurmctld, 2 s; skips where they are not and cannot be had.
    `release` is that of Slurm, `host` the host's own; empty: as the environment says (tests/bed/slurm/newer.py).

    A daemon that does not start fails the test with all logs.
    """
    _needs("unshare", "nsenter", "ip", "setpriv", "pkill", "munged", "slurmctld", "slurmd")
    if accounting:
        _needs("slurmdbd", "mariadbd", "mariadb-install-db")
    slurm = chosen_slurm(release)
    # Short: the path of a socket ends at 107 characters. Others than root must be able to enter.
    folder = Path(tempfile.mkdtemp(prefix="cf"))
    folder.chmod(0o755)
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        own = (ACCOUNTING if accounting else {}) | dict(files or {})
        _write(folder, config_files(pools, lines, slurm.release) | own, pools)
        cloud = kind(folder, stack.enter_context(_holder(folder, slurm)), pools, slurm.release)
        if accounting:
            cloud.start_accounting()
        if start:
            cloud.start_controller()
        yield cloud


def _write(folder: Path, files: Mapping[str, str], pools: Sequence[Pool]) -> None:
    for name in FOLDERS:
        (folder / name).mkdir(parents=True)
    (folder / "shared").chmod(0o1777)
    shutil.copytree(MACHINE, folder / "machine")
    (folder / "hosts").write_text(hosts(name for pool in pools for name in pool.node_names))
    for name, text in files.items():
        path = folder / "etc" / name
        path.write_text(text)
        path.chmod(MODES.get(name, 0o755 if ".d/" in name else 0o644))
    programs = folder / PROGRAMS
    for name in ("resume", "suspend"):
        shutil.copy(MACHINE / f"{name}_program.sh", programs)
    shutil.copy(MACHINE / "suspend_program.sh", programs / "resume_fail_program.sh")
    (programs / "prolog.sh").write_text("#!/usr/bin/env bash\nexit 0\n")
    (programs / "prolog.sh").chmod(0o755)


@contextmanager
def _holder(folder: Path, slurm: Slurm) -> Iterator[int]:
    """The process that the namespaces belong to; its child is their first process."""
    words = [folder, slurm.root] if slurm.root else [folder]
    kinds = ["--net", "--mount", "--uts", "--pid", "--mount-proc", "--propagation=private"]
    with subprocess.Popen(
        ["unshare", *kinds, "--fork", "--kill-child", "bash", str(MACHINE / "cluster.sh"), *map(str, words)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT,
    ) as process:  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            if process.stdout.readline() != b"ready\n":
                process.stdin.close()
                raise RuntimeError(f"no namespaces for a cluster: {process.stderr.read().decode(errors='replace')}")
            yield process.pid
        finally:
            if not process.stdin.closed:
                process.stdin.close()


def _needs(*programs: str) -> None:
    """Skip without root; a missing program fails the test where apt could have installed it, and skips it elsewhere."""
    if os.geteuid() != 0:
        pytest.skip("a cluster of its own needs root (mounts and namespaces)")
    missing = [program for program in programs if shutil.which(program, path=PATH) is None]
    if missing and shutil.which("apt-get"):
        pytest.fail(f"{', '.join(missing)} not found: run tests/install-tools.sh")
    if missing:
        pytest.skip(f"{', '.join(missing)} not found, and no apt to install them")
