"""misc_ndv4, local NVMe disks: what is built, reboots, deallocation, waiting, the unit.

`defect` in a test's name marks a row of the table of defects of the older projects: what went wrong there, and the test
that would have caught it. Disks and mounts of others: `test_nvme_others.py`; kills and tools that fail:
`test_nvme_faults.py`. Real disks: `tests/vm`.
"""

from __future__ import annotations

import pytest

from tests.bed.scripts.node import A100, Node
from tests.projects.nvme import (
    attach,
    devices,
    disk,
    good,
    member,
    prepare,
    put,
    reboot,
    redeployed,
    shut_down,
    start,
    unit,
)


@pytest.fixture
def node(disk_node: Node) -> Node:
    return disk_node


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
