"""pyxis_enroot on nodes whose platform brings both: enroot.conf and pyxis.conf name the same fast place, one plug-in
line that is required, hooks, credentials. A test whose name begins with `defect` is a row of the references' faults."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from generator.files import assets
from tests.bed.scripts import pyxis
from tests.bed.scripts.node import HANGS, Node
from tests.bed.scripts.pyxis import ENROOT_CONF, PLUGIN, PYXIS_CONF, SLURM_PROJECT_CONF
from tests.projects.conftest import MakeNode

DYNAMIC = re.compile(r"^MELLANOX_VISIBLE_DEVICES \$\(if .*; then echo all; else echo void; fi\)$", re.MULTILINE)


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    return pyxis.platform_node(make_node)


def moved(text: str, scratch: str) -> str:
    """The slurm project's text with our scratch, our cache per user and our device line."""
    lines = text.replace("/mnt/enroot", scratch).replace("group-$(id -g)", "user-$(id -u)")
    return lines.replace("MELLANOX_VISIBLE_DEVICES all\n", "DEVICES\n").rstrip("\n") + "\n"


# ---------------------------------------------------------------- scratch


def test_defect_scratch_on_the_temporary_disk_although_nvme_exists(node: Node) -> None:
    node.mount("/nvme")
    (node.root / "nvme").mkdir()
    pyxis.boot(node)
    text = node.read(ENROOT_CONF)
    assert DYNAMIC.search(text)
    assert DYNAMIC.sub("DEVICES", text).rstrip("\n") + "\n" == moved(SLURM_PROJECT_CONF, "/nvme/enroot")
    assert node.read(PYXIS_CONF) == PLUGIN.replace("/mnt/enroot", "/nvme/enroot") + "\n"


def test_defect_777_without_sticky_bit(node: Node) -> None:
    """The runtime folder is root's alone, because pyxis makes the users' folders in it as root."""
    wanted = dict.fromkeys(("", "enroot-cache", "enroot-data", "enroot-temp", "enroot-run"), 0o1777)
    wanted["enroot-runtime"] = 0o755
    scratch = node.root / "mnt/enroot"
    for name in wanted:
        (scratch / name).mkdir(parents=True, exist_ok=True)
        (scratch / name).chmod(0o777)
    pyxis.boot(node)
    assert {name: (scratch / name).stat().st_mode & 0o7777 for name in wanted} == wanted


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
        (node.root / mount[1:]).mkdir(parents=True)
    if attribute:
        node.attribute(*attribute)
    node.ok("10-enroot.sh")
    assert f"ENROOT_SCRATCH_PATH {wanted}\n" in node.read(ENROOT_CONF)
    assert f"runtime_path={wanted}/enroot-runtime" in node.read(PYXIS_CONF)


def test_defect_grep_resource_is_satisfied_by_another_mount(node: Node) -> None:
    """/mnt/resource_nvme is not a mount of /mnt, and a path without a mount is never mounted by us."""
    (node.state / "mounts").write_text("/mnt/resource_nvme2\n/mnt2\n")
    assert "/tmp/enroot on the system disk" in pyxis.boot(node)
    assert node.calls("mount ") == []
    asked = {call.split()[-1].removeprefix(str(node.root)) for call in node.calls("mountpoint -q")}
    assert asked == {"/nvme", "/mnt/nvme", "/mnt/resource_nvme", "/mnt"}


def test_a_mount_that_cannot_be_written_is_passed_over(node: Node) -> None:
    node.mount("/nvme")  # the folder is missing: like a read-only file system, nobody can write there
    output = pyxis.boot(node)
    assert "/nvme is mounted and cannot be written" in output
    assert "ENROOT_SCRATCH_PATH /mnt/enroot\n" in node.read(ENROOT_CONF)


def test_without_any_local_disk_it_is_tmp_with_a_warning(node: Node) -> None:
    (node.state / "mounts").write_text("")
    assert "enroot unpacks containers to /tmp/enroot on the system disk" in pyxis.boot(node)


