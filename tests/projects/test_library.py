"""The shared library: numbers, attributes, whole-file writes, stamps, waits."""

from __future__ import annotations

import os
import shutil

import pytest

from tests.bed.scripts.node import Node
from tests.projects.conftest import MakeNode


@pytest.fixture
def node(make_node: MakeNode) -> Node:
    return make_node("misc_ubuntu")


def lib(node: Node, text: str, **extra: str) -> tuple[int, str]:
    """Run a few lines after sourcing the library; exit code and output."""
    result = node.command("-c", f'set -euo pipefail\n. "$CYCLECLOUD_SPEC_PATH/files/cycleforge.sh"\n{text}', **extra)
    return result.returncode, result.stdout + result.stderr


@pytest.mark.parametrize(
    ("left", "relation", "right", "code"),
    [
        # Pairs that text comparison decides wrongly.
        ("9.5", "ge", "23.0", 1), ("97.5", "ge", "185.0", 1), ("99.0", "ge", "228.0", 1), ("6.0", "ge", "52", 1),
        ("100.2", "ge", "24", 0), ("9", "lt", "10", 0), ("10", "lt", "9", 1),
        # The limit itself, on both sides.
        ("228", "ge", "228", 0), ("227.999", "ge", "228", 1), ("512", "le", "512", 0), ("513", "le", "512", 1),
        ("8", "eq", "8.0", 0), ("08", "eq", "8", 0), ("1857830712", "ge", "1803719137", 0), ("0", "le", "0", 0),
        ("7", "ne", "8", 0), ("3.25", "gt", "3.2", 0),
        # No number is neither above nor below.
        ("", "ge", "1", 2), ("[N/A]", "le", "0", 2), ("1e3", "ge", "1", 2), ("-1", "le", "0", 2),
        ("5 GB", "ge", "1", 2), ("nan", "ge", "1", 2), ("1", "ge", "", 2), ("1", "above", "2", 2),
        ("9" * 30, "ge", "1", 2),
    ],
)  # fmt: skip
def test_numbers_are_compared_as_numbers(node: Node, left: str, relation: str, right: str, code: int) -> None:
    assert lib(node, f"code=0; cf_compare '{left}' {relation} '{right}' || code=$?; exit $code")[0] == code


def test_attribute_takes_the_node_value_then_the_default(node: Node) -> None:
    node.attribute("cycleforge.a.b", "wanted")
    node.attribute("cycleforge.none", "None")
    code, output = lib(node, 'cf_attribute cycleforge.a.b x; echo "$REPLY"; cf_attribute cycleforge.c y; echo "$REPLY"'
                             '\ncf_attribute cycleforge.none z; echo "$REPLY"')  # fmt: skip
    assert (code, output.split()) == (0, ["wanted", "y", "z"])


def test_attribute_without_the_node_agent_is_the_default(node: Node) -> None:
    node.remove("jetpack")
    assert lib(node, 'cf_attribute cycleforge.a.b x; echo "$REPLY"') == (0, "x\n")


def test_a_failing_node_agent_stops_the_script(node: Node) -> None:
    node.fake("jetpack", "exit 1")
    code, output = lib(node, "cf_attribute cycleforge.a x; echo not reached")
    assert code == 1
    assert "jetpack config cycleforge.a failed" in output
    assert "not reached" not in output


@pytest.mark.parametrize(("text", "value"), [("True", "true"), ("False", "false"), ("yes", "true"), ("0", "false")])
def test_booleans_of_the_node_agent(node: Node, text: str, value: str) -> None:
    node.attribute("k", text)
    assert lib(node, 'cf_attribute_bool k false; echo "$REPLY"') == (0, f"{value}\n")


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("cf_attribute_bool k true", "maybe"), ("cf_attribute_int k 5 1 10", "11"), ("cf_attribute_int k 5 1 10", "0"),
        ("cf_attribute_int k 5 1 10", "5.5"), ("cf_attribute_int k 5 1 10", "$(id)"),
        ("cf_attribute_path k /a", "relative"), ("cf_attribute_path k /a", "/a/../etc"),
        ("cf_attribute_path k /a", "/a b"), ("cf_attribute_path k /a", "/a;reboot"),
    ],
)  # fmt: skip
def test_bad_attributes_are_named_with_their_value(node: Node, call: str, value: str) -> None:
    node.attribute("k", value)
    code, output = lib(node, call)
    assert code == 1
    assert f"attribute k is '{value}'" in output
    assert "expected" in output


