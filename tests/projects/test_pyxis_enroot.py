"""pyxis_enroot: enroot.conf and pyxis.conf name the same fast place, one plug-in line, hooks, EL 9."""

from __future__ import annotations

import pytest

from tests.projects.conftest import MakeNode
from tests.projects.node import Node

PLUGIN = "required /opt/pyxis/spank_pyxis.so runtime_path=/mnt/enroot/enroot-runtime"
# What cyclecloud-slurm 4.0.9 writes (azure-slurm-install/templates/enroot.conf.template), scratch on /mnt.
ENROOT_CONF = """ENROOT_SCRATCH_PATH /mnt/enroot
ENROOT_RUNTIME_PATH /mnt/enroot/enroot-run/user-$(id -u)
ENROOT_CACHE_PATH /mnt/enroot/enroot-cache/group-$(id -g)
ENROOT_DATA_PATH /mnt/enroot/enroot-data/user-$(id -u)
ENROOT_TEMP_PATH /mnt/enroot/enroot-temp
ENROOT_SQUASH_OPTIONS -noI -noD -noF -noX -no-duplicates
ENROOT_MOUNT_HOME y
ENROOT_RESTRICT_DEV y
MELLANOX_VISIBLE_DEVICES all
# Trailing comment
"""


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    made = make_node("pyxis_enroot")
    made.write("etc/enroot/enroot.conf", ENROOT_CONF)
    made.write("etc/slurm/plugstack.conf", "include /etc/slurm/plugstack.conf.d/*\n")
    made.write("etc/slurm/plugstack.conf.d/pyxis.conf", PLUGIN)
    made.write("opt/pyxis/spank_pyxis.so", "")
    for hook in ("50-slurm-pmi.sh", "50-slurm-pytorch.sh"):
        made.write(f"usr/share/enroot/hooks.d/{hook}", f"#!/bin/bash\n# {hook}\n")
    made.mount("/mnt")
    return made


def test_scratch_moves_to_the_nvme_mount(node: Node) -> None:
    node.mount("/nvme")
    node.ok("10-enroot.sh")
    text = node.read("etc/enroot/enroot.conf")
    assert text == ENROOT_CONF.replace("/mnt/enroot", "/nvme/enroot")
    assert node.read("etc/slurm/plugstack.conf.d/pyxis.conf") == PLUGIN.replace("/mnt/enroot", "/nvme/enroot") + "\n"


@pytest.mark.parametrize("folder", ["", "enroot-cache", "enroot-data", "enroot-temp", "enroot-runtime", "enroot-run"])
def test_folders_are_sticky(node: Node, folder: str) -> None:
    node.mount("/nvme")
    node.ok("10-enroot.sh")
    assert (node.root / "nvme/enroot" / folder).stat().st_mode & 0o7777 == 0o1777


@pytest.mark.parametrize(
    ("mounts", "attribute", "wanted"),
    [
        (["/mnt/scratch", "/nvme"], ("cycleforge.nvme.mount_point", "/mnt/scratch"), "/mnt/scratch/enroot"),
        (["/mnt/resource_nvme"], None, "/mnt/resource_nvme/enroot"),
        ([], None, "/mnt/enroot"),
        (["/nvme"], ("cycleforge.enroot.scratch", "/data/local"), "/data/local/enroot"),
    ],
)
def test_where_scratch_goes(node: Node, mounts: list[str], attribute: tuple[str, str] | None, wanted: str) -> None:
    for mount in mounts:
        node.mount(mount)
    if attribute:
        node.attribute(*attribute)
    node.ok("10-enroot.sh")
    assert f"ENROOT_SCRATCH_PATH {wanted}\n" in node.read("etc/enroot/enroot.conf")
    assert f"runtime_path={wanted}/enroot-runtime" in node.read("etc/slurm/plugstack.conf.d/pyxis.conf")


def test_without_any_local_disk_it_is_tmp_with_a_warning(node: Node) -> None:
    (node.state / "mounts").write_text("")
    assert "enroot unpacks containers to /tmp/enroot on the system disk" in node.ok("10-enroot.sh")


def test_missing_and_repeated_lines_of_enroot_conf(node: Node) -> None:
    node.write("etc/enroot/enroot.conf", "ENROOT_TEMP_PATH /a\nENROOT_TEMP_PATH /b\nENROOT_LOGIN_SHELL n")
    node.ok("10-enroot.sh")
    lines = node.read("etc/enroot/enroot.conf").splitlines()
    assert lines[:2] == ["ENROOT_TEMP_PATH /mnt/enroot/enroot-temp", "ENROOT_LOGIN_SHELL n"]
    assert sorted(line.split()[0] for line in lines) == [
        "ENROOT_CACHE_PATH",
        "ENROOT_DATA_PATH",
        "ENROOT_LOGIN_SHELL",
        "ENROOT_RUNTIME_PATH",
        "ENROOT_SCRATCH_PATH",
        "ENROOT_TEMP_PATH",
    ]
    assert node.read("etc/enroot/enroot.conf").endswith("\n"), "enroot needs the last line end"