def test_a_link_that_anybody_could_have_made_is_refused(node: Node) -> None:
    (node.state / "mounts").write_text("")
    (node.root / "tmp").mkdir()
    (node.root / "tmp").chmod(0o1777)
    (node.root / "tmp/enroot").symlink_to("/etc")
    assert "is a symbolic link" in pyxis.boot(node, fails=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="another user has made the folder")
@pytest.mark.parametrize("tool", ["mkdir", "stat", "chown"])
def test_a_link_that_takes_the_place_of_a_folder_gives_nothing_away(node: Node, tool: str) -> None:
    """Whoever has made the folder first can exchange it at any moment: here, when a tool is called for it."""
    place, victim = node.root / "mnt/enroot", node.root / "victim"
    victim.mkdir(mode=0o700)
    if tool != "mkdir":
        place.mkdir(mode=0o700)
        os.chown(place, 65534, -1)
    swap = f'if [[ -d "{place}" ]]; then mv -T "{place}" "{place}.mine"; fi; ln -s "{victim}" "{place}"'
    node.fake(tool, f'if [[ ! -L "{place}" ]]; then {swap}; fi\nexec {shutil.which(tool)} "$@"')
    assert "became a symbolic link" in pyxis.boot(node, fails=True)
    assert (victim.stat().st_mode & 0o7777, victim.stat().st_uid) == (0o700, 0)
    assert list(victim.iterdir()) == []


def test_the_link_of_older_slurm_projects_is_followed(node: Node) -> None:
    """4.0.0 to 4.0.2 link /mnt/enroot to /mnt/nvme/enroot or /mnt/scratch/enroot."""
    (node.root / "mnt/scratch/enroot").mkdir(parents=True)
    (node.root / "mnt/enroot").symlink_to("scratch/enroot")
    pyxis.boot(node)
    assert (node.root / "mnt/scratch/enroot/enroot-data").stat().st_mode & 0o7777 == 0o1777


def test_defect_folders_on_tmpfs_are_gone_after_a_reboot(node: Node) -> None:
    node.ok("10-enroot.sh")
    subprocess.run(["rm", "-r", node.root / "mnt/enroot"], check=True)
    assert "enroot folders: 6 of 6 created" in pyxis.boot(node)


def test_after_deallocation_the_boot_unit_falls_back(node: Node) -> None:
    node.mount("/nvme")
    (node.root / "nvme").mkdir()
    node.ok("10-enroot.sh")
    (node.state / "mounts").write_text("/mnt\n")
    pyxis.boot(node)
    assert "ENROOT_SCRATCH_PATH /mnt/enroot\n" in node.read(ENROOT_CONF)
    assert "runtime_path=/mnt/enroot/enroot-runtime" in node.read(PYXIS_CONF)


def test_the_unit_comes_after_the_disks_and_slurms_files_and_before_slurmd(node: Node) -> None:
    node.ok("10-enroot.sh")
    text = node.read("etc/systemd/system/cycleforge-enroot.service")
    assert "After=local-fs.target remote-fs.target cycleforge-nvme.service\n" in text
    assert "Before=slurmd.service\n" in text
    drop_in = node.read("etc/systemd/system/slurmd.service.d/20-cycleforge-pyxis_enroot.conf")
    assert "Wants=cycleforge-enroot.service\nAfter=cycleforge-enroot.service\n" in drop_in


# ---------------------------------------------------------------- enroot.conf


