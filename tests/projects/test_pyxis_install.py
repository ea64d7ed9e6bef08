"""pyxis_enroot where the platform lacks something: EL 9, older slurm projects, a plug-in of another Slurm release."""

from __future__ import annotations

import shutil

import pytest

from tests.bed.scripts import pyxis
from tests.bed.scripts.node import Node
from tests.projects.conftest import MakeNode

ARTIFACTS = "opt/cycle/jetpack/system/bootstrap/azure-slurm-install/artifacts"
# What cyclecloud-slurm 4.0.9 carries to every node (azure-slurm-install/package.py).
CARRIED = (
    "enroot-4.0.1-1.el8.x86_64.rpm", "enroot+caps-4.0.1-1.el8.x86_64.rpm", "enroot-4.0.1-1.el8.aarch64.rpm",
    "enroot+caps-4.0.1-1.el8.aarch64.rpm", "enroot_4.0.1-1_amd64.deb", "enroot+caps_4.0.1-1_amd64.deb",
    "enroot_4.0.1-1_arm64.deb", "enroot+caps_4.0.1-1_arm64.deb", "enroot-check_4.0.1_x86_64.run",
    "epel-release-latest-9.noarch.rpm",
)  # fmt: skip
INSTALLS = (
    """printf '#!/bin/bash\\necho 4.0.1\\n' >"$FAKE_STATE/../bin/enroot"; chmod 755 "$FAKE_STATE/../bin/enroot" """
)


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    """No enroot, no pyxis: an older slurm project on Ubuntu 22.04."""
    return pyxis.bare_node(make_node)


@pytest.fixture
def el9(node: Node) -> Node:
    """cyclecloud-slurm 4.0.9 on EL 9: the plug-in is built, its line and enroot are missing."""
    node.os("almalinux", "9.4", "rhel")
    node.write("etc/slurm/plugstack.conf", pyxis.PLUGSTACK)
    node.write(pyxis.PLUGIN_FILE, "plug-in of the slurm project\n")
    for name in CARRIED:
        node.write(f"{ARTIFACTS}/{name}", f"{name}\n")
    node.fake("dnf", INSTALLS)
    return node


# ---------------------------------------------------------------- enroot


def test_el9_gets_enroot_from_the_slurm_projects_own_packages(el9: Node) -> None:
    output = el9.ok("05-install.sh")
    (call,) = el9.calls("dnf")
    folder = el9.root / ARTIFACTS
    assert call == f"dnf --assumeyes --quiet install {folder}/{CARRIED[0]} {folder}/{CARRIED[1]}"
    assert "enroot: enroot 4.0.1 installed from the slurm project's packages" in output
    assert "pyxis: /opt/pyxis/spank_pyxis.so is there" in output


@pytest.mark.parametrize(
    ("machine", "system", "main", "caps"),
    [
        ("x86_64", ("ubuntu", "24.04"), "enroot_4.0.1-1_amd64.deb", "enroot+caps_4.0.1-1_amd64.deb"),
        ("aarch64", ("ubuntu", "24.04"), "enroot_4.0.1-1_arm64.deb", "enroot+caps_4.0.1-1_arm64.deb"),
        ("aarch64", ("almalinux", "9.4"), "enroot-4.0.1-1.el8.aarch64.rpm", "enroot+caps-4.0.1-1.el8.aarch64.rpm"),
    ],
)
def test_the_package_fits_the_machine(el9: Node, machine: str, system: tuple[str, str], main: str, caps: str) -> None:
    el9.os(*system)
    el9.fake("uname", f"echo {machine}")
    el9.fake("apt-get", INSTALLS)
    el9.ok("05-install.sh")
    (call,) = el9.calls("apt-get") + el9.calls("dnf")
    option, folder = "--no-install-recommends " if "deb" in main else "", el9.root / ARTIFACTS
    assert call.endswith(f"install {option}{folder}/{main} {folder}/{caps}")


def test_an_enroot_that_is_there_is_not_installed_again(el9: Node) -> None:
    el9.fake("enroot", "echo 3.5.0")
    assert "enroot: enroot 3.5.0 is there" in el9.ok("05-install.sh")
    assert el9.calls("dnf") == []


@pytest.mark.parametrize("damage", ["missing", "empty", "two", "refused"])
def test_without_a_usable_package_the_pinned_source_is_built(el9: Node, damage: str) -> None:
    main = el9.root / ARTIFACTS / CARRIED[0]
    if damage == "missing":
        main.unlink()
    elif damage == "empty":
        main.write_text("")
    elif damage == "two":
        shutil.copy(main, main.with_name("enroot-4.0.2-1.el8.x86_64.rpm"))
    else:
        el9.fake("dnf", "exit 1")
    pyxis.compiler(el9)
    pyxis.locker(el9)
    el9.fake("enroot", pyxis.RUNS_BUILT)
    output = el9.ok("05-install.sh")
    assert "enroot: enroot 4.1.2 built from the pinned source" in output
    assert el9.read("etc/enroot/mounts.d/10-system.fstab") == "/proc /proc none rbind\n"