@pytest.mark.parametrize(("value", "line"), [("leave", "y"), ("False", "n"), ("True", "y")])
def test_home_in_containers(node: Node, value: str, line: str) -> None:
    node.attribute("cycleforge.enroot.mount_home", value)
    node.ok("10-enroot.sh")
    assert f"ENROOT_MOUNT_HOME {line}\n" in node.read("etc/enroot/enroot.conf")


def test_a_plugin_line_without_runtime_path_gets_one(node: Node) -> None:
    node.write("etc/slurm/plugstack.conf.d/pyxis.conf", "required /opt/pyxis/spank_pyxis.so\n")
    node.ok("10-enroot.sh")
    assert node.read("etc/slurm/plugstack.conf.d/pyxis.conf") == PLUGIN + "\n"


def test_a_second_plugin_line_is_refused_before_jobs_fail(node: Node) -> None:
    node.write("etc/slurm/plugstack.conf.d/other.conf", "required /usr/lib64/slurm/spank_pyxis.so\n")
    output = node.fails("10-enroot.sh")
    assert "loads spank_pyxis.so 2 times" in output
    assert "remove the other pyxis project" in output


def test_a_required_plugin_that_does_not_exist_is_named(node: Node) -> None:
    (node.root / "opt/pyxis/spank_pyxis.so").unlink()
    output = node.fails("10-enroot.sh")
    assert "requires /opt/pyxis/spank_pyxis.so, which does not exist" in output


def test_a_link_in_the_place_of_a_folder_is_refused(node: Node) -> None:
    (node.state / "mounts").write_text("")
    (node.root / "tmp").mkdir()
    (node.root / "tmp/enroot").symlink_to("/etc")
    assert "is a symbolic link" in node.fails("10-enroot.sh")


def test_el9_is_reported_and_nothing_is_installed_twice(node: Node) -> None:
    node.os("almalinux", "9.4", "rhel")
    (node.root / "etc/enroot/enroot.conf").unlink()
    (node.root / "etc/slurm/plugstack.conf.d/pyxis.conf").unlink()
    output = node.ok("10-enroot.sh")
    assert "enroot is not configured on this node (el 9): srun --container-image does not work here" in output
    assert not (node.root / "etc/slurm/plugstack.conf.d/pyxis.conf").exists()


def test_after_deallocation_the_boot_unit_makes_the_folders_and_falls_back(node: Node) -> None:
    node.mount("/nvme")
    node.ok("10-enroot.sh")
    (node.state / "mounts").write_text("/mnt\n")
    script = node.root / "opt/cycleforge/pyxis_enroot/enroot.sh"
    result = node.command(str(script))
    assert result.returncode == 0, result.stderr
    assert "ENROOT_SCRATCH_PATH /mnt/enroot\n" in node.read("etc/enroot/enroot.conf")
    assert (node.root / "mnt/enroot/enroot-run").is_dir()


def test_the_unit_comes_after_the_disks_and_before_slurmd(node: Node) -> None:
    node.ok("10-enroot.sh")
    text = node.read("etc/systemd/system/cycleforge-enroot.service")
    assert "cycleforge-nvme.service" in text
    assert "Before=slurmd.service" in text
    assert "After=cycleforge-enroot.service" in node.read(
        "etc/systemd/system/slurmd.service.d/20-cycleforge-pyxis_enroot.conf"
    )


@pytest.mark.parametrize("role", ["execute", "login"])
def test_hooks_are_switched_on(node: Node, role: str) -> None:
    node.attribute("slurm.role", role)
    node.ok("20-hooks.sh")
    assert (node.root / "etc/enroot/hooks.d/50-slurm-pmi.sh").stat().st_mode & 0o777 == 0o755


def test_existing_hooks_stay_and_missing_ones_are_named(node: Node) -> None:
    node.write("etc/enroot/hooks.d/50-slurm-pmi.sh", "mine", 0o755)
    (node.root / "usr/share/enroot/hooks.d/50-slurm-pytorch.sh").unlink()
    output = node.ok("20-hooks.sh")
    assert node.read("etc/enroot/hooks.d/50-slurm-pmi.sh") == "mine"
    assert "enroot does not ship 50-slurm-pytorch.sh" in output


def test_gpu_nodes_need_the_container_tools(node: Node) -> None:
    node.write("dev/nvidia0", "")
    assert "nvidia-container-cli is missing" in node.ok("20-hooks.sh")
    node.fake("nvidia-container-cli", "exit 0")
    assert "nvidia-container-cli is there" in node.ok("20-hooks.sh")


def test_the_scheduler_needs_no_hooks(node: Node) -> None:
    node.attribute("slurm.role", "scheduler")
    node.ok("20-hooks.sh")
    assert not (node.root / "etc/enroot/hooks.d").exists()


@pytest.mark.parametrize("script", ["10-enroot.sh", "20-hooks.sh"])
def test_a_second_run_changes_nothing(node: Node, script: str) -> None:
    node.mount("/nvme")
    node.ok(script)
    before = node.files()
    node.ok(script)
    assert node.files() == before
