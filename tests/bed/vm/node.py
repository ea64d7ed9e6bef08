"""A compute node in a virtual machine: our project placed and run as CycleCloud's node agent does it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import PurePosixPath

from generator.files import assets
from generator.projects.content import contents
from generator.projects.ini import read_project
from tests.bed.vm.machine import Machine

MIB = 2**20
PROJECT = "misc_ndv4"
SPEC = f"/mnt/cluster-init/{PROJECT}/default"
JETPACK = """#!/bin/bash
# Stand-in for the node agent: attributes are files.
[[ "$1" == config ]] || exit 2
if [[ -e "/job/attributes/$2" ]]; then cat "/job/attributes/$2"; else echo "${3:-None}"; fi
"""
SLURMD = """[Unit]
Description=Stand-in for slurmd
After=local-fs.target
[Service]
ExecStart=/bin/bash -c 'echo "slurmd sees /nvme: $(findmnt -n -o FSTYPE /nvme || echo none)"; exec sleep infinity'
[Install]
WantedBy=multi-user.target
"""
# A mkfs.xfs that something happens to: it gets little of the processor, so that the moment is seen when the new
# superblock is on the disk and still marked unfinished (byte 126, sb_inprogress).
MKFS = """#!/bin/bash
AT_ONCE
slow=/sys/fs/cgroup/slow
mkdir -p $slow
echo +cpu >/sys/fs/cgroup/cgroup.subtree_control
echo 8000 100000 >$slow/cpu.max
(echo "$BASHPID" >$slow/cgroup.procs; exec /usr/sbin/mkfs.xfs "$@") &
while kill -0 $! 2>/dev/null; do
    if (($(od -An -tu1 -j126 -N1 "${@: -1}") == 1)); then IN_THE_MIDDLE; fi
done
wait $!
"""
PLACE = f"""set -e
mkdir -p {SPEC}
cp -r /job/spec/. {SPEC}/
install -m 755 /job/jetpack /usr/local/bin/jetpack
install -m 644 /job/slurmd.service /etc/systemd/system/slurmd.service
# As enabled, without the minute of Perl and reloads that `systemctl enable` is under emulation.
ln -sf ../slurmd.service /etc/systemd/system/multi-user.target.wants/slurmd.service
"""
CONVERGE = f"""
export CYCLECLOUD_SPEC_PATH={SPEC} CYCLECLOUD_PROJECT_NAME={PROJECT} CYCLECLOUD_SPEC_NAME=default
for script in %s; do
    chmod +x "{SPEC}/scripts/$script"
    "{SPEC}/scripts/$script" || {{ echo "FAILED $script"; exit 1; }}
done
"""
FACTS = """
source="$(findmnt -n -o SOURCE --mountpoint /nvme | tail -n 1)"
device="${source#/dev/}"
echo "source=$source"
echo "kind=$(findmnt -n -o FSTYPE --mountpoint /nvme)"
echo "mode=$(stat -c %a /nvme 2>/dev/null)"
echo "level=$(cat "/sys/block/$device/md/level" 2>/dev/null)"
echo "disks=$(cat "/sys/block/$device/md/raid_disks" 2>/dev/null)"
echo "array=$(cat "/sys/block/$device/md/uuid" 2>/dev/null || mdadm --detail --export "$source" | sed -n s/MD_UUID=//p)"
blkid -p -o export "$source" | grep -E '^(UUID|LABEL)='
echo "marker=$(cat /nvme/marker 2>/dev/null)"
systemctl show -p ActiveState -p InvocationID -p InactiveExitTimestampMonotonic -p ActiveEnterTimestampMonotonic \
    cycleforge-nvme.service
"""


def job(attributes: Mapping[str, str]) -> dict[str, bytes]:
    """What the machine needs below /job: the rendered spec, the agent's stand-in and the node attributes."""
    files = {"jetpack": JETPACK.encode(), "slurmd.service": SLURMD.encode(), "mkfs.xfs": MKFS.encode()}
    start = PurePosixPath("specs/default/cluster-init")
    for path, file in contents(read_project(assets.folder("projects") / PROJECT), shipped=True).items():
        if path.is_relative_to(start):
            files[f"spec/{path.relative_to(start)}"] = file.content
    for key, value in attributes.items():
        files[f"attributes/{key}"] = f"{value}\n".encode()
    return files


def facts(vm: Machine) -> dict[str, str]:
    """What a user of the scratch file system and an administrator would see."""
    return dict(line.split("=", 1) for line in vm.ok(FACTS).splitlines())


def journal(vm: Machine, unit: str) -> str:
    return vm.ok(f"journalctl --boot --unit {unit} --output cat --no-pager")


def steps(output: str) -> dict[str, int]:
    """Milliseconds per step, from the log lines of our scripts."""
    return {name: int(ms) for name, ms in re.findall(r" misc_ndv4: ([^:]+): .*\((\d+) ms\)$", output, re.MULTILINE)}
