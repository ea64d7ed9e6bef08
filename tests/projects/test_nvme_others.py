"""misc_ndv4, local NVMe disks: disks of others, mounts of the image and of CycleCloud. `defect`: see `test_nvme.py`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.bed.scripts.node import Node
from tests.projects.nvme import (
    ROOT_DISK,
    ROOT_PART,
    attach,
    devices,
    disk,
    good,
    member,
    prepare,
    put,
    reboot,
    start,
    unit,
)


@pytest.fixture
def node(disk_node: Node) -> Node:
    return disk_node


# ---------------------------------------------------------------- disks of others

FOREIGN = {
    "xfs": disk(signature="xfs", label="data"),
    "ext4": disk(signature="ext4"),
    "partition table": disk(signature="gpt"),
    "LVM": disk(signature="LVM2_member"),
    "LUKS": disk(signature="crypto_LUKS"),
    "two signatures": disk(signature="ambivalent"),
    "unreadable": disk(unreadable=True),
    "mounted": disk(mounted="/opt/db"),
    "ours but in use elsewhere": disk(signature="xfs", label="cycleforge", mounted="/elsewhere"),
    "swap": disk(signature="swap", mounted="[SWAP]"),
    "RAID of others": member(md="host:data"),
    "RAID 1 of our name": member(level="raid1"),
    "no model": disk(model=""),
}


@pytest.mark.parametrize("foreign", FOREIGN.values(), ids=FOREIGN)
def test_a_disk_that_holds_something_is_never_touched(node: Node, foreign: dict[str, Any]) -> None:
    attach(node, foreign, disk(), disk())
    output = start(node)
    assert devices(node)["nvme1n1"] == foreign
    assert "leaving /dev/nvme1n1" in output
    good(node, 2)


@pytest.mark.parametrize(
    "holder",
    [
        {"nvme1n1p1": {"kind": "part", "parents": ["nvme1n1"]}},
        {"dm-0": {"kind": "lvm", "parents": ["nvme1n1"]}},
        {"dm-1": {"kind": "crypt", "parents": ["nvme1n1"]}},
        {"bcache0": {"kind": "bcache", "parents": ["nvme1n1"]}},
        {"md5": {"kind": "raid1", "md": "system", "parents": ["nvme1n1"]}},
        {"md6": {"kind": "raid1", "md": "a", "parents": ["nvme1n1"]}, "dm-2": {"kind": "lvm", "parents": ["nvme1n1"]}},
    ],
    ids=lambda holder: "+".join(holder),
)
def test_a_disk_that_something_is_built_on_is_never_touched(node: Node, holder: dict[str, Any]) -> None:
    """Also where the disk itself shows no signature, as below a striped volume without metadata."""
    attach(node, disk(), disk(), disk(), others=holder)
    output = start(node)
    assert devices(node)["nvme1n1"] == disk()
    assert "leaving /dev/nvme1n1" in output
    (create,) = node.calls("mdadm --create")
    assert "--raid-devices=2" in create


def test_defect_2_1_the_system_disk_and_remote_data_disks_are_no_local_disks(node: Node) -> None:
    """/dev/nvme*n1 also matches the system's and data disks behind an NVMe controller."""
    data = {"kind": "disk", "model": "MSFT NVMe Accelerator v1.0"}
    put(node, {"nvme0n1": ROOT_DISK, "nvme0n1p1": ROOT_PART, "nvme0n2": data, "nvme1n1": disk(), "nvme2n1": disk()})
    output = start(node)
    assert devices(node)["nvme0n2"] == data
    assert "2 local: 2 blank" in output
    good(node, 2)


def test_a_local_system_disk_is_recognised_by_its_partitions(node: Node) -> None:
    put(node, {"nvme0n1": disk(signature="gpt"), "nvme0n1p1": ROOT_PART, "nvme1n1": disk(), "nvme2n1": disk()})
    assert "leaving /dev/nvme0n1 (has the partition nvme0n1p1)" in start(node)
    good(node, 2)


def test_all_foreign_mounts_nothing_and_fails_nothing(node: Node) -> None:
    attach(node, disk(signature="xfs"), disk(signature="xfs"))
    output = start(node, wait_s="1")
    assert node.mounts() == []
    assert "2 foreign" in output
    assert "nobody mounted them within 1 s" in output
    assert "mounted=false\n" in node.read("var/lib/cycleforge/nvme.state")