def test_ubuntus_lists_are_refreshed_once_when_a_package_is_not_found(node: Node) -> None:
    pyxis.locker(node)
    answer = """
case " $* " in
    *" update "*) touch "$FAKE_STATE/fresh" ;;
    *) [[ -e "$FAKE_STATE/fresh" ]] ;;
esac
"""
    node.fake("apt-get", answer)
    output = node.ok("05-install.sh")
    verbs = [next(word for word in call.split() if word in ("install", "update")) for call in node.calls("apt-get")]
    assert verbs[:3] == ["install", "update", "install"]
    assert "enroot cannot be built: gcc and make are missing and were not installed" in output


def test_without_anything_the_node_lives_and_the_command_is_named(node: Node) -> None:
    pyxis.compiler(node)
    node.fake("jetpack", pyxis.DOWNLOAD.replace("download)", "download) exit 1;; never)"))
    output = node.ok("05-install.sh")
    assert "enroot is not installed: srun --container-image fails on this node" in output
    assert "cycleforge blobs fetch, then build and deploy again" in output
    assert "pyxis is not installed" in output
    assert "jobs that ask for a container run on this node outside of any" in output
    assert not (node.root / "etc/slurm/plugstack.conf.d").exists()
    node.ok("10-enroot.sh")
    assert not (node.root / pyxis.PYXIS_CONF).exists(), "a line without a plug-in makes every job fail"


def test_an_unknown_system_is_reported_and_uses_what_is_there(node: Node) -> None:
    node.os("alpine", "3.20")
    pyxis.compiler(node)
    pyxis.locker(node)
    node.fake("enroot", pyxis.RUNS_BUILT)
    output = node.ok("05-install.sh")
    assert "system alpine-3.20: no packages are installed here" in output
    assert "built from the pinned source" in output


def test_settings_that_are_there_survive_the_installation(node: Node) -> None:
    node.write(pyxis.ENROOT_CONF, "ENROOT_LOGIN_SHELL n\n")
    pyxis.compiler(node)
    pyxis.locker(node)
    node.fake("enroot", pyxis.RUNS_BUILT)
    node.ok("05-install.sh")
    assert node.read(pyxis.ENROOT_CONF) == "ENROOT_LOGIN_SHELL n\n"
    assert node.calls("setcap") == [
        f"setcap cap_sys_admin+pe {node.root}/usr/bin/enroot-mksquashovlfs",
        f"setcap cap_sys_admin,cap_mknod+pe {node.root}/usr/bin/enroot-aufs2ovlfs",
    ]


def test_apparmor_gets_enroots_profile(node: Node) -> None:
    """Ubuntu 24.04 keeps user namespaces from programs without one; the package of Debian systems brings it."""
    node.write("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n")
    pyxis.compiler(node)
    pyxis.locker(node)
    node.fake("enroot", pyxis.RUNS_BUILT)
    node.fake("apparmor_parser", "exit 0")
    node.ok("05-install.sh")
    assert node.calls("apparmor_parser") == [f"apparmor_parser --replace {node.root}/etc/apparmor.d/enroot"]
    assert node.read("etc/apparmor.d/enroot") == "profile\n"


def test_a_failing_compiler_is_shown_and_not_fatal(node: Node) -> None:
    pyxis.compiler(node)
    pyxis.locker(node)
    node.fake("make", "echo 'error: no such header' >&2; exit 2")
    output = node.ok("05-install.sh")
    assert "error: no such header" in output
    assert "enroot 4.1.2 was not built" in output
    assert not list((node.root / "var/cache/cycleforge/pyxis_enroot").glob(".build.*"))


def test_programs_that_enroot_calls_are_installed_and_named_when_they_cannot(node: Node) -> None:
    pyxis.compiler(node)
    pyxis.locker(node)
    node.fake("enroot", pyxis.RUNS_BUILT)
    for name in ("jq", "mksquashfs", "unsquashfs"):
        node.remove(name)
    node.fake("apt-get", "exit 100")
    output = node.ok("05-install.sh")
    assert node.calls("apt-get")[0].endswith("install --no-install-recommends jq squashfs-tools squashfs-tools")
    assert "enroot needs jq mksquashfs unsquashfs: install the packages" in output


def test_the_scheduler_runs_no_containers(node: Node) -> None:
    node.attribute("slurm.role", "scheduler")
    pyxis.compiler(node)
    pyxis.locker(node)
    output = node.ok("05-install.sh")
    assert "enroot is not needed" in output
    assert "pyxis: /opt/pyxis/spank_pyxis.so built for this Slurm release" in output


# ---------------------------------------------------------------- pyxis


def test_defect_the_plugin_of_another_system_is_copied(el9: Node) -> None:
    """Refused by this node's Slurm, it is built here, from the release that the other nodes have."""
    el9.write(pyxis.PLUGIN_FILE, "other release")
    pyxis.compiler(el9)
    source = pyxis.archive({"Makefile": "pyxis 0.21.0\n"}, "pyxis-0.21.0")
    (el9.root / ARTIFACTS / "pyxis-0.21.0.tar.gz").write_bytes(source)
    output = el9.ok("05-install.sh")
    assert "it is built again" in output
    assert "pyxis: /opt/pyxis/spank_pyxis.so built for this Slurm release" in output
    assert el9.read(pyxis.PLUGIN_FILE) == "plug-in of pyxis 0.21.0\n"
    assert (el9.root / pyxis.PLUGIN_FILE).stat().st_mode & 0o777 == 0o755