def test_integers_are_decimal(node: Node) -> None:
    node.attribute("k", "010")
    assert lib(node, 'cf_attribute_int k 5 1 10; echo "$REPLY"') == (0, "10\n")


@pytest.mark.parametrize(
    ("name", "version", "like", "wanted"),
    [
        ("ubuntu", "24.04", "debian", "ubuntu 24.04"), ("almalinux", "8.10", "rhel centos fedora", "el 8"),
        ("rhel", "9.4", "fedora", "el 9"), ("rocky", "9.3", "rhel centos fedora", "el 9"),
        ("alpine", "3.20", "", "unknown alpine-3.20"),
    ],
)  # fmt: skip
def test_operating_systems(node: Node, name: str, version: str, like: str, wanted: str) -> None:
    node.os(name, version, like)
    assert lib(node, 'cf_os; echo "$REPLY"') == (0, wanted + "\n")


def test_a_file_is_written_once_and_whole(node: Node) -> None:
    text = 'cf_write "$CYCLEFORGE_ROOT/etc/a/b.conf" 0640 <<<"one"; echo $CF_CHANGED'
    assert lib(node, text) == (0, "1\n")
    before = node.files()
    assert before["etc/a/b.conf"][0] == 0o640
    assert lib(node, text) == (0, "0\n")
    assert node.files() == before
    assert lib(node, text.replace("0640", "0600")) == (0, "1\n")
    assert node.files()["etc/a/b.conf"][0] == 0o600


def test_a_file_that_holds_the_text_is_not_touched_and_costs_one_program(node: Node) -> None:
    node.write("etc/b.conf", "same\n\ntext")
    for tool in ("cat", "chmod", "cmp", "mkdir", "mktemp", "mv", "rm"):
        node.fake(tool, "exit 1")
    (node.root / "new").write_text("same\n\ntext")
    text = 'cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0644 <"$CYCLEFORGE_ROOT/new"'
    assert lib(node, text) == (0, "")
    assert node.calls() == []


@pytest.mark.parametrize("mode", ["0644", "0600"])
def test_a_new_file_costs_one_program_and_has_its_mode_whatever_the_umask(node: Node, mode: str) -> None:
    for tool in ("cat", "chmod", "cmp", "mkdir", "mktemp", "rm", "stat"):
        node.fake(tool, "exit 1")
    for umask in ("000", "027", "777"):
        text = f'umask {umask}; cf_write "$CYCLEFORGE_ROOT/etc/{umask}" {mode} <<<"one"; echo $CF_CHANGED; umask'
        assert lib(node, text) == (0, f"1\n0{umask}\n")
        assert node.files()[f"etc/{umask}"][0] == int(mode, 8)
    assert node.calls() == []


def test_a_mode_that_a_folder_has_given_is_set_by_the_next_run(node: Node) -> None:
    """A default ACL counts more than a umask."""
    node.write("etc/b.conf", "one\n", 0o664)
    node.fake("chmod", f'exec {shutil.which("chmod")} "$@"')
    assert lib(node, 'cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0644 <<<"one"; echo $CF_CHANGED') == (0, "1\n")
    assert node.files()["etc/b.conf"][0] == 0o644
    assert len(node.calls("chmod 0644 ")) == 1