def test_missing_and_repeated_lines_of_enroot_conf(node: Node) -> None:
    node.write(ENROOT_CONF, "ENROOT_TEMP_PATH /a\nENROOT_TEMP_PATH /b\nENROOT_LOGIN_SHELL n")
    pyxis.boot(node)
    lines = node.read(ENROOT_CONF).splitlines()
    assert lines[:2] == ["ENROOT_TEMP_PATH /mnt/enroot/enroot-temp", "ENROOT_LOGIN_SHELL n"]
    assert sorted(line.split()[0] for line in lines) == [
        "ENROOT_CACHE_PATH",
        "ENROOT_DATA_PATH",
        "ENROOT_LOGIN_SHELL",
        "ENROOT_RUNTIME_PATH",
        "ENROOT_SCRATCH_PATH",
        "ENROOT_TEMP_PATH",
    ]
    assert node.read(ENROOT_CONF).endswith("\n"), "enroot does not read a last line without an end"


def test_a_file_with_comments_only_gets_what_the_slurm_project_writes_elsewhere(node: Node) -> None:
    """EL 9, older slurm projects, and EL 8 images whose version does not begin with 8."""
    node.write(ENROOT_CONF, "#ENROOT_TEMP_PATH ${TMPDIR:-/tmp}\n# end\n")
    pyxis.boot(node)
    text = node.read(ENROOT_CONF)
    assert text.startswith("#ENROOT_TEMP_PATH ${TMPDIR:-/tmp}\n# end\n")
    ours = {line for line in DYNAMIC.sub("DEVICES", text).splitlines() if not line.startswith("#")}
    assert ours == {line for line in moved(SLURM_PROJECT_CONF, "/mnt/enroot").splitlines() if line[0] != "#"}


def test_values_of_the_site_stay(node: Node) -> None:
    mine = "ENROOT_SQUASH_OPTIONS -comp zstd\nMELLANOX_VISIBLE_DEVICES void\n  # a note\n"
    mine += "ENROOT_MAX_PROCESSORS 4\n\nENROOT_CONFIG_PATH /site\n"
    node.write(ENROOT_CONF, mine)
    pyxis.boot(node)
    assert node.read(ENROOT_CONF).startswith(mine)


@pytest.mark.parametrize(("value", "line"), [("leave", "y"), ("False", "n"), ("True", "y")])
def test_home_in_containers(node: Node, value: str, line: str) -> None:
    node.attribute("cycleforge.enroot.mount_home", value)
    node.ok("10-enroot.sh")
    assert f"ENROOT_MOUNT_HOME {line}\n" in node.read(ENROOT_CONF)


def test_a_misspelt_value_of_an_attribute_is_named(node: Node) -> None:
    node.attribute("cycleforge.enroot.mount_home", "maybe")
    assert "is 'maybe', expected leave, true or false" in node.fails("10-enroot.sh")


def expanded(node: Node, key: str, **variables: str) -> str:
    """The value of a key, read and expanded as enroot's config::load does."""
    text = """
set -euo pipefail
"$BASH" -n "$1"
while IFS=$' \\t=' read -r key value; do
    if [[ "$key" == "$2" ]]; then eval echo "$value"; fi
done <"$1"
"""
    result = node.command("-c", text, "enroot", str(node.root / ENROOT_CONF), key, **variables)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def test_infiniband_is_asked_for_at_every_start_of_a_container(node: Node) -> None:
    """With `all` and no driver enroot's hook 99-mellanox.sh fails, and with it every container of a CPU node."""
    pyxis.boot(node)
    there = Path("/sys/class/infiniband_mad/abi_version").exists() and Path("/dev/infiniband/rdma_cm").exists()
    assert expanded(node, "MELLANOX_VISIBLE_DEVICES") == ("all" if there else "void")


# ---------------------------------------------------------------- credentials


SITE = "/sched/enroot-credentials"


def credentials(node: Node, mode: int = 0o640) -> None:
    node.write(SITE[1:], "machine nvcr.io login $oauthtoken password x\n", mode)
    node.attribute("cycleforge.enroot.credentials", SITE)


