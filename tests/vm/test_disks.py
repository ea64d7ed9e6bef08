"""The disk program on real NVMe disks that come, go, belong to others or arrive late; many scenarios in one boot."""

from __future__ import annotations

import hashlib
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.bed.vm.machine import Machine, machine
from tests.bed.vm.node import MIB, job

BLANK = dict.fromkeys(("BLANK0", "BLANK1", "BLANK2", "BLANK3"), 320 * MIB)
OTHERS = dict.fromkeys(("EXT4", "GPT", "LVM", "MD", "REMOTE", "BROKEN"), 48 * MIB)
PROGRAM = """
mkdir -p /opt/cycleforge/misc_ndv4 /etc/cycleforge
printf 'mount_point=/nvme\\nexpected_disks=0\\nwait_s=0\\n' >/etc/cycleforge/nvme.conf
cp /job/spec/files/{cycleforge,nvme,nvme-disks,gpu}.sh /opt/cycleforge/misc_ndv4/
"""


class Disks:
    """Commands with the library of `disks.sh`, and the disks' files as seen from outside."""

    def __init__(self, vm: Machine) -> None:
        self.vm = vm

    def __call__(self, script: str) -> str:
        return self.vm.ok(f". /job/disks.sh\n{script}")

    def digest(self, serial: str) -> str:
        self.vm.ok("sync")
        return hashlib.sha256(self.vm.path(serial).read_bytes()).hexdigest()


def lvm_label() -> bytes:
    """The first two sectors of a physical volume of LVM, as pvcreate writes them: the label is in the second one."""
    header = b"0123456789abcdefghijklmnopqrstuv" + struct.pack("<Q", 48 * MIB) + bytes(64)
    body = struct.pack("<I", 32) + b"LVM2 001" + header
    body = body.ljust(512 - 20, b"\0")
    checksum = ~zlib.crc32(body, ~0xF597A6CF & 0xFFFFFFFF) & 0xFFFFFFFF
    return bytes(512) + b"LABELONE" + struct.pack("<QI", 1, checksum) + body


def one_disk_and_the_next_boot(disks: Disks) -> None:
    log = disks("fresh BLANK0; nvme 1; echo kept >/nvme/marker; shown; again; nvme 1; shown")
    assert "alone, no array" in log
    assert log.count("xfs 1777 \n") + log.count("xfs 1777 kept") == 2, log
    assert "1 ours" in log


def no_disk(disks: Disks) -> None:
    log = disks("fresh; nvme; shown")
    assert "no disk to use" in log
    assert "mounted false" in log


def late_disks(disks: Disks) -> None:
    log = disks("fresh BLANK0 BLANK1; (sleep 2; only BLANK0 BLANK1 BLANK2 BLANK3) & nvme 5 60; wait; shown")
    assert "created (4 disks)" in log
    assert "xfs 1777" in log


def two_runs_at_once(disks: Disks) -> None:
    log = disks("fresh BLANK0 BLANK1; nvme >/run/other & nvme; wait; cat /run/other; shown; grep -c ^md /proc/mdstat")
    assert log.count("created (2 disks)") == 1
    assert "existing mount: /nvme is mounted (/dev/md127)" in log
    assert log.endswith("\n1")


def killed_in_the_middle_of_mkfs(disks: Disks) -> None:
    """SIGKILL to mkfs and to the script that called it, after the first block of the file system was written."""
    log = disks("""
fresh BLANK0 BLANK1
sed 's|AT_ONCE|:|; s|IN_THE_MIDDLE|kill -9 $! "$(</run/script)"; exit|' /job/mkfs.xfs >/usr/local/sbin/mkfs.xfs
chmod 755 /usr/local/sbin/mkfs.xfs
(echo "$BASHPID" >/run/script; exec bash /opt/cycleforge/misc_ndv4/nvme.sh) || echo "killed $?"
rm /usr/local/sbin/mkfs.xfs
shown; again; nvme; shown; echo old >/nvme/marker""")
    assert "killed 137" in log
    assert "shown: nothing" in log
    assert "is assembled (2 disks)" in log
    assert "unfinished file system, formatting it again" in log
    assert "md127 xfs 1777" in log


def killed_after_the_superblocks(disks: Disks) -> None:
    """The next boot finds our array, which shows the file system of the former one: a leftover, not a result.

    The disks are those of the scenario before.
    """
    log = disks("""
release; mdadm --zero-superblock "/dev/$(device BLANK0)" "/dev/$(device BLANK1)"; again
cat >/usr/local/sbin/mdadm <<'MDADM'
#!/bin/bash
/usr/sbin/mdadm "$@"
[[ "$1" != --create ]] || kill -9 "$(</run/script)"
MDADM
chmod 755 /usr/local/sbin/mdadm
(echo "$BASHPID" >/run/script; exec bash /opt/cycleforge/misc_ndv4/nvme.sh) || echo "killed $?"
rm /usr/local/sbin/mdadm
echo "left: $(blkid -p -s TYPE -o value /dev/md127)"
again; nvme; shown""")
    assert "killed 137" in log
    assert "left: xfs" in log
    assert "shows the file system of a former array, formatting it" in log
    assert log.endswith("md127 xfs 1777 ")


