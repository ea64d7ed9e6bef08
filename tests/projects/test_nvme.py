"""misc_ndv4, local NVMe disks: which disks are taken, what is built, reboots, deallocation, kills, rivals.

`defect` in a test's name marks a row of the table of defects of the older projects: what went wrong there, and the test
that would have caught it. Real disks: `tests/vm`.
"""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bed.scripts import blockdevices
from tests.bed.scripts.node import A100, HANGS, Node
from tests.projects.conftest import MakeNode

TOOLS = ("lsblk", "blkid", "wipefs", "mdadm", "mkfs.xfs", "mount", "findmnt")
ROOT_DISK = {"kind": "disk", "model": "MSFT NVMe Accelerator v1.0", "signature": "gpt"}
ROOT_PART = {"kind": "part", "parents": ["nvme0n1"], "mounted": "/"}
SCRIPT = "opt/cycleforge/misc_ndv4/nvme.sh"


def disk(**fields: Any) -> dict[str, Any]:
    return {"kind": "disk", **fields}


def member(array: str = "aaaaaaaa:0:0:0", members: int = 2, **fields: Any) -> dict[str, Any]:
    fields = {"signature": "linux_raid_member", "md": "any:cycleforge", "members": members, "array": array} | fields
    return disk(**fields)


def devices(node: Node) -> dict[str, dict[str, Any]]:
    return blockdevices.parse((node.state / "devices.json").read_text())


def put(node: Node, content: dict[str, dict[str, Any]]) -> None:
    (node.state / "devices.json").write_text(json.dumps(content))
    blockdevices.publish(content, str(node.root))


def attach(node: Node, *disks: dict[str, Any], others: dict[str, dict[str, Any]] | None = None) -> None:
    put(node, {f"nvme{place}n1": device for place, device in enumerate(disks, start=1)} | (others or {}))


@pytest.fixture(scope="module")
def block_layer() -> Iterator[str]:
    """What the fakes of the block layer do."""
    with blockdevices.serving() as body:
        yield body


@pytest.fixture
def node(make_node: MakeNode, block_layer: str) -> Node:
    made = make_node("misc_ndv4")
    made.vm_size("Standard_Unknown_v9")
    made.link("sync")
    (made.state / "active/cycleforge-nvme.service").write_text("active")
    for tool in TOOLS:
        made.fake(tool, block_layer.replace("NAME", tool), light=True)
    return made


def start(node: Node, **attributes: str) -> str:
    """Converge; what the script and the unit said."""
    for key, value in attributes.items():
        node.attribute(f"cycleforge.nvme.{key}", value)
    node.forget()
    (node.state / "units.log").unlink(missing_ok=True)
    output = node.ok("10-nvme.sh")
    log = node.state / "units.log"
    return output + (log.read_text() if log.exists() else "")


def unit(node: Node, **extra: str) -> tuple[int, str]:
    """Run the boot unit itself, as a reboot does."""
    node.forget()
    result = node.command("-c", f'echo $$ >"$FAKE_STATE/pid"; exec bash {node.root / SCRIPT}', **extra)
    return result.returncode, result.stdout + result.stderr


def prepare(node: Node, wait_s: int = 0, expected: int = 0) -> None:
    """Install everything without starting the unit."""
    node.attribute("cycleforge.nvme.wait_s", str(wait_s))
    node.attribute("cycleforge.nvme.disks", str(expected))
    node.fake("systemctl", "exit 0")
    node.ok("10-nvme.sh")


def shut_down(node: Node, *, deallocated: bool = False, name: str = "md126") -> None:
    """Mounts are gone; arrays are assembled by udev under a number of its choice, unless the disks are new."""
    (node.state / "mounts").unlink(missing_ok=True)
    now = {}
    for key, device in devices(node).items():
        device.pop("mounted", None)
        if device["kind"] == "disk":
            now[key] = disk() if deallocated else device
        elif not deallocated:
            now[name] = device
    put(node, now)


def reboot(node: Node, *, deallocated: bool = False) -> tuple[int, str]:
    shut_down(node, deallocated=deallocated)
    return unit(node)