def test_the_sites_credentials_are_linked_and_a_users_own_folder_wins(node: Node) -> None:
    credentials(node)
    node.link("id")
    assert "registry credentials: /sched/enroot-credentials" in node.ok("10-enroot.sh")
    link = node.root / "etc/cycleforge/enroot/.credentials"
    assert str(link.readlink()) == "/sched/enroot-credentials", "a copy would keep an old password and its own rights"
    home = node.root / "home/alice"
    home.mkdir(parents=True)
    assert expanded(node, "ENROOT_CONFIG_PATH", HOME=str(home)) == "/etc/cycleforge/enroot"
    (home / ".config/enroot").mkdir(parents=True)
    assert expanded(node, "ENROOT_CONFIG_PATH", HOME=str(home)) == f"{home}/.config/enroot"
    assert (
        expanded(node, "ENROOT_CONFIG_PATH", HOME="/x", XDG_CONFIG_HOME=f"{home}/.config") == f"{home}/.config/enroot"
    )


@pytest.mark.parametrize(
    ("mode", "text", "linked"),
    [
        (0o640, "registry credentials: /sched/enroot-credentials", True),
        (0o600, "can be read by its owner only (mode 600)", True),
        (0o660, "can be written by others than its owner (mode 660): it is not used", False),
        (0o646, "can be written by others than its owner (mode 646): it is not used", False),
    ],
)
def test_who_may_write_the_credentials_could_run_commands(node: Node, mode: int, text: str, linked: bool) -> None:
    credentials(node, mode)
    assert text in pyxis.boot(node, credentials=SITE)
    assert (node.root / "etc/cycleforge/enroot/.credentials").is_symlink() is linked
    assert ("ENROOT_CONFIG_PATH" in node.read(ENROOT_CONF)) is linked


def test_missing_credentials_are_a_warning(node: Node) -> None:
    node.attribute("cycleforge.enroot.credentials", "/sched/enroot-credentials")
    assert "/sched/enroot-credentials does not exist: images of registries that ask for a password fail" in node.ok(
        "10-enroot.sh"
    )


def test_credentials_that_are_no_longer_asked_for_go(node: Node) -> None:
    credentials(node)
    node.ok("10-enroot.sh")
    (node.state / "attributes/cycleforge.enroot.credentials").unlink()
    node.ok("10-enroot.sh")
    assert not (node.root / "etc/cycleforge/enroot/.credentials").is_symlink()
    assert "ENROOT_CONFIG_PATH" not in node.read(ENROOT_CONF)


# ---------------------------------------------------------------- plug-in


def test_a_plugin_line_without_runtime_path_gets_one(node: Node) -> None:
    node.write(PYXIS_CONF, "required /opt/pyxis/spank_pyxis.so\n")
    pyxis.boot(node)
    assert node.read(PYXIS_CONF) == PLUGIN + "\n"


def test_other_options_and_lines_of_pyxis_conf_stay(node: Node) -> None:
    node.write(PYXIS_CONF, f"# mine\n{PLUGIN} container_scope=job\n")
    pyxis.boot(node)
    assert node.read(PYXIS_CONF) == f"# mine\n{PLUGIN} container_scope=job\n"


def test_an_optional_plugin_becomes_required(node: Node) -> None:
    """Slurm runs a job whose container did not start outside of it when the plug-in is optional."""
    node.write(PYXIS_CONF, PLUGIN.replace("required", "optional"))
    pyxis.boot(node)
    assert node.read(PYXIS_CONF) == PLUGIN + "\n"


@pytest.mark.parametrize("name", ["other.conf", "pyxis.conf.tmp"])
def test_a_second_plugin_line_is_refused_before_jobs_fail(node: Node, name: str) -> None:
    """Slurm reads every file of the folder, also what a killed install left."""
    node.write(f"etc/slurm/plugstack.conf.d/{name}", "required /usr/lib64/slurm/spank_pyxis.so")
    output = pyxis.boot(node, fails=True)
    assert "loads spank_pyxis.so 2 times" in output
    assert "remove the other pyxis project" in output


