"""The projects on nodes that really boot: systemctl, units, timers, the journal, apt, dpkg and needrestart are real."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.bed.machines.agent import SPECS, Agent
from tests.bed.machines.images import ALMA_9, CPU_NODE, GPU_NODE, LOGIN, SCHEDULER, UBUNTU_24, forbidden_calls
from tests.bed.machines.nodes import booted_image, booted_node, booted_on, inodes, rewritten, run_to_the_end, state
from tests.bed.machines.overlay import Machine, differences, saved

KNOWN_FAILED = {"nvmf-autoconnect.service"}
"""Of the image: it cannot work in a container."""


def runs(machine: Machine) -> dict[str, str]:
    """The invocation of every unit that is active: another one means that it was started again."""
    names = machine.ok("systemctl list-units --state=active --plain --no-legend --all | cut -d ' ' -f 1").split()
    shown = machine.ok('systemctl show --property=Id,InvocationID -- "$@"', *names)
    return dict(re.findall(r"Id=(\S+)\nInvocationID=(\w+)", shown))


def two_converges(machine: Machine, agent: Agent) -> None:
    """The second one changes, writes and starts nothing again; what is there then has the form that it should have."""
    run_to_the_end(agent)
    before, first = runs(machine), state(machine)
    files = inodes(machine, first)
    agent.forget_markers()
    run_to_the_end(agent)
    assert differences(first, state(machine)) == []
    assert rewritten(files, inodes(machine, first)) == []
    assert forbidden_calls(machine) == []
    after = runs(machine)
    assert {unit: before[unit] for unit in before.keys() & after.keys()} == {
        unit: started for unit, started in after.items() if unit in before
    }
    ours = machine.ok("cd /etc/systemd/system; ls -d cycleforge-*").split()
    assert ours
    assert machine.run('systemd-analyze verify "$@" 2>&1 | grep cycleforge', *ours).output == ""
    failed = machine.ok("systemctl list-units --failed --plain --no-legend | cut -d ' ' -f 1").split()
    assert set(failed) <= KNOWN_FAILED
    # Slurm's daemons start after all cluster-init, by someone else.
    daemons = "slurmd.service slurmctld.service munge.service"
    assert machine.run(f"systemctl is-active {daemons}").output.split() == ["inactive"] * 3
    assert machine.run(f"systemctl is-enabled {daemons}").output.split() == ["disabled"] * 3
    assert "-- No entries --" in machine.ok("journalctl --no-pager -u slurmd -u slurmctld -u munge")


def test_two_converges_of_a_scheduler() -> None:
    with booted_node(SCHEDULER) as (machine, agent):
        two_converges(machine, agent)
        assert machine.ok("systemctl is-active cycleforge-policy.timer") == "active\n"
        assert machine.ok("systemctl is-active cycleforge-guard.timer cycleforge-release.timer") == "active\n" * 2
        machine.ok("systemctl start cycleforge-guard.service")
        said = machine.ok("journalctl --sync; journalctl --no-pager -u cycleforge-guard")
        assert "Slurm does not answer, nothing is changed" in said
        assert "qos urgent" in machine.ok("cat /etc/cycleforge/policy.rows")


def test_two_converges_of_a_login_node() -> None:
    with booted_node(replace(LOGIN, system=UBUNTU_24)) as (machine, agent):
        two_converges(machine, agent)


def test_two_converges_of_an_el_node_after_which_dnf_does_nothing_by_itself() -> None:
    with booted_node(replace(CPU_NODE, system=ALMA_9)) as (machine, agent):
        assert "dnf-makecache.timer" in machine.ok("systemctl list-unit-files")
        machine.ok("systemctl start dnf-makecache.timer")
        two_converges(machine, agent)
        timers = "dnf-makecache.timer dnf-automatic.timer dnf-automatic-install.timer"
        assert machine.run(f"systemctl is-enabled {timers}").output == "masked\n" * 3
        assert "dnf" not in machine.ok("systemctl list-timers; systemctl list-units --failed")
        assert machine.ok("systemctl is-active chronyd") == "active\n"


def test_two_converges_of_a_gpu_node_and_what_its_units_promise_to_slurmd_and_do_after_a_deallocation() -> None:
    """The second boot finds an empty local disk: neither the specs nor what is on scratch is there any more."""
    with booted_image(GPU_NODE) as image, booted_on(GPU_NODE, image) as (machine, agent):
        two_converges(machine, agent)
        shown = machine.ok("systemctl show slurmd --property=After,Wants,RequiresMountsFor,LimitNOFILE,LimitMEMLOCK")
        slurmd = dict(line.split("=", 1) for line in shown.splitlines())
        units = machine.ok("cd /etc/systemd/system; ls -d cycleforge-*.service").split()
        states = machine.run('systemctl is-enabled -- "$@"', *units).output.split()
        at_boot = {unit for unit, state in zip(units, states, strict=True) if state == "enabled"}
        assert at_boot
        assert at_boot <= set(slurmd["After"].split())
        assert (slurmd["LimitNOFILE"], slurmd["LimitMEMLOCK"]) == ("1048576", "infinity")
        assert "/sched" in slurmd["RequiresMountsFor"]
        machine.ok(f"rm -rf {SPECS} /tmp/*")
        with saved(machine) as converged, booted_on(GPU_NODE, image, converged) as (second, _):
            for unit in at_boot:
                second.ok(f"systemctl start {unit}")
            assert second.ok('systemctl show --property=Result -- "$@"', *at_boot).split() == ["Result=success"] * len(
                at_boot
            )
