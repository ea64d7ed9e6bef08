"""misc_ndv4, local NVMe disks: which disks are taken, what is built, reboots, deallocation, kills."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.projects import blockdevices
from tests.projects.conftest import MakeNode
from tests.projects.node import A100, Node

TOOLS = ("lsblk", "blkid", "wipefs", "mdadm", "mkfs.xfs", "mount")
ROOT_DISK = {"kind": "disk", "model": "MSFT NVMe Accelerator v1.0", "signature": "gpt"}
ROOT_PART = {"kind": "part", "parents": ["nvme0n1"], "mounted": "/"}


def disk(**fields: Any) -> dict[str, Any]:
    return {"kind": "disk", **fields}


def devices(node: Node) -> dict[str, dict[str, Any]]:
    content: dict[str, dict[str, Any]] = json.loads((node.state / "devices.json").read_text())
    return content


def attach(node: Node, *disks: dict[str, Any], others: dict[str, dict[str, Any]] | None = None) -> None:
    listed = {f"nvme{place}n1": device for place, device in enumerate(disks, start=1)} | (others or {})
    (node.state / "devices.json").write_text(json.dumps(listed))


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    made = make_node("misc_ndv4")
    made.vm_size("Standard_Unknown_v9")
    for tool in TOOLS:
        made.fake_python(tool, Path(blockdevices.__file__))
    return made


def start(node: Node, **attributes: str) -> str:
    for key, value in attributes.items():
        node.attribute(f"cycleforge.nvme.{key}", value)
    node.forget()
    output = node.ok("10-nvme.sh")
    return output + (node.state / "units.log").read_text()


def unit(node: Node) -> tuple[int, str]:
    """Run the boot unit itself, as a reboot does."""
    node.forget()
    result = node.command(str(node.root / "opt/cycleforge/misc_ndv4/nvme.sh"))
    return result.returncode, result.stdout + result.stderr


def reboot(node: Node, *, deallocated: bool = False) -> tuple[int, str]:
    """Mounts are gone; arrays are assembled by udev under a number of its choice, unless the disks are new."""
    (node.state / "mounts").unlink(missing_ok=True)
    now = {}
    for name, device in devices(node).items():
        device.pop("mounted", None)
        if device["kind"] == "disk":
            now[name] = disk() if deallocated else device
        elif not deallocated:
            now["md126"] = device
    (node.state / "devices.json").write_text(json.dumps(now))
    return unit(node)


@pytest.mark.parametrize("count", [2, 12])
def test_blank_disks_become_one_array(node: Node, count: int) -> None:
    attach(node, *[disk()] * count)
    output = start(node)
    assert node.mounts() == ["/nvme"]
    (create,) = node.calls("mdadm --create")
    assert f"--raid-devices={count}" in create
    assert len([word for word in create.split() if word.startswith("/dev/nvme")]) == count
    assert (node.root / "nvme").stat().st_mode & 0o7777 == 0o1777
    assert "mounted" in output


def test_one_disk_is_used_without_an_array(node: Node) -> None:
    attach(node, disk())
    start(node)
    assert node.mounts() == ["/nvme"]
    assert node.calls("mdadm") == []
    assert node.calls("mkfs") == ["mkfs.xfs -q -L cycleforge /dev/nvme1n1"]


def test_no_disk_is_success_with_a_note(node: Node) -> None:
    attach(node)
    output = start(node)
    assert node.mounts() == []
    assert "0 local: 0 blank" in output
    assert "no disk to use" in output
    assert "nothing mounted" in output


def test_the_mount_point_comes_from_the_definition(node: Node) -> None:
    attach(node, disk(), disk())
    start(node, mount_point="/mnt/scratch")
    assert node.mounts() == ["/mnt/scratch"]


def test_a_second_run_changes_nothing(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    before, blocks = node.files(), devices(node)
    start(node)
    assert node.files() == before
    assert devices(node) == blocks
    assert node.calls("mkfs") + node.calls("mdadm") + node.calls("mount ") == []


FOREIGN = [
    disk(signature="xfs", label="data"),
    disk(signature="ext4"),
    disk(signature="gpt"),
    disk(signature="LVM2_member"),
    disk(signature="crypto_LUKS"),
    disk(signature="ambivalent"),
    disk(unreadable=True),
    disk(mounted="/opt/db"),
    disk(signature="xfs", label="cycleforge", mounted="/elsewhere"),
    disk(signature="linux_raid_member", md="host:data", members=2),
    disk(signature="linux_raid_member", md="host:cycleforge", members=2, level="raid1"),
]


@pytest.mark.parametrize("foreign", FOREIGN)
def test_a_disk_that_holds_something_is_never_touched(node: Node, foreign: dict[str, Any]) -> None:
    attach(node, foreign, disk(), disk())
    output = start(node)
    assert devices(node)["nvme1n1"] == foreign
    assert "leaving /dev/nvme1n1" in output
    assert node.mounts() == ["/nvme"]
    assert not [call for call in node.calls("mdadm --create") + node.calls("mkfs") if "nvme1n1" in call]


@pytest.mark.parametrize(
    "holder",
    [
        {"nvme1n1p1": {"kind": "part", "parents": ["nvme1n1"]}},
        {"data-vol": {"kind": "lvm", "parents": ["nvme1n1"]}},
        {"secret": {"kind": "crypt", "parents": ["nvme1n1"]}},
        {"md5": {"kind": "raid1", "md": "system", "parents": ["nvme1n1"]}},
    ],
)
def test_a_disk_in_use_is_never_touched(node: Node, holder: dict[str, dict[str, Any]]) -> None:
    attach(node, disk(), disk(), disk(), others=holder)
    output = start(node)
    assert "leaving /dev/nvme1n1 (in use by " in output
    assert devices(node)["nvme1n1"] == disk()
    assert node.mounts() == ["/nvme"]


def test_remote_disks_are_not_local_ones(node: Node) -> None:
    data_disk = {"kind": "disk", "model": "MSFT NVMe Accelerator v1.0"}
    attach(node, disk(), data_disk, others={"nvme0n1": ROOT_DISK, "nvme0n1p1": ROOT_PART, "sda": {"kind": "disk"}})
    output = start(node)
    assert "1 local: 1 blank, 0 ours, 0 foreign" in output
    assert devices(node)["nvme2n1"] == data_disk
    assert node.calls("mkfs") == ["mkfs.xfs -q -L cycleforge /dev/nvme1n1"]


def test_all_foreign_mounts_nothing_and_fails_nothing(node: Node) -> None:
    attach(node, disk(signature="xfs"), disk(signature="xfs"))
    output = start(node)
    assert node.mounts() == []
    assert "2 foreign" in output


@pytest.mark.parametrize("source", ["/dev/md127", "/dev/nvme0n1"])
@pytest.mark.parametrize("existing", ["/mnt/nvme", "/mnt/resource_nvme"])
def test_an_existing_mount_of_the_image_is_bound(node: Node, existing: str, source: str) -> None:
    attach(node, disk(mounted=existing))
    node.mount(existing)
    node.fake("findmnt", f"echo {source}")
    start(node)
    assert node.mounts() == [existing, "/nvme"]
    assert node.calls("mkfs") + node.calls("mdadm") == []


def test_a_mount_that_is_no_nvme_disk_is_not_bound(node: Node) -> None:
    attach(node)
    node.mount("/mnt/nvme")
    node.fake("findmnt", "echo /dev/sdb1")
    start(node)
    assert node.mounts() == ["/mnt/nvme"]


def test_a_mounted_mount_point_is_left_alone(node: Node) -> None:
    attach(node, disk(), disk())
    node.mount("/nvme")
    (node.root / "nvme").mkdir()
    start(node)
    assert node.calls("mkfs") + node.calls("mdadm") + node.calls("lsblk") == []


@pytest.mark.parametrize("count", [1, 8])
def test_a_reboot_mounts_the_same_file_system(node: Node, count: int) -> None:
    attach(node, *[disk()] * count)
    start(node)
    code, output = reboot(node)
    assert code == 0, output
    assert node.mounts() == ["/nvme"]
    assert node.calls("mkfs") + node.calls("mdadm --create") == []


def test_members_that_nobody_assembled_are_assembled(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    left = {name: device for name, device in devices(node).items() if device["kind"] == "disk"}
    (node.state / "devices.json").write_text(json.dumps(left))
    (node.state / "mounts").unlink()
    code, output = unit(node)
    assert code == 0, output
    assert node.calls("mdadm --assemble")
    assert node.calls("mdadm --create") + node.calls("mkfs") == []
    assert node.mounts() == ["/nvme"]


@pytest.mark.parametrize("count", [1, 8])
def test_new_disks_after_deallocation_are_built_again(node: Node, count: int) -> None:
    attach(node, *[disk()] * count)
    start(node)
    code, output = reboot(node, deallocated=True)
    assert code == 0, output
    assert node.mounts() == ["/nvme"]
    assert len(node.calls("mkfs")) == 1


def test_an_array_that_lost_a_disk_is_built_anew(node: Node) -> None:
    """A redeploy may bring back some old disks; RAID 0 of a part is nothing."""
    attach(node, disk(), disk(), disk())
    start(node)
    left = {name: device for name, device in devices(node).items() if name in ("nvme1n1", "nvme2n1")} | {
        "nvme3n1": disk()
    }
    left["md127"] = {"kind": "md", "md": "cycleforge", "parents": ["nvme1n1", "nvme2n1"]}
    (node.state / "devices.json").write_text(json.dumps(left))
    (node.state / "mounts").unlink()
    node.write("etc/cycleforge/nvme.conf", "mount_point=/nvme\nexpected_disks=0\nwait_s=0\n")
    code, output = unit(node)
    assert code == 0, output
    assert "its scratch data is gone" in output
    assert "--raid-devices=3" in node.calls("mdadm --create")[0]
    assert node.mounts() == ["/nvme"]


def test_missing_disks_are_waited_for_and_named(node: Node) -> None:
    node.vm_size(A100)
    attach(node, *[disk()] * 7)
    output = start(node, wait_s="3")
    assert "7 local NVMe disks after 3 s, the VM size has 8" in output
    assert len(node.calls("lsblk")) > 1
    assert "--raid-devices=7" in node.calls("mdadm --create")[0]


def test_disks_that_come_late_are_all_taken(node: Node) -> None:
    node.vm_size(A100)
    attach(node, *[disk()] * 8)
    late = node.state / "late.json"
    late.write_text((node.state / "devices.json").read_text())
    attach(node, *[disk()] * 5)
    node.fake("sleep", f'cp {late} "$FAKE_STATE/devices.json"')
    start(node, wait_s="30")
    assert "--raid-devices=8" in node.calls("mdadm --create")[0]


def test_a_format_that_was_killed_is_done_again(node: Node) -> None:
    attach(node, disk(), disk())
    node.attribute("cycleforge.nvme.wait_s", "0")
    node.fake("systemctl", "exit 0")
    node.ok("10-nvme.sh")
    (node.state / "kill_mkfs").touch()
    script = node.root / "opt/cycleforge/misc_ndv4/nvme.sh"
    killed = node.command("-c", f'echo $$ >"$FAKE_STATE/pid"; exec bash {script}')
    assert killed.returncode == -9
    assert node.mounts() == []
    code, output = unit(node)
    assert code == 0, output
    assert "unfinished file system" in output
    assert node.mounts() == ["/nvme"]
    assert devices(node)["md127"]["complete"]


def test_a_finished_file_system_that_does_not_mount_is_not_overwritten(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    broken = devices(node)
    broken["md127"]["complete"] = False
    (node.state / "devices.json").write_text(json.dumps(broken))
    code, output = reboot(node)
    assert code == 1
    assert "it is not overwritten" in output
    assert node.calls("mkfs") == []


def test_a_foreign_file_system_on_our_array_is_not_overwritten(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    other = devices(node)
    other["md127"]["signature"] = "zfs_member"
    (node.state / "devices.json").write_text(json.dumps(other))
    code, output = reboot(node)
    assert code == 1
    assert "holds 'zfs_member'" in output
    assert node.calls("mkfs") == []


@pytest.mark.parametrize(("tool", "words"), [("mdadm", "mdadm is not installed"), ("lsblk", "lsblk failed")])
def test_a_missing_tool_fails_the_unit_with_its_name(node: Node, tool: str, words: str) -> None:
    attach(node, disk(), disk())
    node.remove(tool)
    output = node.fails("10-nvme.sh")
    assert "cycleforge-nvme.service did not start" in output
    assert words in (node.state / "units.log").read_text()
    assert not list((node.root / "var/lib/cycleforge/applied").glob("*")) if (node.root / "var/lib").exists() else True


def test_the_unit_runs_before_slurmd_and_is_not_required_by_it(node: Node) -> None:
    attach(node)
    start(node)
    service = node.read("etc/systemd/system/cycleforge-nvme.service")
    assert "Before=slurmd.service" in service
    assert "RequiredBy" not in service
    assert "TimeoutStartSec=" in service
    first, second, *_ = node.calls("systemctl")
    assert (first, second) == ("systemctl daemon-reload", "systemctl --quiet enable cycleforge-nvme.service")


def test_the_definition_can_switch_it_off_again(node: Node) -> None:
    attach(node, disk(), disk())
    start(node)
    node.attribute("cycleforge.nvme.enabled", "False")
    node.ok("10-nvme.sh")
    assert not (node.root / "etc/systemd/system/cycleforge-nvme.service").exists()
    assert node.calls("systemctl --quiet disable")
    assert node.mounts() == ["/nvme"], "data in use stays"


def test_an_unknown_size_is_reported_and_uses_what_is_there(node: Node) -> None:
    attach(node, disk(), disk())
    assert "VM size 'standard_unknown_v9' has no figures" in start(node)
    assert node.mounts() == ["/nvme"]