def good(node: Node, disks: int) -> None:
    """One array over so many disks, with its own complete file system, mounted with the right mode."""
    (array,) = [device for device in devices(node).values() if device["kind"] == "raid0"]
    assert len(array["parents"]) == disks
    identity = devices(node)[array["parents"][0]]["array"].replace(":", "")
    assert array["uuid"].replace("-", "") == identity, "the file system of a former array"
    assert array["complete"]
    assert node.mounts() == ["/nvme"]
    assert (node.root / "nvme").stat().st_mode & 0o7777 == 0o1777
    assert node.read("var/lib/cycleforge/nvme.uuid") == array["uuid"] + "\n"
    assert "mounted=true\n" in node.read("var/lib/cycleforge/nvme.state")


# ---------------------------------------------------------------- what is built


@pytest.mark.parametrize("count", [2, 12])
def test_blank_disks_become_one_array(node: Node, count: int) -> None:
    attach(node, *[disk()] * count)
    output = start(node)
    good(node, count)
    (create,) = node.calls("mdadm --create")
    assert f"--raid-devices={count}" in create
    assert "mounted" in output


def test_defect_2_1_one_disk_gets_a_file_system_without_an_array(node: Node) -> None:
    """RAID 0 of one disk needs --force; NDv2 got no scratch."""
    attach(node, disk())
    start(node)
    assert node.mounts() == ["/nvme"]
    assert node.calls("mdadm") == []
    assert node.calls("mkfs") == ["mkfs.xfs -q -K -L cycleforge /dev/nvme1n1"]
    assert (node.root / "nvme").stat().st_mode & 0o7777 == 0o1777


def test_defect_2_1_no_disk_is_success_with_a_note(node: Node) -> None:
    """The branch for no disks could not be reached under errexit and pipefail."""
    attach(node)
    output = start(node)
    assert node.mounts() == []
    assert "0 local: 0 blank" in output
    assert "no disk to use" in output
    assert "nothing mounted" in output


def test_defect_2_1_scratch_has_the_sticky_bit(node: Node) -> None:
    """Mode 777 lets everybody remove everybody's files."""
    attach(node, disk(), disk())
    start(node)
    assert (node.root / "nvme").stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize("mount_point", ["/nvme", "/mnt/scratch", "/mnt/resource_nvme"])
def test_defect_2_1_the_mount_point_is_one_setting(node: Node, mount_point: str) -> None:
    """Three names in three projects; ours is an attribute, and the state file tells the health checks."""
    attach(node, disk(), disk())
    start(node, mount_point=mount_point)
    assert node.mounts() == [mount_point]
    assert f"mount_point={mount_point}\n" in node.read("var/lib/cycleforge/nvme.state")


def test_without_xfs_tools_it_is_ext4(node: Node) -> None:
    attach(node, disk())
    node.remove("mkfs.xfs")
    node.fake("mkfs.ext4", "exit 0")
    prepare(node)
    unit(node)
    assert node.calls("mkfs") == ["mkfs.ext4 -q -E nodiscard -L cycleforge /dev/nvme1n1"]


def test_an_unknown_size_is_reported_and_uses_what_is_there(node: Node) -> None:
    attach(node, disk(), disk())
    assert "VM size 'standard_unknown_v9' has no figures" in start(node)
    good(node, 2)


# ---------------------------------------------------------------- again


def test_defect_2_1_a_second_run_changes_nothing(node: Node) -> None:
    """mkdir without -p and mdadm --create without --run failed or asked; mkfs ran unconditionally."""
    attach(node, disk(), disk())
    start(node)
    before, blocks = node.files(), devices(node)
    start(node)
    assert node.files() == before
    assert devices(node) == blocks
    code, output = unit(node)
    assert code == 0, output
    assert node.files() == before
    assert node.calls("mkfs") + node.calls("mdadm") + node.calls("mount ") == []