def test_files_that_are_installed_already_cost_one_program_and_a_wrong_mode_is_seen(node: Node) -> None:
    for name in ("a.sh", "b.tsv", "c.sh", "new"):
        node.write(f"source/{name}", f"{name}\n")
    install = 'cf_install_files "$CYCLEFORGE_ROOT/source" "$CYCLEFORGE_ROOT/opt" {}; echo $CF_CHANGED ${{#CF_MODES[@]}}'
    three = install.format("a.sh b.tsv c.sh")
    assert lib(node, three) == (0, "3 0\n")
    node.fake("stat", f'exec {shutil.which("stat")} "$@"')
    before = node.files()
    assert lib(node, three) == (0, "0 0\n")
    assert len(node.calls("stat ")) == 1
    assert node.files() == before
    (node.root / "opt/c.sh").chmod(0o644)
    assert lib(node, install.format("a.sh new b.tsv c.sh")) == (0, "2 0\n")
    assert {path: mode for path, (mode, _, _) in node.files().items() if path.startswith("opt/")} == {
        "opt/a.sh": 0o755, "opt/b.tsv": 0o644, "opt/c.sh": 0o755, "opt/new": 0o644,
    }  # fmt: skip


@pytest.mark.parametrize("held", ["one\n\0", "\0\0\0\0", "one", "one\n\n", "", "One\n"])
def test_a_file_that_holds_anything_else_is_replaced(node: Node, held: str) -> None:
    """A power cut may leave NUL bytes, which Bash does not read."""
    node.write("etc/b.conf", held)
    assert lib(node, 'cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0644 <<<"one"; echo $CF_CHANGED') == (0, "1\n")
    assert node.read("etc/b.conf") == "one\n"


@pytest.mark.parametrize("source", ["etc", "etc/binary"])
def test_what_is_no_text_or_cannot_be_read_leaves_the_file(node: Node, source: str) -> None:
    node.write("etc/b.conf", "old\n")
    node.write("etc/binary", "a\0b")
    before = node.files()
    code, output = lib(node, f'cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0644 <"$CYCLEFORGE_ROOT/{source}"; echo no stop')
    assert code == 1
    assert "is not text or cannot be read" in output
    assert "no stop" not in output
    assert node.files() == before


def test_a_link_is_replaced_and_never_followed(node: Node) -> None:
    node.write("etc/other", "of someone else\n")
    for name in ("b.conf", ".b.conf.cycleforge.1"):
        (node.root / "etc" / name).symlink_to("other")
    (node.root / "etc/.b.conf.cycleforge.2").symlink_to("missing")
    assert lib(node, 'cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0644 <<<"new"')[0] == 0
    assert {path: text for path, (_, _, text) in node.files().items() if path != "etc/os-release"} == {
        "etc/other": "of someone else\n",
        "etc/b.conf": "new\n",
    }


WRITES = (
    'cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0755 "$(id -u):12345" <<<"new"',
    'cf_copy "$CYCLEFORGE_ROOT/etc/new" "$CYCLEFORGE_ROOT/etc/b.conf" 0755',
)


@pytest.mark.parametrize("write", WRITES)
def test_a_link_that_takes_the_place_of_the_new_file_keeps_mode_and_owner(node: Node, write: str) -> None:
    """In a folder that others can write, a name may be another file's at any moment."""
    victim = node.write("victim", "of someone else\n", 0o600)
    node.write("etc/new", "new\n")
    before = victim.stat()
    node.link("id")
    for tool in ("chmod", "chown"):
        swap = f'for name in "$CYCLEFORGE_ROOT"/etc/.b.conf.cycleforge.*; do ln -sfn "{victim}" "$name"; done'
        node.fake(tool, f'{swap}\nexec {shutil.which(tool)} "$@"')
    lib(node, write)
    after = victim.stat()
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)
    assert victim.read_text() == "of someone else\n"


