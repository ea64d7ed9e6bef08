"""misc_ubuntu on a booted node: what it switches off is really off, and what it waits for is really waited for.

One machine for all: each test finds it as if the project had never run, and runs those of its scripts that matter.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.bed.machines.agent import HOME, Agent
from tests.bed.machines.images import LOGIN
from tests.bed.machines.nodes import CHRONY_CONTAINER, QUICK, UNCONDITIONAL, booted_node
from tests.bed.machines.overlay import Machine

PROJECT = "misc_ubuntu"

APT_UNITS = "apt-daily.timer apt-daily-upgrade.timer apt-daily.service apt-daily-upgrade.service"
# An update that takes a while.
UPDATE = "[Service]\nExecStartPre=\nExecStart=\nExecStart=/bin/sh -c 'sleep 1.5; touch /run/updated'\n"
# Every file that the project writes names it in its first lines, but for the stamps of what was applied.
ANEW = """
cd /etc/systemd/system
find . -maxdepth 1 -lname /dev/null -delete
grep -rlZ 'CycleForge (misc_ubuntu)' /etc | xargs -0 --no-run-if-empty rm
rm -rf /var/lib/cycleforge /dev/ptp_hyperv
systemctl daemon-reload
"""
KERNEL = """
mkdir -p /root/deb/DEBIAN
printf 'Package: linux-image-6.8.0-1030-azure\\nVersion: %s\\nArchitecture: all\\nMaintainer: nobody <n@localhost>\\n\
Description: a kernel package\\n' "$1" >/root/deb/DEBIAN/control
dpkg-deb --build /root/deb "/root/kernel-$1.deb"
"""
# As dpkg and apt take them: record locks of the kernel, which end with the process.
HOLD_LOCK = """
import fcntl, sys, time
held = [open(path, "w") for path in ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock")]
for file in held:
    fcntl.lockf(file, fcntl.LOCK_EX)
open("/run/locked", "w").close()
time.sleep(float(sys.argv[1]))
open("/run/unlocked", "w").close()
"""


def hold_lock(machine: Machine, seconds: float) -> None:
    """Another program holds the package lock for so long."""
    machine.write("/run/hold.py", HOLD_LOCK)
    machine.ok(
        "rm -f /run/locked /run/unlocked; systemd-run --quiet --collect --unit=holder python3 /run/hold.py $1; "
        "until [[ -e /run/locked ]]; do sleep 0.02; done",
        str(seconds),
    )


@pytest.fixture(scope="module")
def booted() -> Iterator[tuple[Machine, Agent]]:
    with booted_node(LOGIN, {"/etc/systemd/system/apt-daily.service.d/slow.conf": UPDATE}) as node:
        yield node


@pytest.fixture
def node(booted: tuple[Machine, Agent]) -> Iterator[tuple[Machine, Agent]]:
    """The machine as the image made it, without attributes that a test has set."""
    machine, agent = booted
    yield machine, agent
    machine.write(CHRONY_CONTAINER, UNCONDITIONAL)
    machine.ok(ANEW)
    for path in machine.path(f"{HOME}/config/attributes").iterdir():
        if path.name not in LOGIN.attributes():
            path.unlink()


def run(agent: Agent, name: str) -> str:
    (script,) = [script for script in agent.scripts if (script.project, script.name) == (PROJECT, name)]
    ran = agent.run(script, **QUICK)
    assert ran.code == 0, ran.output
    return ran.output


def test_background_updates_are_off_for_good(node: tuple[Machine, Agent]) -> None:
    """A running one is not stopped in the middle, it ends by itself; and the next one cannot start."""
    machine, agent = node
    machine.ok("systemctl start apt-daily.timer apt-daily-upgrade.timer unattended-upgrades")
    assert "apt-daily" in machine.ok("systemctl list-timers")
    machine.ok("systemctl start --no-block apt-daily.service")
    machine.ok("until [[ $(systemctl is-active apt-daily.service) == activating ]]; do sleep 0.02; done")
    output = run(agent, "10-automatic-updates.sh")
    assert "running update: no update is running" in output
    machine.ok("test -e /run/updated")
    assert "apt timers: 2 masked" in output
    assert machine.run(f"systemctl is-enabled {APT_UNITS} unattended-upgrades").output.split() == ["masked"] * 5
    assert "apt-daily" not in machine.ok("systemctl list-timers; systemctl list-units --failed")
    assert "is masked" in machine.run("systemctl start apt-daily-upgrade.service").output
    # A package that switches its timers on again cannot.
    machine.ok("deb-systemd-helper enable apt-daily.timer || true")
    assert machine.run("systemctl is-enabled apt-daily.timer").output == "masked\n"
    settings = machine.ok("apt-config dump | grep -E 'Periodic|Lock::Timeout'")
    assert 'APT::Periodic::Enable "0";' in settings
    assert 'APT::Periodic::Unattended-Upgrade "0";' in settings
    assert 'DPkg::Lock::Timeout "300";' in settings


def test_the_package_lock_is_waited_for(node: tuple[Machine, Agent]) -> None:
    """And named where it is never released."""
    machine, agent = node
    for version in ("1", "2"):
        machine.ok(KERNEL, version)
    machine.ok("dpkg --install /root/kernel-1.deb")
    assert machine.ok("apt-mark showhold") == ""
    agent.attribute("cycleforge.apt.wait_s", 1)
    hold_lock(machine, 600)
    (holds,) = [script for script in agent.scripts if script.name == "20-package-holds.sh"]
    ran = agent.run(holds)
    assert ran.code == 1
    assert "apt-mark hold did not succeed within 1 s" in ran.output
    assert not agent.is_done(holds)
    machine.ok("systemctl stop holder")
    agent.attribute("cycleforge.apt.wait_s", 300)
    run(agent, "10-automatic-updates.sh")
    hold_lock(machine, 1.2)
    assert "1 newly held: linux-image-6.8.0-1030-azure" in run(agent, holds.name)
    machine.ok("test -e /run/unlocked")
    assert machine.ok("apt-mark showhold") == "linux-image-6.8.0-1030-azure\n"
    refused = machine.run("apt-get install --yes /root/kernel-2.deb")
    assert refused.code != 0
    assert "Held packages were changed" in refused.output
    # Whoever installs after us waits too, by the setting that we left.
    hold_lock(machine, 1.2)
    machine.ok("apt-get install --yes --allow-change-held-packages /root/kernel-2.deb; test -e /run/unlocked")


# A service whose program was replaced below it, which is what needrestart looks for, and needrestart set to restart.
OUTDATED = """
systemctl stop napper 2>/dev/null
rm -f /usr/local/bin/napper
cp /bin/sleep /usr/local/bin/napper
systemd-run --quiet --unit=napper --collect /usr/local/bin/napper 600
until grep -q napper /proc/$(systemctl show --property=MainPID --value napper)/maps; do sleep 0.02; done
cp /usr/local/bin/napper /usr/local/bin/new
mv /usr/local/bin/new /usr/local/bin/napper
echo "\\$nrconf{restart} = 'a';" >/etc/needrestart/conf.d/50-automatic.conf
systemctl show --property=MainPID --value napper
needrestart -v 2>&1
systemctl show --property=MainPID --value napper
"""


def test_needrestart_restarts_nothing_any_more(node: tuple[Machine, Agent]) -> None:
    machine, agent = node
    output = machine.ok(OUTDATED).splitlines()
    assert "systemctl restart napper.service" in "\n".join(output)
    assert output[0] != output[-1]
    run(agent, "10-automatic-updates.sh")
    output = machine.ok(OUTDATED).splitlines()
    assert "eval /etc/needrestart/conf.d/99-cycleforge.conf" in "\n".join(output)
    assert output[0] == output[-1]


def test_logs_and_cores_are_bounded(node: tuple[Machine, Agent]) -> None:
    machine, agent = node
    agent.attribute("cycleforge.journal.max_mib", 64)
    machine.ok("useradd --create-home researcher")
    run(agent, "30-logs-and-cores.sh")
    assert "max 64.0M" in machine.ok(
        "journalctl --no-pager --unit systemd-journald | grep 'System Journal' | tail -n 1"
    )
    # A log of 20 MiB and one of 1 MiB, both due next week.
    machine.ok("truncate --size 20M /var/log/syslog; truncate --size 1M /var/log/auth.log; systemctl start logrotate")
    assert machine.ok("cd /var/log; ls syslog.* auth.log.* 2>/dev/null || true") == "syslog.1\n"
    assert "OnCalendar=*-*-* *:00:00 ;" in machine.ok("systemctl show logrotate.timer --property=TimersCalendar")
    assert machine.read("/proc/sys/kernel/core_pattern") == "core.%e.%p\n"
    assert machine.ok("su - researcher -c 'ulimit -S -c; ulimit -H -c; ulimit -c unlimited; ulimit -c'") == (
        "0\nunlimited\nunlimited\n"
    )
    machine.ok("systemctl daemon-reload")
    assert machine.ok("systemd-run --quiet --wait --pipe sh -c 'ulimit -S -c; ulimit -H -c'") == "0\nunlimited\n"


def test_a_kernel_that_takes_no_pattern_fails_no_node(node: tuple[Machine, Agent]) -> None:
    machine, agent = node
    settings = "kernel/core_pattern fs/suid_dumpable"
    machine.ok(f"cd /proc/sys; umount {settings}")
    try:
        assert "it holds from the next boot on" in run(agent, "30-logs-and-cores.sh")
    finally:
        machine.ok(f"for each in {settings}; do mount --bind /run/faked/$each /proc/sys/$each; done")


def clock_service(machine: Machine, drop_in: str) -> None:
    """As the boot of an image with this drop-in leaves it: started, if it can be."""
    machine.write(CHRONY_CONTAINER, drop_in)
    machine.ok("systemctl daemon-reload; systemctl restart chrony")


def test_the_clock_service_runs_also_where_it_cannot_read_the_clock_of_the_host(node: tuple[Machine, Agent]) -> None:
    machine, agent = node
    machine.ok("systemctl disable --now chrony; touch /dev/ptp_hyperv")
    output = run(agent, "40-time.sh")
    assert "clock service: chrony.service was off, now it runs" in output
    assert "chrony does not start with /dev/ptp_hyperv; it goes on" in output
    assert machine.ok("systemctl is-enabled chrony; systemctl is-active chrony") == "enabled\nactive\n"


def test_chronyd_reads_our_line_for_the_clock_of_the_host(node: tuple[Machine, Agent]) -> None:
    """The device is the host's and not here, so chronyd reads its settings and does not open it."""
    machine, agent = node
    only_read = "[Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=\nExecStart=/usr/sbin/chronyd -p\n"
    clock_service(machine, UNCONDITIONAL + only_read)
    machine.ok("touch /dev/ptp_hyperv")
    assert "host clock: /etc/chrony/conf.d/cycleforge.conf, written" in run(agent, "40-time.sh")
    # Of its last start alone: other tests had their own.
    started = "_SYSTEMD_INVOCATION_ID=$(systemctl show --property=InvocationID --value chrony)"
    read = machine.ok(f"journalctl --sync; journalctl --no-pager --output cat {started}")
    assert "refclock PHC /dev/ptp_hyperv poll 3 dpoll -2 offset 0 stratum 2" in read


@pytest.mark.parametrize("capable", [True, False])
def test_a_clock_service_that_does_not_start_is_not_taken_for_running(
    capable: bool, node: tuple[Machine, Agent]
) -> None:
    machine, agent = node
    clock_service(machine, UNCONDITIONAL + ("" if capable else "ConditionCapability=CAP_SYS_TIME\n"))
    assert ("no clock service runs" in run(agent, "40-time.sh")) != capable


BLOBFUSE = """#!/bin/sh
# Mounts something and stays in the foreground, as blobfuse2 does; unmounts on request.
case "$1" in
    mount) test -r "${3#--config-file=}" && mount -t tmpfs blobfuse2 "$2" && exec sleep 3600 ;;
    unmount) exec umount "$2" ;;
esac
"""


def test_blob_containers_are_mounted_by_units(node: tuple[Machine, Agent]) -> None:
    machine, agent = node
    machine.write("/usr/bin/blobfuse2", BLOBFUSE, 0o755)
    agent.attribute("cycleforge.blobfuse.mounts", "data")
    for key, value in {"path": "/blob/data", "storage_account": "account1", "container": "sets"}.items():
        agent.attribute(f"cycleforge.blobfuse.data.{key}", value)
    run(agent, "60-blobfuse.sh")
    assert machine.ok("findmnt --noheadings --output SOURCE /blob/data; systemctl is-enabled cycleforge-blob-data") == (
        "blobfuse2\nenabled\n"
    )
    agent.attribute("cycleforge.blobfuse.mounts", "")
    run(agent, "60-blobfuse.sh")
    assert machine.run("findmnt /blob/data").code == 1
    assert "could not be found" in machine.run("systemctl status cycleforge-blob-data").output