def test_files_without_a_line_end_are_read_line_by_line(node: Node) -> None:
    """plugstack.conf and pyxis.conf of the slurm project have none; run together they would hide the plug-in."""
    assert "pyxis plug-in: required line, /opt/pyxis/spank_pyxis.so: loads" in pyxis.boot(node)


def test_defect_a_required_plugin_that_is_not_there_makes_every_job_fail(node: Node) -> None:
    (node.root / pyxis.PLUGIN_FILE).unlink()
    output = pyxis.boot(node, fails=True)
    assert "requires /opt/pyxis/spank_pyxis.so, which does not exist" in output
    assert "every job would fail" in output


def test_defect_a_plugin_built_for_another_slurm_is_named(node: Node) -> None:
    node.write(pyxis.PLUGIN_FILE, "other release")
    output = pyxis.boot(node, fails=True)
    assert "which Slurm does not load: srun: error: spank:" in output
    assert "Incompatible plugin version" in output


@pytest.mark.parametrize(
    "answer", [HANGS, "exit 1", "echo garbage", "echo 'srun: fatal: no configuration' >&2; exit 1"]
)
def test_an_srun_that_says_nothing_about_the_plugin_stops_nothing(node: Node, answer: str) -> None:
    node.fake("srun", answer)
    output = pyxis.boot(node)
    assert "pyxis plug-in: required line, /opt/pyxis/spank_pyxis.so: unknown" in output
    assert node.read(PYXIS_CONF) == PLUGIN + "\n"


@pytest.mark.parametrize("role", ["login", "scheduler", "execute", "unknown"])
def test_defect_no_pyxis_on_login_nodes(node: Node, role: str) -> None:
    """EL 9: the slurm project builds the plug-in everywhere and writes no line; srun needs it where it is typed."""
    node.attribute("slurm.role", role)
    (node.root / PYXIS_CONF).unlink()
    output = node.ok("10-enroot.sh")
    assert node.read(PYXIS_CONF) == PLUGIN + "\n"
    assert "container check: srun has --container-image" in output


def test_an_older_slurm_project_gets_a_plugstack(node: Node) -> None:
    (node.root / PYXIS_CONF).unlink()
    (node.root / "etc/slurm/plugstack.conf").unlink()
    pyxis.boot(node)
    assert node.read("etc/slurm/plugstack.conf") == "include /etc/slurm/plugstack.conf.d/*\n"


def test_a_plugstack_of_the_site_stays_and_is_reported(node: Node) -> None:
    node.write("etc/slurm/plugstack.conf", "optional /site/spank_x.so\n")
    output = pyxis.boot(node)
    assert "add the line 'include /etc/slurm/plugstack.conf.d/*' to it" in output
    assert node.read("etc/slurm/plugstack.conf") == "optional /site/spank_x.so\n"


# ---------------------------------------------------------------- hooks and prolog


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
    assert "nvidia-container-cli works" in node.ok("20-hooks.sh")
    node.fake("nvidia-container-cli", "exit 1")
    assert "'nvidia-container-cli info' failed" in node.ok("20-hooks.sh")


def test_the_scheduler_needs_no_hooks(node: Node) -> None:
    node.attribute("slurm.role", "scheduler")
    node.ok("20-hooks.sh")
    assert not (node.root / "etc/enroot/hooks.d").exists()


def prolog(node: Node, **variables: str) -> tuple[int, list[str]]:
    """Exit code of the GPU prolog and what it called."""
    node.forget()
    result = node.command(str(node.root / "etc/slurm/prolog.d/50-cycleforge-uvm.sh"), **variables)
    return result.returncode, node.calls()


@pytest.fixture
def scheduler(node: Node) -> Node:
    node.attribute("slurm.role", "scheduler")
    node.write("etc/slurm/prolog.d/10-health_prolog.sh", "health\n", 0o755)
    node.ok("20-hooks.sh")
    return node