@pytest.mark.parametrize("write", WRITES)
def test_a_device_in_the_place_of_the_new_file_is_not_written(node: Node, write: str) -> None:
    """noclobber refuses a plain file and opens a device."""
    node.write("etc/b.conf", "old\n")
    node.write("etc/new", "new\n")
    for tool in ("id", "chown"):
        node.link(tool)
    # A terminal of this test's own: a write that gives its file a mode must not do that to a device of the machine.
    ends = os.openpty()
    (node.root / "etc/planted").symlink_to(os.ttyname(ends[1]))
    code, _ = lib(node, f'cf_temporary() {{ CF_TEMPORARY="$CYCLEFORGE_ROOT/etc/planted"; }}\n{write}')
    for end in ends:
        os.close(end)
    assert code != 0
    assert node.read("etc/b.conf") == "old\n"


def test_of_a_large_file_in_its_place_no_more_is_read_than_the_text_is_long(node: Node) -> None:
    (node.root / "etc/b.conf").write_bytes(b"x" * 100_000_000)
    code, output = lib(node, 'ulimit -v 65536; cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0644 <<<"one"')
    assert (code, output) == (0, "")
    assert node.read("etc/b.conf") == "one\n"


@pytest.mark.parametrize("text", ["\u00fc\u20ac", "\u00fc" * 3000, "a\udcffb"])
def test_a_text_in_any_language_is_compared_whole(node: Node, text: str) -> None:
    (node.root / "new").write_bytes(f"{text}\n".encode(errors="surrogateescape"))
    write = 'cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0644 <"$CYCLEFORGE_ROOT/new"; echo $CF_CHANGED'
    assert [lib(node, write, LC_ALL="C.UTF-8") for _ in range(2)] == [(0, "1\n"), (0, "0\n")]
    assert (node.root / "etc/b.conf").read_bytes() == (node.root / "new").read_bytes()
    (node.root / "etc/b.conf").write_bytes((node.root / "new").read_bytes() + b"\n")
    assert lib(node, write, LC_ALL="C.UTF-8") == (0, "1\n")


def test_a_secret_is_nobody_elses_from_the_start(node: Node) -> None:
    # The open file that it is given is also its own standard output.
    node.fake("chmod", 'stat -L -c %a "/proc/$$/fd/1" >>"$FAKE_STATE/modes"; exec /bin/chmod "$@"')
    assert lib(node, 'umask 022\ncf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0640 <<<"key"; umask') == (0, "0022\n")
    assert (node.state / "modes").read_text() == "600\n"


def test_a_disk_that_is_full_leaves_the_file_also_where_a_caller_asks_for_the_outcome(node: Node) -> None:
    node.write("etc/b.conf", "old\n")
    text = 'mkdir "$CYCLEFORGE_ROOT/a"; printf %2000000s x >"$CYCLEFORGE_ROOT/a/big"; ulimit -f 1; trap "" XFSZ\n'
    for write in (
        'cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0644 <"$CYCLEFORGE_ROOT/a/big"',
        'cf_copy "$CYCLEFORGE_ROOT/a/big" "$CYCLEFORGE_ROOT/etc/b.conf" 0644',
    ):
        code, output = lib(node, f"{text}if {write}; then echo written; fi")
        assert (code, "written" in output, "File too large" in output) == (0, False, True)
        assert node.read("etc/b.conf") == "old\n"
        text = "ulimit -f 1; trap '' XFSZ\n"


def test_a_copy_need_not_be_text(node: Node) -> None:
    (node.root / "lib").write_bytes(b"\x7fELF\0\xff")
    text = 'cf_copy "$CYCLEFORGE_ROOT/lib" "$CYCLEFORGE_ROOT/a/b.so" 0755; echo $CF_CHANGED'
    assert lib(node, text) == (0, "1\n")
    assert (node.root / "a/b.so").read_bytes() == b"\x7fELF\0\xff"
    inode = (node.root / "a/b.so").stat()
    assert lib(node, text) == (0, "0\n")
    assert (node.root / "a/b.so").stat() == inode
    assert inode.st_mode & 0o7777 == 0o755