def test_a_foreign_file_system_on_our_array_is_not_overwritten(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    other = devices(node)
    other["md127"]["signature"] = "zfs_member"
    put(node, other)
    code, output = reboot(node)
    assert code == 1
    assert "holds 'zfs_member'" in output
    assert node.calls("mkfs") == []


def test_a_finished_file_system_that_does_not_mount_is_not_overwritten(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    broken = devices(node)
    broken["md127"]["complete"] = False
    put(node, broken)
    code, output = reboot(node)
    assert code == 1
    assert "it is not overwritten" in output
    assert node.calls("mkfs") == []


# ---------------------------------------------------------------- mounts of the image and of CycleCloud


def existing(node: Node, path: str, source: str) -> None:
    node.mount(path)
    (node.root / path.removeprefix("/")).mkdir(parents=True)
    (node.state / "sources.json").write_text(json.dumps({path: source}))


@pytest.mark.parametrize(
    "source", ["/dev/md127", "/dev/nvme1n1", "/dev/nvme1n1p1", "/dev/md127[/scratch]", "/dev/dm-0"]
)
@pytest.mark.parametrize("path", ["/mnt/nvme", "/mnt/resource_nvme"])
def test_an_existing_mount_of_the_image_is_bound(node: Node, path: str, source: str) -> None:
    attach(node, disk(mounted=path), others={
        "md127": {"kind": "raid0", "md": "image", "parents": ["nvme1n1"]},
        "nvme1n1p1": {"kind": "part", "parents": ["nvme1n1"]}, "dm-0": {"kind": "lvm", "parents": ["nvme1n1"]},
    })  # fmt: skip
    existing(node, path, source)
    start(node)
    assert node.mounts() == [path, "/nvme"]
    assert node.calls("mkfs") + node.calls("mdadm") == []
    assert (node.root / "nvme").stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize("source", ["/dev/sdb1", "10.0.0.4:/export", "tmpfs", ""])
def test_a_mount_that_is_no_nvme_disk_is_not_bound(node: Node, source: str) -> None:
    attach(node)
    existing(node, "/mnt/nvme", source)
    start(node)
    assert node.mounts() == ["/mnt/nvme"]


def test_a_mount_at_the_wanted_place_is_used_and_keeps_its_data(node: Node) -> None:
    """CycleCloud 8.8 and later mount local NVMe disks at /nvme themselves."""
    attach(node, disk(signature="xfs", mounted="/nvme"), disk())
    existing(node, "/nvme", "/dev/nvme1n1")
    start(node)
    assert node.calls("mkfs") + node.calls("mdadm") + node.calls("lsblk --nodeps") == []
    assert (node.root / "nvme").stat().st_mode & 0o7777 == 0o1777


def test_a_share_at_the_wanted_place_keeps_its_mode(node: Node) -> None:
    attach(node)
    existing(node, "/nvme", "10.0.0.4:/export")
    (node.root / "nvme").chmod(0o750)
    start(node)
    assert (node.root / "nvme").stat().st_mode & 0o7777 == 0o750


def test_cyclecloud_first_its_unfinished_work_is_waited_for(node: Node) -> None:
    """It has formatted the disks and mounts them a moment later: our unit must not end without a scratch."""
    attach(node, disk(signature="xfs"), disk(signature="linux_raid_member", md="node:cc", members=2))
    (node.root / "nvme").mkdir()
    (node.state / "sources.json").write_text(json.dumps({"/nvme": "/dev/nvme1n1"}))
    node.fake("sleep", 'echo /nvme >"$FAKE_STATE/mounts"')
    output = start(node, wait_s="30")
    assert "other program's mount: /nvme is mounted (/dev/nvme1n1)" in output
    assert "mounted=true\n" in node.read("var/lib/cycleforge/nvme.state")
    assert node.calls("mkfs") + node.calls("mdadm --create") == []


@pytest.mark.parametrize("count", [1, 2])
def test_cyclecloud_in_between_the_disks_are_looked_at_again(node: Node, count: int) -> None:
    """It takes the disks after we have found them blank: the first who creates wins, the other one uses the result."""
    attach(node, *[disk()] * count)
    (node.root / "nvme").mkdir()
    (node.state / "sources.json").write_text(json.dumps({"/nvme": "/dev/nvme1n1"}))
    tool = "mkfs.xfs" if count == 1 else "mdadm"
    taken = json.dumps({f"nvme{place}n1": disk(signature="xfs", mounted="/nvme") for place in (1, 2)[:count]})
    node.fake(
        tool,
        f"""if [[ "$1" == --examine ]]; then exit 1; fi
printf '%s' '{taken}' >"$FAKE_STATE/devices.json"; echo /nvme >"$FAKE_STATE/mounts"; exit 1""",
    )
    output = start(node)
    assert "another program may have been faster, looking again" in output
    assert "existing mount: /nvme is mounted" in output
    assert node.mounts() == ["/nvme"]


def test_we_first_the_mount_stays_when_cyclecloud_comes(node: Node) -> None:
    """Our array keeps the disks busy, so another program's mdadm or mkfs on them fails; the next boot finds ours."""
    attach(node, disk(), disk())
    start(node)
    rival = node.command("-c", "mdadm --create /dev/md0 --run --level=0 --raid-devices=2 /dev/nvme1n1 /dev/nvme2n1")
    assert "busy" in rival.stderr
    code, output = reboot(node)
    assert code == 0, output
    good(node, 2)


def test_a_disk_that_is_taken_every_time_ends_with_a_message(node: Node) -> None:
    attach(node, disk(), disk())
    node.fake("mdadm", "exit 1")
    prepare(node)
    code, output = unit(node)
    assert code == 1
    assert "mdadm did not create an array of /dev/nvme1n1 /dev/nvme2n1" in output
    assert "3 attempts failed" in output
    assert len(node.calls("mdadm --create")) == 3