def test_defect_the_plugin_is_copied_from_the_scheduler_without_a_wait(node: Node) -> None:
    """Built on the node itself, so there is nothing to wait for, and no line before it loads."""
    pyxis.compiler(node)
    pyxis.locker(node)
    node.fake("enroot", pyxis.RUNS_BUILT)
    pyxis.all_scripts(node)
    assert node.read(pyxis.PLUGIN_FILE) == "plug-in of pyxis-0.24.0.tar\n"
    assert node.read(pyxis.PYXIS_CONF) == f"{pyxis.PLUGIN}\n"
    assert not (node.root / "sched").exists()


def test_a_plugin_at_another_place_is_the_sites(node: Node) -> None:
    node.write("etc/slurm/plugstack.conf", "required /usr/lib64/slurm/spank_pyxis.so\n")
    node.write("usr/lib64/slurm/spank_pyxis.so", "other release")
    pyxis.compiler(node)
    pyxis.locker(node, "pyxis-0.24.0.tar")
    node.fake("enroot", "echo 4.0.1")
    output = node.ok("05-install.sh")
    assert "Slurm does not load /usr/lib64/slurm/spank_pyxis.so" in output
    assert node.read("usr/lib64/slurm/spank_pyxis.so") == "other release"
    assert not (node.root / pyxis.PLUGIN_FILE).exists(), "a second plug-in would be loaded twice"


def test_the_headers_of_the_running_slurm_are_needed(node: Node) -> None:
    pyxis.compiler(node)
    pyxis.locker(node)
    (node.root / "usr/include/slurm/spank.h").unlink()
    node.fake("enroot", "echo 4.0.1")
    assert "install slurm-devel (EL) or slurm-smd-dev (Ubuntu)" in node.ok("05-install.sh")


def test_a_plugin_that_slurm_does_not_load_after_all_gets_no_line(node: Node) -> None:
    pyxis.compiler(node)
    pyxis.locker(node)
    node.fake("make", pyxis.MAKE.replace("plug-in of", "other"))
    node.fake("enroot", pyxis.RUNS_BUILT)
    output = pyxis.all_scripts(node)
    assert "pyxis was built and Slurm does not load it: srun: error: spank:" in output
    assert not (node.root / pyxis.PYXIS_CONF).exists()


# ---------------------------------------------------------------- again, and killed


def older(make_node: MakeNode) -> Node:
    node = pyxis.bare_node(make_node)
    pyxis.compiler(node)
    pyxis.locker(node)
    node.fake("enroot", pyxis.RUNS_BUILT)
    return node


def wanted_of(node: Node) -> dict[str, tuple[int, str]]:
    return {path: entry for path, entry in node.content().items() if "/.build." not in path}


def test_a_second_run_builds_and_changes_nothing(make_node: MakeNode) -> None:
    node = older(make_node)
    pyxis.all_scripts(node)
    made, before = (node.state / "made").read_text(), node.files()
    pyxis.all_scripts(node)
    assert (node.state / "made").read_text() == made
    assert node.files() == before


BODIES = {"make": pyxis.MAKE, "setcap": "exit 0"}
KILLED = (
    ("make", 1, "before"), ("make", 3, "after"), ("make", 4, "after"), ("cp", 2, "before"), ("cp", 2, "after"),
    ("setcap", 1, "before"), ("mv", 2, "after"), ("mv", 9, "before"),
)  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """What a node has after a run that nobody killed."""
    node = older(lambda project: Node(tmp_path_factory.mktemp("whole"), project))
    pyxis.all_scripts(node)
    return wanted_of(node)


@pytest.mark.parametrize(("tool", "call", "when"), KILLED)
def test_a_kill_is_healed_by_the_next_run(
    make_node: MakeNode, undisturbed: dict[str, tuple[int, str]], tool: str, call: int, when: str
) -> None:
    """At the moments that leave something half done: compiled, copied, with and without its mark, renamed."""
    node = older(make_node)
    body = BODIES.get(tool) or f'{shutil.which(tool)} "$@"'
    act = f"( {body}\n)" if when == "after" else ":"
    node.fake(
        tool,
        f"""n=$(( $(cat "$FAKE_STATE/count" 2>/dev/null || echo 0) + 1 )); echo $n >"$FAKE_STATE/count"
if (( n == {call} )); then
    {act}
    victim="$PPID"
    if [[ "$(cat /proc/$PPID/comm)" == timeout ]]; then victim="$(awk '{{ print $4 }}' /proc/$PPID/stat)"; fi
    kill -KILL "$victim"; sleep 0.1; exit 1
fi
{body}
""",
    )
    assert any(node.run(script).returncode < 0 for script in pyxis.SCRIPTS)
    pyxis.all_scripts(node)
    assert wanted_of(node) == undisturbed