def test_a_kill_before_the_rename_leaves_the_old_file_and_the_next_run_cleans_up(node: Node) -> None:
    node.write("etc/b.conf", "old\n")
    node.fake("mv", "kill -KILL $PPID; exit 1")
    code, _ = lib(node, 'cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0644 <<<"new"')
    assert code == -9
    assert node.read("etc/b.conf") == "old\n"
    node.remove("mv")
    node.link("mv")
    assert lib(node, 'cf_write "$CYCLEFORGE_ROOT/etc/b.conf" 0644 <<<"new"')[0] == 0
    assert [path for path in node.files() if path != "etc/os-release"] == ["etc/b.conf"]
    assert node.read("etc/b.conf") == "new\n"


def test_an_action_follows_a_change_exactly_once(node: Node) -> None:
    node.write("etc/x", "1")
    text = 'cf_apply thing "$CYCLEFORGE_ROOT/etc/x" sysctl apply; echo $CF_CHANGED'
    assert [lib(node, text)[1] for _ in range(2)] == ["1\n", "0\n"]
    assert node.calls("sysctl") == ["sysctl apply"]
    node.write("etc/x", "2")
    assert lib(node, text) == (0, "1\n")


@pytest.mark.parametrize(
    "inside", ["cf_apply t $CYCLEFORGE_ROOT/etc/x false", "if ! cf_apply t $CYCLEFORGE_ROOT/etc/x false; then :; fi"]
)
def test_a_failed_action_is_not_stamped(node: Node, inside: str) -> None:
    node.write("etc/x", "1")
    lib(node, inside)
    assert not (node.root / "var/lib/cycleforge/applied/t").exists()


def test_waits_end(node: Node) -> None:
    """A second passes with each look: the one at the limit is the last."""
    text = (
        "look() { SECONDS=$((SECONDS + 1)); echo look; false; }; if cf_wait_for 3 look; then echo yes; else echo no; fi"
    )
    code, said = lib(node, text, CYCLEFORGE_POLL_S="0")
    assert (code, said.split()[-1]) == (0, "no")
    assert 1 <= said.count("look") <= 3


def test_a_failing_step_is_named_and_ends_the_script(node: Node) -> None:
    code, output = lib(
        node, "broken() { false; echo not reached; }\nmain() { cf_step 'the step' broken; }\ncf_main main"
    )
    assert code == 1
    assert "step 'the step' ended with exit code 1" in output
    assert "not reached" not in output


def test_each_step_is_one_line_with_its_duration(node: Node) -> None:
    code, output = lib(node, "f() { cf_outcome 'did 3 things'; }\nmain() { cf_step 'the step' f; }\ncf_main main")
    assert code == 0
    (line,) = output.splitlines()
    assert "misc_ubuntu: the step: did 3 things (" in line
    assert line.endswith(" ms)")


def test_steps_are_timed_by_bash_4_4_too(node: Node) -> None:
    """EL 8 has Bash 4.4, where EPOCHREALTIME does not exist; every script would end at its first step."""
    code, output = lib(node, "unset EPOCHREALTIME; cf_step nap sleep 0.3")
    assert code == 0, output
    duration = int(output.rsplit("(", 1)[1].removesuffix(" ms)\n"))
    assert 250 < duration < 30_000


def test_only_own_units_are_restarted(node: Node) -> None:
    code, output = lib(node, "cf_own_unit slurmd.service /dev/null")
    assert code == 1
    assert "not for slurmd.service" in output
    assert node.calls("systemctl") == []


@pytest.mark.parametrize(
    ("environment", "file", "wanted"),
    [({"SLURMD_NODENAME": "hpc-1"}, "", "hpc-1"), ({}, 'SLURMD_OPTIONS="-b -N hpc-7"\n', "hpc-7"), ({}, "", "node-1")],
)
def test_node_name(node: Node, environment: dict[str, str], file: str, wanted: str) -> None:
    node.write("etc/default/slurmd", file)
    assert lib(node, 'cf_node_name; echo "$REPLY"', **environment) == (0, wanted + "\n")
