"""misc_ndv4, local NVMe disks: kills at every change, runs at once, tools that fail. `defect`: see `test_nvme.py`."""

from __future__ import annotations

import fcntl
import shutil
from pathlib import Path

import pytest

from tests.bed.scripts.node import A100, HANGS, Node
from tests.projects.nvme import SCRIPT, attach, devices, disk, good, member, prepare, redeployed, shut_down, start, unit


@pytest.fixture
def node(disk_node: Node) -> Node:
    return disk_node


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
    node.fake("systemctl", "exit 0", light=True)
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