def test_a_unit_that_failed_since_is_tried_again_by_the_next_converge(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    shut_down(node)
    (node.state / "active/cycleforge-nvme.service").write_text("failed")
    assert "mounted" in start(node)
    assert node.mounts() == ["/nvme"]


@pytest.mark.parametrize("count", [1, 8])
def test_defect_2_1_a_reboot_mounts_the_same_file_system_whatever_its_number(node: Node, count: int) -> None:
    """md127 or md128 were guessed; the mount was in no fstab and in no unit."""
    attach(node, *[disk()] * count)
    start(node)
    code, output = reboot(node)
    assert code == 0, output
    assert node.mounts() == ["/nvme"]
    assert node.calls("mkfs") + node.calls("mdadm --create") == []


def test_members_that_nobody_assembled_are_assembled(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    shut_down(node)
    put(node, {name: device for name, device in devices(node).items() if device["kind"] == "disk"})
    code, output = unit(node)
    assert code == 0, output
    assert node.calls("mdadm --assemble")
    assert node.calls("mdadm --create") + node.calls("mkfs") == []
    good(node, 2)


@pytest.mark.parametrize("count", [1, 8])
def test_new_disks_after_deallocation_are_built_again(node: Node, count: int) -> None:
    attach(node, *[disk()] * count)
    start(node)
    code, output = reboot(node, deallocated=True)
    assert code == 0, output
    assert node.mounts() == ["/nvme"]
    assert len(node.calls("mkfs")) == 1


def redeployed(node: Node) -> None:
    """Three disks, of which the last came back blank; udev holds the other two in an array that does not run."""
    attach(node, disk(), disk(), disk())
    start(node)
    shut_down(node)
    now = {name: device for name, device in devices(node).items() if name in ("nvme1n1", "nvme2n1")}
    array = {"kind": "raid0", "md": "cycleforge", "parents": ["nvme1n1", "nvme2n1"], "inactive": True}
    put(node, now | {"nvme3n1": disk(), "md127": array})


def test_an_array_that_lost_a_disk_is_built_anew_without_waiting(node: Node) -> None:
    """A redeploy may bring back some old disks; RAID 0 of a part is nothing, and what it shows is a leftover."""
    redeployed(node)
    node.write("etc/cycleforge/nvme.conf", "mount_point=/nvme\nexpected_disks=3\nwait_s=900\n")
    code, output = unit(node, CYCLEFORGE_POLL_S="100")
    assert code == 0, output
    assert "2 of 3 disks or does not assemble; its scratch data is gone" in output
    assert "shows the file system of a former array" in output
    good(node, 3)


def test_a_leftover_is_known_even_when_the_system_disk_is_new(node: Node) -> None:
    """The record on the system disk is gone after a reimage; the file system's identity is not."""
    redeployed(node)
    (node.root / "var/lib/cycleforge/nvme.uuid").unlink()
    (node.state / "kill").write_text("before 100")
    code, output = unit(node)
    assert code == 0, output
    good(node, 3)


def test_a_reimaged_system_disk_uses_the_array_as_it_is(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    shut_down(node)
    (node.root / "var/lib/cycleforge/nvme.uuid").unlink()
    code, output = unit(node)
    assert code == 0, output
    assert node.calls("mkfs") == []
    good(node, 2)


def test_members_of_two_former_arrays_are_one_new_array(node: Node) -> None:
    attach(node, member("a:0:0:0", 2), member("b:0:0:0", 2), disk())
    output = start(node, wait_s="0")
    assert "its scratch data is gone" in output
    good(node, 3)


def test_of_two_complete_arrays_the_larger_is_used(node: Node) -> None:
    content = {
        "signature": "xfs",
        "label": "cycleforge",
        "uuid": "0000000b-0000-0000-0000-000000000000",
        "complete": True,
    }
    large = [member("0000000b:00000000:00000000:00000000", 3, content=content) for _ in range(3)]
    attach(node, member("a:0:0:0", 1), *large)
    start(node)
    assert len(devices(node)["md127"]["parents"]) == 3
    assert node.calls("mkfs") == []


def test_a_disk_that_comes_after_the_array_is_named(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    shut_down(node)
    put(node, devices(node) | {"nvme9n1": disk()})
    code, output = unit(node)
    assert code == 0, output
    assert "/dev/nvme9n1 came after /dev/md126 was made and stay unused" in output
    assert devices(node)["nvme9n1"] == disk()


# ---------------------------------------------------------------- waiting


def test_defect_2_1_fewer_disks_than_the_size_has_are_waited_for_and_named(node: Node) -> None:
    """The kernel may list fewer disks than there are at that moment."""
    node.vm_size(A100)
    attach(node, *[disk()] * 7)
    prepare(node, wait_s=2, expected=8)
    # A clock that only pauses move, so that a slow machine has as many looks.
    clock = node.write("clock.sh", "unset SECONDS; SECONDS=0; sleep() { SECONDS=$((SECONDS + 1)); }\n")
    code, output = unit(node, BASH_ENV=str(clock))
    assert code == 0, output
    assert "7 local NVMe disks after 2 s, the VM size has 8" in output
    assert len(node.calls("lsblk --nodeps")) == 3
    good(node, 7)


@pytest.mark.parametrize(("size", "count"), [("Standard_NC96ads_A100_v4", 4), ("Standard_NC48ads_A100_v4", 2)])
def test_defect_2_1_the_number_of_disks_is_that_of_the_size(node: Node, size: str, count: int) -> None:
    """The repair waited for exactly eight disks, for ever."""
    node.vm_size(size)
    attach(node, *[disk()] * count)
    start(node, wait_s="900")
    good(node, count)
    assert len(node.calls("lsblk --nodeps")) == 1


def test_defect_2_1_names_are_read_after_the_wait(node: Node) -> None:
    """The names were captured before the wait, so late disks were left out."""
    node.vm_size(A100)
    attach(node, *[disk()] * 8)
    late = node.state / "late.json"
    late.write_text((node.state / "devices.json").read_text())
    attach(node, *[disk()] * 5)
    node.fake("sleep", f'cp {late} "$FAKE_STATE/devices.json"; lsblk --nodeps >/dev/null')
    start(node, wait_s="30")
    good(node, 8)


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


# ---------------------------------------------------------------- kills


def changes(node: Node) -> int:
    file = node.state / "changes"
    count = len(file.read_text().split())
    file.unlink()
    return count


def make(node: Node, case: str) -> None:
    if case == "redeployed":
        redeployed(node)
    elif case == "not assembled":
        content = {
            "signature": "xfs",
            "label": "cycleforge",
            "uuid": "00000007-0000-0000-0000-000000000000",
            "complete": True,
        }
        attach(node, *[member("00000007:00000000:00000000:00000000", 3, content=content) for _ in range(3)])
    else:
        attach(node, disk(), disk(), disk())
    prepare(node)
    node.write("etc/cycleforge/nvme.conf", "mount_point=/nvme\nexpected_disks=3\nwait_s=0\n")
    (node.state / "changes").unlink(missing_ok=True)


@pytest.mark.parametrize(
    ("case", "after"),
    [("blank", "a second run"), ("blank", "a reboot"), ("redeployed", "a reboot"), ("not assembled", "a reboot")],
)
def test_a_kill_around_every_change_ends_in_the_same_state(node: Node, tmp_path: Path, case: str, after: str) -> None:
    """Before and after each mdadm, mkfs and mount; in between no command changes anything. One run keeps the files of
    every moment, which is all that a kill leaves; the last moment but one is also that of a real kill.
    """
    make(node, case)
    kept = tmp_path / "kept"
    restore(node, save(node, kept / "start"))
    (node.state / "keep").write_text(str(kept))
    assert unit(node)[0] == 0
    good(node, 3)
    count = changes(node)
    assert count >= {"blank": 3, "redeployed": 5, "not assembled": 2}[case]
    for moment in [f"{when}-{number}" for number in range(1, count + 1) for when in ("before", "after")]:
        restore(node, kept / moment)
        (node.state / "keep").unlink()
        if after == "a reboot":
            shut_down(node)
        code, output = unit(node)
        assert code == 0, f"{moment}: {output}"
        good(node, 3)
    restore(node, kept / f"before-{count}")
    left = devices(node), node.mounts(), node.content()
    restore(node, kept / "start")
    (node.state / "kill").write_text(f"before {count}")
    assert unit(node)[0] == -9
    assert (devices(node), node.mounts(), node.content()) == left


def save(node: Node, folder: Path) -> Path:
    for part in (node.root, node.state):
        shutil.copytree(part, folder / part.name)
    return folder


def restore(node: Node, folder: Path) -> None:
    for part in (node.root, node.state):
        shutil.rmtree(part)
        shutil.copytree(folder / part.name, part)


def test_a_format_that_was_killed_is_done_again(node: Node) -> None:
    attach(node, disk(), disk())
    prepare(node)
    (node.state / "kill_mkfs").touch()
    assert unit(node)[0] == -9
    assert node.mounts() == []
    code, output = unit(node)
    assert code == 0, output
    assert "unfinished file system" in output
    good(node, 2)


def test_a_create_that_was_killed_between_two_superblocks_is_done_again(node: Node) -> None:
    attach(node, disk(), disk(), disk())
    (node.state / "half_create").touch()
    output = start(node, wait_s="0")
    assert "looking again" in output
    good(node, 3)


def test_two_runs_at_once_do_not_both_create(node: Node) -> None:
    attach(node, disk(), disk())
    prepare(node)
    with (node.root / "var/lib/cycleforge/nvme.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, output = unit(node, CYCLEFORGE_LOCK_S="1")
    assert code == 1
    assert "another run has prepared the disks for 1 s" in output
    assert node.calls("mdadm") + node.calls("lsblk") == []


def test_a_run_waits_for_another_and_uses_its_result(node: Node) -> None:
    attach(node, disk(), disk())
    prepare(node)
    both = node.command(
        "-c", f"bash {node.root / SCRIPT} & bash {node.root / SCRIPT}; code=$?; wait $!; exit $((code + $?))"
    )
    assert both.returncode == 0, both.stdout + both.stderr
    assert len(node.calls("mdadm --create")) == 1
    assert len(node.calls("mkfs")) == 1
    assert node.mounts() == ["/nvme"]


# ---------------------------------------------------------------- tools that fail

BAD = {
    "missing": "",
    "hanging": HANGS,
    "garbage": "echo '%!?'; exit 0",
    "failing": "exit 1",
    "empty": "exit 0",
}


@pytest.mark.parametrize("how", BAD)
def test_a_bad_lsblk_fails_the_unit_and_touches_nothing(node: Node, how: str) -> None:
    attach(node, disk(), disk())
    prepare(node)
    break_tool(node, "lsblk", how)
    before = devices(node)
    code, output = unit(node)
    assert code == 1
    assert "ERROR: local disks: lsblk" in output
    assert "do:  run 'lsblk' on the node" in output
    assert devices(node) == before


@pytest.mark.parametrize("tool", ["blkid", "wipefs"])
@pytest.mark.parametrize("how", BAD)
def test_disks_that_cannot_be_looked_at_are_left_alone(node: Node, tool: str, how: str) -> None:
    """Only two looks that agree on 'nothing' make a disk blank."""
    attach(node, disk(), disk())
    prepare(node)
    break_tool(node, tool, how)
    before = devices(node)
    code, output = unit(node)
    if (tool, how) == ("wipefs", "empty"):
        good(node, 2)  # an empty list is wipefs' way to say that there is nothing
        return
    assert code == 0, output
    assert devices(node) == before
    assert "0 blank, 0 ours, 2 foreign" in output
    assert node.mounts() == []


@pytest.mark.parametrize("how", BAD)
def test_a_bad_mdadm_fails_the_unit_with_the_disks_named(node: Node, how: str) -> None:
    attach(node, disk(), disk())
    prepare(node)
    break_tool(node, "mdadm", how)
    before = devices(node)
    code, output = unit(node)
    assert code == 1
    expected = "mdadm is not installed, 2 disks need it" if how == "missing" else "3 attempts failed"
    assert expected in output
    assert "  do:  " in output
    assert devices(node) == before


@pytest.mark.parametrize("how", BAD)
def test_a_bad_mdadm_never_makes_our_members_blank(node: Node, how: str) -> None:
    attach(node, member(), member())
    prepare(node)
    break_tool(node, "mdadm", how)
    before = devices(node)
    code, output = unit(node)
    assert code == 0, output
    assert devices(node) == before
    assert "leaving /dev/nvme1n1 (holds linux_raid_member) alone" in output


def break_tool(node: Node, tool: str, how: str) -> None:
    if how == "missing":
        node.remove(tool)
    else:
        node.fake(tool, BAD[how])


def test_a_unit_that_fails_fails_the_converge_with_its_last_lines(node: Node) -> None:
    attach(node, disk(), disk())
    node.remove("lsblk")
    assert "cycleforge-nvme.service did not start" in node.fails("10-nvme.sh")
    assert not list((node.root / "var/lib/cycleforge").glob("applied/*"))


def test_defect_2_1_disks_without_scratch_do_not_keep_the_gpus_from_their_settings(node: Node) -> None:
    """The repair path left a variable unset and died before clocks and persistence mode."""
    attach(node, disk(), disk())
    node.remove("lsblk")
    node.fails("10-nvme.sh")
    node.write("dev/nvidia-uvm", "")
    node.fake("nvidia-smi", "[[ $* != *persistence_mode* ]] || echo 0, Disabled")
    node.ok("20-gpu.sh")
    assert "nvidia-smi -i 0 -pm 1" in node.calls()


def test_a_missing_mdadm_is_installed_where_several_disks_need_it(node: Node) -> None:
    node.vm_size(A100)
    attach(node, *[disk()] * 8)
    node.remove("mdadm")
    node.fake("systemctl", "exit 0")
    node.fake("apt-get", '[[ $* != *install* ]] || ln -s "$(command -v true || echo /bin/true)" "${0%/*}/mdadm"')
    assert "mdadm: installed" in node.ok("10-nvme.sh")
    (call,) = node.calls("apt-get")
    assert call == "apt-get -o DPkg::Lock::Timeout=300 install --yes --no-install-recommends mdadm"


@pytest.mark.parametrize(("size", "count"), [("Standard_D4as_v5", 0), ("Standard_NC24ads_A100_v4", 1)])
def test_mdadm_is_not_installed_for_fewer_than_two_disks(node: Node, size: str, count: int) -> None:
    node.vm_size(size)
    attach(node, *[disk()] * count)
    node.remove("mdadm")
    node.fake("apt-get", "exit 0")
    assert "mdadm: not needed" in start(node)
    assert node.calls("apt-get") == []


# ---------------------------------------------------------------- the unit


def test_defect_2_1_a_unit_before_slurmd_instead_of_cron(node: Node) -> None:
    """@reboot in crontab raced slurmd and the health checks."""
    attach(node)
    start(node)
    node.ok("30-limits.sh")
    service = node.read("etc/systemd/system/cycleforge-nvme.service")
    assert "Before=slurmd.service" in service
    assert "RequiredBy" not in service
    assert "TimeoutStartSec=" in service
    assert "After=cycleforge-nvme.service" in node.read(
        "etc/systemd/system/slurmd.service.d/20-cycleforge-misc_ndv4.conf"
    )
    assert not (node.root / "etc/crontab").exists()
    first, second, *_ = node.calls("systemctl")
    assert first == "systemctl --quiet --no-reload enable cycleforge-nvme.service"
    assert second == "systemctl daemon-reload"


def test_defect_2_1_a_restart_of_the_unit_keeps_the_data(node: Node) -> None:
    """The images' own unit stops and zeroes an existing array, and adds a line to two files at every start."""
    attach(node, disk(), disk())
    fstab, mdadm_conf = node.write("etc/fstab", "# fstab\n"), node.write("etc/mdadm/mdadm.conf", "HOMEHOST <system>\n")
    start(node)
    blocks = devices(node)
    for _ in range(2):
        code, output = unit(node)
        assert code == 0, output
    assert devices(node) == blocks
    assert (fstab.read_text(), mdadm_conf.read_text()) == ("# fstab\n", "HOMEHOST <system>\n")


def test_the_definition_can_switch_it_off_again(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    node.attribute("cycleforge.nvme.enabled", "False")
    node.ok("10-nvme.sh")
    assert not (node.root / "etc/systemd/system/cycleforge-nvme.service").exists()
    assert node.calls("systemctl --quiet --no-reload disable")
    assert node.mounts() == ["/nvme"], "data in use stays"
