"""The short one: scratch on real disks from a converge, through a reboot, beside a disk that holds someone's data."""

from __future__ import annotations

import hashlib

import pytest

from tests.bed.vm.machine import machine
from tests.bed.vm.node import CONVERGE, MIB, PLACE, facts, job, journal

DISKS = {"BLANK0": 320 * MIB, "BLANK1": 320 * MIB, "DATA": 48 * MIB}
FORMAT_FOREIGN = """
for controller in /sys/class/nvme/nvme*; do
    [[ "$(tr -d ' ' <"$controller/serial")" != DATA ]] || mkfs.ext4 -q -L data "/dev/$(basename "$controller"/nvme*n1)"
done
sync
"""


# About a minute.
@pytest.mark.guard(3600)
def test_scratch_survives_a_reboot_and_a_foreign_disk_is_refused() -> None:
    attributes = {"slurm.role": "execute", "cycleforge.nvme.disks": "3", "cycleforge.nvme.wait_s": "20"}
    with machine(DISKS, job(attributes)) as vm:
        vm.ok(PLACE + FORMAT_FOREIGN)
        before = hashlib.sha256(vm.path("DATA").read_bytes()).hexdigest()
        vm.ok(CONVERGE % "10-nvme.sh")
        vm.ok("echo kept >/nvme/marker")
        made = facts(vm)
        assert (made["kind"], made["mode"], made["level"], made["disks"]) == ("xfs", "1777", "raid0", "2")
        vm.reboot()
        again = facts(vm)
        assert (again["marker"], again["UUID"], again["mode"]) == ("kept", made["UUID"], "1777")
        log = journal(vm, "cycleforge-nvme.service")
        assert "is assembled (2 disks)" in log
        assert "(holds ext4 data) alone: it is not empty and not ours" in log
        assert "slurmd sees /nvme: xfs" in journal(vm, "slurmd.service")
        vm.off()
        assert hashlib.sha256(vm.path("DATA").read_bytes()).hexdigest() == before