def test_defect_a_prolog_that_ends_early_hides_the_lines_of_others(scheduler: Node) -> None:
    """A file of its own; the health prolog stays as it is, and a CPU node or job passes without a call."""
    assert scheduler.read("etc/slurm/prolog.d/10-health_prolog.sh") == "health\n"
    assert prolog(scheduler) == (0, [])
    assert prolog(scheduler, SLURM_JOB_GPUS="0,1") == (0, [])
    scheduler.write("dev/nvidia0", "")
    assert prolog(scheduler) == (0, [])


def test_the_prolog_makes_the_uvm_device_of_a_gpu_job_or_refuses_it(scheduler: Node) -> None:
    scheduler.write("dev/nvidia0", "")
    scheduler.write("proc/devices", "509 nvidia-uvm\n")
    scheduler.fake("nvidia-modprobe", "exit 1")
    scheduler.fake("modprobe", "exit 0")
    scheduler.fake("mknod", "exit 1")
    code, calls = prolog(scheduler, SLURM_JOB_GPUS="0")
    assert code == 1
    assert calls[-1] == f"mknod -m 666 {scheduler.root}/dev/nvidia-uvm c 509 0"
    scheduler.fake("nvidia-modprobe", 'echo >"$CYCLEFORGE_ROOT/dev/nvidia-uvm"')
    assert prolog(scheduler, SLURM_JOB_GPUS="0") == (0, ["nvidia-modprobe -u -c 0"])
    assert prolog(scheduler, SLURM_JOB_GPUS="0") == (0, [])


def test_defect_the_prolog_edits_enroot_conf_at_every_job(scheduler: Node) -> None:
    before = scheduler.files()
    prolog(scheduler, SLURM_JOB_GPUS="0")
    assert scheduler.files() == before
    assert "enroot.conf" not in scheduler.read("etc/slurm/prolog.d/50-cycleforge-uvm.sh")


def test_an_older_slurm_project_has_no_folder_for_prologs(node: Node) -> None:
    node.attribute("slurm.role", "scheduler")
    assert "this slurm project has no prolog.d" in node.ok("20-hooks.sh")


# ---------------------------------------------------------------- again, and killed


def test_defect_prolog_lines_are_appended_again_at_a_second_run(node: Node) -> None:
    node.write("etc/slurm/slurm.conf", "Prolog=/etc/slurm/prolog.d/*\n")
    node.mount("/nvme")
    (node.root / "nvme").mkdir()
    pyxis.all_scripts(node)
    before = node.files()
    pyxis.all_scripts(node)
    assert node.files() == before
    assert node.read("etc/slurm/slurm.conf") == "Prolog=/etc/slurm/prolog.d/*\n"


def test_defect_a_block_for_slurmd_is_appended_at_each_run_and_waits_for_ever_on_login_nodes(node: Node) -> None:
    """Nothing waits, and slurmd's file of options, which the slurm project rewrites, is never ours."""
    node.attribute("slurm.role", "login")
    node.write("etc/default/slurmd", "SLURMD_OPTIONS=-b -N node-1\n")
    pyxis.all_scripts(node)
    pyxis.all_scripts(node)
    assert node.read("etc/default/slurmd") == "SLURMD_OPTIONS=-b -N node-1\n"
    assert not (node.root / "etc/sysconfig/slurmd").exists()
    sources = assets.folder("projects").glob("pyxis_enroot/specs/**/*.sh")
    assert [path.name for path in sources if re.search(r"\b(until|sleep)\b|while (true|:|\[)", path.read_text())] == []


def test_defect_what_slurmd_needs_is_lost_when_the_node_converges_again(node: Node) -> None:
    """The slurm project writes its files anew; ours are a drop-in and are written again after it."""
    pyxis.all_scripts(node)
    wanted = node.content()
    for path, text in ((ENROOT_CONF, SLURM_PROJECT_CONF), (PYXIS_CONF, PLUGIN)):
        node.write(path, text)
    pyxis.all_scripts(node)
    assert node.content() == wanted
