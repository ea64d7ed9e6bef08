"""The container check of pyxis_enroot: what would stop a container is found without a job."""

from __future__ import annotations

import pytest

from tests.bed.scripts import pyxis
from tests.bed.scripts.node import HANGS, Node
from tests.projects.conftest import MakeNode

GIB = 1048576


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    return pyxis.platform_node(make_node)


def verdict(output: str) -> str:
    """The words of the step."""
    (line,) = [line for line in output.splitlines() if "container check: " in line and "WARNING" not in line]
    return line.partition("container check: ")[2].rpartition(" (")[0]


def test_a_healthy_node(node: Node) -> None:
    output = pyxis.boot(node)
    assert verdict(output) == "srun has --container-image, enroot 4.0.1, user namespaces work, 858 GiB free, 0 problems"
    assert "WARNING" not in output
    assert node.calls("setpriv")[-1] == (
        "setpriv --reuid=65534 --regid=65534 --clear-groups enroot-nsenter --user --mount true"
    )


def test_it_changes_nothing_and_a_problem_is_no_failure(node: Node) -> None:
    pyxis.boot(node)
    before = node.files()
    node.fake("setpriv", "exit 1")
    node.fake("enroot", "exit 1")
    node.remove("jq")
    assert verdict(pyxis.boot(node)).endswith("3 problems")
    assert node.files() == before


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("exit 1", "'enroot version' failed: no answer within 20 s"),
        (HANGS, "'enroot version' failed: no answer within 20 s"),
        ("echo garbage; exit 0", "'enroot version' failed: garbage"),
        ("echo; exit 0", "'enroot version' failed"),
        ("echo 'Invalid configuration file: /etc/enroot/enroot.conf'; exit 1", "failed: Invalid configuration file"),
    ],
)
def test_an_enroot_that_does_not_answer(node: Node, answer: str, words: str) -> None:
    node.fake("enroot", answer)
    assert words in pyxis.boot(node)


def test_a_missing_enroot(node: Node) -> None:
    node.remove("enroot")
    output = pyxis.boot(node)
    assert "enroot is not installed: srun --container-image fails on this node" in output
    assert verdict(output) == "srun has --container-image, 858 GiB free, 1 problem"


@pytest.mark.parametrize(
    ("setting", "value", "words"),
    [
        ("user/max_user_namespaces", "0", "user.max_user_namespaces is 0; write 'user.max_user_namespaces = 15000'"),
        ("user/max_user_namespaces", "1", "user.max_user_namespaces is 1; write"),
        ("user/max_user_namespaces", "32", "run 'enroot-nsenter --user --mount true' as an ordinary user"),
        ("kernel/unprivileged_userns_clone", "0", "kernel.unprivileged_userns_clone is 0; write"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "apparmor_parser --replace /etc/apparmor.d/enroot"),
        ("kernel/apparmor_restrict_unprivileged_userns", "0", "run 'enroot-nsenter --user --mount true'"),
    ],
)
def test_why_users_get_no_namespace(node: Node, setting: str, value: str, words: str) -> None:
    node.write(f"proc/sys/{setting}", f"{value}\n")
    node.fake("setpriv", "echo 'enroot-nsenter: failed to create user namespace: Operation not permitted' >&2; exit 1")
    output = pyxis.boot(node)
    assert "ordinary users cannot start containers (enroot-nsenter: failed to create user namespace" in output
    assert words in output


def test_settings_do_not_matter_while_namespaces_work(node: Node) -> None:
    """Ubuntu 24.04 with enroot's profile: restricted, and fine."""
    node.write("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n")
    assert verdict(pyxis.boot(node)).endswith("0 problems")


def test_a_hanging_namespace_check_is_a_problem(node: Node) -> None:
    node.fake("setpriv", HANGS)
    assert "ordinary users cannot start containers (no reason given)" in pyxis.boot(node)


@pytest.mark.parametrize(
    ("free_kib", "wanted"), [(60 * GIB, "0 problems"), (60 * GIB - 1, "1 problem"), (0, "1 problem")]
)
def test_space_on_both_sides_of_the_limit(node: Node, free_kib: int, wanted: str) -> None:
    (node.state / "free_kib").write_text(str(free_kib))
    output = pyxis.boot(node)
    assert verdict(output).endswith(wanted)
    assert ("expected at least 60 GiB" in output) is (wanted == "1 problem")


def test_the_limit_of_space_is_an_attribute(node: Node) -> None:
    (node.state / "free_kib").write_text("0")
    node.attribute("cycleforge.enroot.min_free_gib", "0")
    assert verdict(node.ok("10-enroot.sh")).endswith("0 problems")


@pytest.mark.parametrize("answer", [HANGS, "exit 1", "echo garbage", "echo"])
def test_space_that_is_not_known(node: Node, answer: str) -> None:
    node.fake("df", answer)
    assert "free space of /mnt/enroot is not known" in pyxis.boot(node)


@pytest.mark.parametrize("tool", ["mksquashfs", "jq"])
def test_a_program_that_enroot_calls_is_missing(node: Node, tool: str) -> None:
    node.remove(tool)
    assert f"enroot needs {tool} " in pyxis.boot(node)


def test_import_needs_overlay_and_a_capability(node: Node) -> None:
    node.write("proc/filesystems", "\text4\n")
    node.fake("modprobe", "exit 1")
    node.fake("enroot-aufs2ovlfs", "exit 0")
    node.fake("getcap", "exit 0")
    output = pyxis.boot(node)
    assert "the kernel has no overlay file system" in output
    assert "Install enroot+caps" in output
    node.fake("modprobe", "exit 0")
    node.fake("getcap", 'echo "$1 cap_sys_admin,cap_mknod=ep"')
    assert verdict(pyxis.boot(node)).endswith("0 problems")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HANGS, "'srun --help' did not end within 20 s: whether Slurm loads pyxis is not known"),
        ("echo 'srun: fatal: Could not establish a configuration source' >&2; exit 1",
         "'srun --help' failed: srun: fatal: Could not establish a configuration source"),
        ("exit 0", "although a line names /opt/pyxis/spank_pyxis.so: Slurm gives no reason"),
    ],
)  # fmt: skip
def test_an_srun_without_the_option(node: Node, answer: str, words: str) -> None:
    node.fake("srun", answer)
    assert words in pyxis.boot(node)


def test_no_srun(node: Node) -> None:
    node.remove("srun")
    assert "srun is not installed: whether Slurm loads pyxis is not known" in pyxis.boot(node)


def test_the_scheduler_is_asked_for_the_plugin_only(node: Node) -> None:
    node.remove("enroot")
    assert verdict(pyxis.boot(node, role="scheduler")) == "srun has --container-image, 0 problems"
