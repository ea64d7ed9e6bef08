"""One node's life on eight NVMe disks: converge, reboot, deallocation, redeploy and a power cut."""

from __future__ import annotations

import json

import pytest

from tests.bed.vm.machine import machine
from tests.bed.vm.node import CONVERGE, MIB, PLACE, facts, job, journal, steps
from tests.size_attributes import size_attributes

DISKS = {f"LOCAL{number}": 128 * MIB for number in range(8)}
SIZE = "Standard_ND96amsr_A100_v4"
A100 = {"azure.metadata.compute.vmSize": SIZE, "slurm.role": "execute", **size_attributes(SIZE)}
SCRIPTS = "10-nvme.sh 30-limits.sh 40-nfs.sh"
WRITTEN = "find /etc /opt /var/lib/cycleforge -type f -newer /job -printf '%p %i %T@\\n' | sort"
# At its next call the power fails in the middle.
CUTTING_MKFS = """
sed 's|AT_ONCE|rm /usr/local/sbin/mkfs.xfs; sync|; s|IN_THE_MIDDLE|echo b >/proc/sysrq-trigger|' \\
    /job/mkfs.xfs >/usr/local/sbin/mkfs.xfs
chmod 755 /usr/local/sbin/mkfs.xfs
sync
"""


def seconds(shown: dict[str, str]) -> float:
    return (int(shown["ActiveEnterTimestampMonotonic"]) - int(shown["InactiveExitTimestampMonotonic"])) / 1e6


@pytest.mark.guard(3600)
def test_a_node_from_its_first_boot_to_a_power_cut() -> None:
    times: dict[str, object] = {}
    with machine(DISKS, job(A100)) as vm:
        # First boot: the node agent places the project and runs its scripts; slurmd starts when all have ended.
        vm.ok(PLACE)
        times["converge ms"] = steps(vm.ok(CONVERGE % SCRIPTS))
        log = journal(vm, "cycleforge-nvme.service")
        assert "9 local: 8 blank, 0 ours, 1 foreign" in log
        assert "leaving /dev/nvme0n1 (has the partition nvme0n1p1) alone" in log
        vm.ok("systemctl start slurmd.service; echo one >/nvme/marker")
        made = facts(vm)
        assert (made["kind"], made["mode"], made["level"], made["disks"]) == ("xfs", "1777", "raid0", "8"), log
        assert (made["LABEL"], made["ActiveState"]) == ("cycleforge", "active")
        assert made["UUID"].replace("-", "") == made["array"].replace(":", "").replace("-", "")
        times["unit, blank disks, ms"] = steps(log)

        # A second converge in the same boot changes nothing and does not run the unit again.
        before = vm.ok(WRITTEN)
        times["second converge ms"] = steps(vm.ok(CONVERGE % SCRIPTS))
        assert vm.ok(WRITTEN) == before
        assert facts(vm) == made

        # A reboot: udev has assembled the disks, whatever their order and number; slurmd comes after the mount.
        vm.reboot()
        again = facts(vm)
        assert (again["marker"], again["UUID"], again["mode"]) == ("one", made["UUID"], "1777")
        log = journal(vm, "cycleforge-nvme.service")
        assert "is assembled (8 disks)" in log
        said = vm.ok("journalctl --boot --output cat --no-pager --unit slurmd.service --unit cycleforge-nvme.service")
        assert said.index("misc_ndv4: result: mounted true") < said.index("Started slurmd.service")
        assert said.index("Started slurmd.service") < said.index("slurmd sees /nvme: xfs")
        assert "LimitMEMLOCK=infinity" in vm.ok("systemctl show slurmd.service --property LimitMEMLOCK")
        assert vm.ok("modprobe sunrpc && cat /proc/sys/sunrpc/tcp_max_slot_table_entries") == "128"
        times["unit, reboot, ms"] = steps(log) | {"whole": round(1000 * seconds(again))}

        # Deallocation: the same root disk, eight blank disks.
        vm.off()
        vm.wipe()
        vm.boot()
        fresh = facts(vm)
        assert (fresh["kind"], fresh["disks"], fresh["mode"], fresh["marker"]) == ("xfs", "8", "1777", "")
        assert fresh["UUID"] != made["UUID"]
        assert "slurmd sees /nvme: xfs" in journal(vm, "slurmd.service")
        log = journal(vm, "cycleforge-nvme.service")
        times["unit, deallocated, ms"] = steps(log) | {"whole": round(1000 * seconds(fresh))}

        # Redeploy: one disk was exchanged, so the array is lost and is built anew, without a wait; it shows the file
        # system of the former one. While it is formatted, the power fails.
        vm.ok(f"echo two >/nvme/marker\n{CUTTING_MKFS}")
        vm.off()
        vm.wipe("LOCAL3")
        vm.boot_and_lose_power()
        vm.boot()
        rebuilt = facts(vm)
        assert (rebuilt["kind"], rebuilt["disks"], rebuilt["mode"], rebuilt["marker"]) == ("xfs", "8", "1777", "")
        assert rebuilt["UUID"].replace("-", "") == rebuilt["array"].replace(":", "").replace("-", "")
        assert rebuilt["UUID"] not in (made["UUID"], fresh["UUID"])
        log = journal(vm, "cycleforge-nvme.service")
        assert "is assembled (8 disks)" in log
        assert "unfinished file system, formatting it again" in log
        assert "slurmd sees /nvme: xfs" in journal(vm, "slurmd.service")
        told = vm.ok("journalctl --boot=-1 --output cat --no-pager --unit cycleforge-nvme.service")
        assert "our array has 7 of 8 disks or does not assemble; its scratch data is gone, building it anew" in told
        assert "shows the file system of a former array, formatting it" in told
        assert steps(told)["local disks"] < 60_000, "the missing disk was waited for"
        vm.ok("dd if=/dev/zero of=/nvme/full bs=1M status=none; sync; umount /nvme && xfs_repair -n /dev/md127")
        times["boots s"] = [round(boot, 1) for boot in vm.boots]
    print(json.dumps(times, indent=1))