def disks_of_others(disks: Disks) -> None:
    """ext4 with data, a partition table, LVM, half of a foreign RAID 1, one that is mounted, remote, broken."""
    disks("""
fresh EXT4 GPT LVM MD REMOTE BROKEN BLANK0 BLANK1
dd if=/job/lvm of="/dev/$(device LVM)" conv=fsync status=none
mkfs.ext4 -q -L data "/dev/$(device EXT4)"
python3 - "/dev/$(device GPT)" <<'PYTHON'
import sys
disk = open(sys.argv[1], "r+b")
disk.seek(446)
disk.write(bytes([0, 0, 2, 0, 0x83, 255, 255, 255, 0, 8, 0, 0, 0, 8, 0, 0]))
disk.seek(510)
disk.write(b"\\x55\\xaa")
PYTHON
mdadm --create /dev/md/data --run --level=1 --raid-devices=2 --metadata=1.2 --name=data "/dev/$(device MD)" missing
sync; again; release""")
    before = {serial: disks.digest(serial) for serial in OTHERS}
    log = disks("""
echo "MSFT NVMe Accelerator v1.0" >/run/model
mount --bind /run/model "/sys/block/$(device REMOTE)/device/model"
udevadm trigger --settle "/sys/block/$(device REMOTE)"
mkdir -p /opt/db; mount -o ro,noload "/dev/$(device EXT4)" /opt/db
for serial in EXT4 GPT LVM MD REMOTE BROKEN; do echo "$serial=$(device "$serial")"; done
nvme; shown
umount "/sys/block/$(device REMOTE)/device/model"; umount /opt/db""")
    names = dict(line.split("=") for line in log.splitlines()[:6])
    assert f"leaving /dev/{names['EXT4']} (mounted at /opt/db) alone" in log
    assert f"leaving /dev/{names['GPT']} (has the partition {names['GPT']}p1) alone" in log
    assert f"leaving /dev/{names['LVM']} (holds LVM2_member) alone" in log
    assert f"leaving /dev/{names['MD']} (" in log
    assert f"leaving /dev/{names['BROKEN']} (unreadable or ambiguous) alone" in log
    assert f"/dev/{names['REMOTE']}" not in log
    assert "created (2 disks)" in log
    log = disks("again; nvme; shown; release")
    assert "(holds ext4 data) alone" in log
    assert "is assembled (2 disks)" in log
    assert {serial: disks.digest(serial) for serial in OTHERS} == before


def a_mount_of_the_image(disks: Disks) -> None:
    log = disks("""
fresh BLANK0 BLANK1
mdadm --create /dev/md128 --run --level=0 --raid-devices=2 "/dev/$(device BLANK0)" "/dev/$(device BLANK1)"
mkfs.xfs -q /dev/md128; mkdir -p /mnt/resource_nvme; mount /dev/md128 /mnt/resource_nvme
echo image >/mnt/resource_nvme/marker
nvme 2; shown; nvme 2; findmnt --noheadings --output TARGET /dev/md128; stat -c %a /mnt/resource_nvme""")
    assert "/mnt/resource_nvme (/dev/md128) bound to /nvme" in log
    assert "md128 xfs 1777 image" in log
    assert log.count("bound to /nvme") == 1
    assert log.endswith("1777")


def the_driver_is_loaded_again(disks: Disks) -> None:
    """udev restarts the GPU unit. A module that is there stands for NVIDIA's."""
    log = disks.vm.ok("""
printf 'clocks=max\\npersistence=true\\nexpected_gpus=0\\nvendor=\\n' >/etc/cycleforge/gpu.conf
cp /job/spec/files/cycleforge-gpu.service /etc/systemd/system/
sed 's/KERNEL=="nvidia"/KERNEL=="raid10"/' /job/spec/files/90-cycleforge-gpu.rules >/etc/udev/rules.d/90-test.rules
udevadm control --reload; systemctl daemon-reload
modprobe raid10; udevadm settle; systemctl is-active cycleforge-gpu.service || true; rmmod raid10
systemctl start cycleforge-gpu.service; first="$(systemctl show -P InvocationID cycleforge-gpu.service)"
modprobe raid10; udevadm settle
for i in {1..100}; do
    now="$(systemctl show -P InvocationID cycleforge-gpu.service)"
    [[ "$now" == "$first" ]] || break
    sleep 0.1
done
[[ "$now" != "$first" ]] && systemctl is-active cycleforge-gpu.service""")
    assert log.splitlines() == ["inactive", "active"]


SCENARIOS: tuple[Callable[[Disks], None], ...] = (
    one_disk_and_the_next_boot, no_disk, late_disks, two_runs_at_once, killed_in_the_middle_of_mkfs,
    killed_after_the_superblocks, disks_of_others, a_mount_of_the_image, the_driver_is_loaded_again,
)  # fmt: skip


@pytest.mark.guard(3600)
def test_disks_in_one_boot() -> None:
    files = job({}) | {"disks.sh": (Path(__file__).parents[1] / "bed/vm/disks.sh").read_bytes(), "lvm": lvm_label()}
    with machine(BLANK | OTHERS, files, broken={"BROKEN"}, cpus=1) as vm:
        vm.ok(PROGRAM)
        disks = Disks(vm)
        for scenario in SCENARIOS:
            scenario(disks)
