"""Throw-away machines that boot: an overlay in which systemd runs as the first process, by systemd-nspawn.

    with booted_machine(node_root()) as machine:
        machine.ok("systemctl is-active dbus")

About a second each. systemctl, units, timers, drop-ins and the journal are real; the kernel is the host's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.bed.machines.overlay import Bind, Machine, MachineError, Network, children, held
from tests.bed.machines.roots import needs

BOOT_S = 600
"""Enough for two busy cores; an idle machine is up in about half a second."""
FIRST_LOOK_S = 0.35
"""No machine is up before."""

QUIET = (
    "apt-daily-upgrade.timer", "apt-daily.timer", "console-getty.service", "dpkg-db-backup.timer",
    "e2scrub_all.timer", "e2scrub_reap.service", "logrotate.timer", "nvmf-autoconnect.service", "rsyslog.service",
    "syslog.socket", "sysstat.service", "sysstat-collect.timer", "sysstat-summary.timer", "systemd-logind.service",
    "systemd-tmpfiles-clean.timer", "systemd-update-utmp.service", "systemd-update-utmp-runlevel.service",
    "unattended-upgrades.service",
)  # fmt: skip
"""Units of the image that a test need not have, unless it is about them: 40 % of the work of a boot."""


@contextmanager
def booted_machine(
    base: Path,
    *layers: Path,
    name: str = "node-1",
    binds: Sequence[Bind] = (),
    network: Network = "none",
    masked: Sequence[str] = (),
) -> Iterator[Machine]:
    """A machine that has reached multi-user.target, without the units that are masked."""
    needs("unshare", "nsenter", "mount", "ip", "systemd-nspawn")
    lower = [*reversed(layers), base]
    environment = {"CGROUPS": " ".join(map(str, _control_groups())), "MASKED": " ".join(masked)}
    with held("booted", lower, name, binds, network, environment) as (holder, folder):
        (shell,) = children(holder)
        leader = _wait_until_booted(shell, name)
        # Its root as it sees it itself: /run, /tmp and /dev are its own mounts.
        root, upper = Path(f"/proc/{leader}/root"), Path(f"/proc/{shell}/root{folder}/u")
        yield Machine(name, leader, root, upper, lower, _enter(leader))


def _enter(leader: int) -> list[str]:
    # --root: the test itself may run in a chroot, and then the namespace begins above the container.
    return ["nsenter", f"--target={leader}", "--all", "--root", "--wd", "--"]


def _wait_until_booted(shell: int, name: str) -> int:
    deadline, pause = time.monotonic() + BOOT_S, 0.1
    time.sleep(FIRST_LOOK_S)
    while time.monotonic() < deadline:
        with suppress(FileNotFoundError, ProcessLookupError, IndexError):
            leader = children(children(shell)[0])[0]
            machine = Machine(name, leader, Path(), Path(), (), _enter(leader))
            if machine.run("systemctl is-active --quiet multi-user.target").code == 0:
                return leader
        time.sleep(pause)
        # Each look is processes in the machine, and work for the systemd that is waited for.
        pause = min(pause * 1.5, 0.5)
    raise MachineError(f"{name} did not boot within {BOOT_S} s")


def _control_groups() -> Iterator[Path]:
    """Our own groups: of the unified hierarchy and, on older set-ups, of systemd's named one."""
    mounted = {}
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, kind = line.split(), line.split(" - ")[1].split()
        if kind[0] == "cgroup2" or (kind[0] == "cgroup" and "name=systemd" in kind[2].split(",")):
            mounted["" if kind[0] == "cgroup2" else "name=systemd"] = Path(fields[4])
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in mounted:
            yield mounted[controllers] / path.lstrip("/")
