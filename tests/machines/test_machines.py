"""The disposable machines themselves: isolation, changes, layers, boot, and that nothing of them stays."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.bed.machines import roots
from tests.bed.machines.booted import booted_machine
from tests.bed.machines.overlay import Bind, Machine, MachineError, differences, overlay_machine, saved
from tests.bed.machines.roots import node_root

SHELLCHECK = Path(sys.executable).parent / "shellcheck"


def leftovers(folder: str) -> list[str]:
    """What the host still has of a machine: its folder, mounts and control groups."""
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if folder in line]
    top = Path("/sys/fs/cgroup")
    groups = [str(path) for path in (top, *top.iterdir()) if (path / Path(folder).name).exists()]
    return mounts + groups + ([folder] if Path(folder).exists() else [])


def folder_of(machine: Machine) -> str:
    return f"/tmp/{machine.upper.parent.name}"


def test_shellcheck_accepts_the_scripts_of_the_machines() -> None:
    folder = Path(__file__).parents[1] / "bed" / "machines"
    scripts = [*folder.glob("*.sh"), *(folder / "fakes").iterdir()]
    assert len(scripts) > 5
    result = subprocess.run([SHELLCHECK, *scripts], capture_output=True, text=True, check=False)
    assert result.stdout == ""


def test_a_machine_tells_code_output_and_exactly_what_changed() -> None:
    with overlay_machine(node_root(), name="gpu-7") as machine:
        result = machine.run('hostname; echo "$1" >/etc/motd; rm /etc/issue; touch /etc/passwd; exit 3', "hello")
        assert (result.code, result.output) == (3, "gpu-7\n")
        changes = machine.changes()
        assert sorted(changes) == ["etc/issue", "etc/motd"]
        assert (changes["etc/issue"].kind, changes["etc/motd"].content) == ("gone", b"hello\n")
        machine.ok("chmod 600 /etc/motd; mkdir /etc/new; ln -s /etc/motd /etc/new/link")
        assert differences(changes, machine.changes()) == [
            "etc/motd: Entry(kind='file', mode=420, owner=(0, 0)) b'hello\\n' / "
            "Entry(kind='file', mode=384, owner=(0, 0)) b'hello\\n'",
            "etc/new: absent / Entry(kind='folder', mode=493, owner=(0, 0)) b''",
            "etc/new/link: absent / Entry(kind='link', mode=0, owner=(0, 0)) b'/etc/motd'",
        ]
        assert machine.read("/etc/new/link") == "hello\n"


def test_a_machine_cannot_reach_the_host(tmp_path: Path) -> None:
    """Kernel settings, processes, network and files; and it does not see the caller's environment."""
    (tmp_path / "secret").write_text("x")
    pattern = Path("/proc/sys/kernel/core_pattern").read_text()
    with overlay_machine(node_root(), binds=[Bind(tmp_path, "/mnt/bound")]) as machine:
        assert machine.run("echo broken >/proc/sys/kernel/core_pattern").code != 0
        assert machine.run("echo x >/mnt/bound/secret").code != 0
        assert machine.ok("cat /mnt/bound/secret") == "x"
        assert machine.ok("ip -brief link | wc -l").strip() == "1"
        assert machine.ok("env | cut -d = -f 1 | sort | xargs") == "HOME PATH PWD SHLVL TERM _\n"
        assert int(machine.ok("ls -d /proc/[0-9]* | wc -l")) < 10
        machine.ok("hostname changed; mount -t tmpfs tmpfs /mnt; echo x >/mnt/x")
    assert Path("/proc/sys/kernel/core_pattern").read_text() == pattern
    assert leftovers(folder_of(machine)) == []


def test_a_layer_lies_between_the_root_and_the_next_machine() -> None:
    with overlay_machine(node_root()) as first:
        first.ok("echo one >/etc/motd; rm /etc/issue; rm -r /etc/needrestart; mkdir /etc/needrestart")
        with saved(first) as layer, overlay_machine(node_root(), layer) as second:
            assert second.ok("cat /etc/motd; ls /etc/needrestart; test ! -e /etc/issue") == "one\n"
            assert second.changes() == {}
            second.ok("echo two >/etc/motd")
            assert sorted(second.changes()) == ["etc/motd"]
        assert first.read("/etc/motd") == "one\n"


def test_a_script_that_takes_too_long_is_ended_with_its_children() -> None:
    with overlay_machine(node_root()) as machine:
        with pytest.raises(subprocess.TimeoutExpired):
            machine.run("sleep 777 & sleep 777", timeout_s=0.3)
        # On a busy machine what was killed is not gone at once.
        while machine.run("pgrep -x sleep").code == 0:
            time.sleep(0.05)
        assert machine.run("pgrep -x sleep").code == 1


def test_a_machine_that_cannot_start_says_why() -> None:
    with (
        pytest.raises(MachineError, match=r"node-1 did not start:\nmount: .*overlay does not exist"),
        overlay_machine(Path("/no-such-folder")),
    ):
        pass


def test_two_booted_machines_have_their_own_systemd() -> None:
    root = node_root()
    with booted_machine(root, name="twin") as one, booted_machine(root, name="twin") as other:
        assert one.ok("hostname; cat /proc/1/comm") == "twin\nsystemd\n"
        for machine in (one, other):
            machine.ok("systemd-run --quiet --unit=same sleep 600")
        one.ok("systemctl stop same.service")
        assert one.run("systemctl is-active same.service").output == "inactive\n"
        assert other.ok("systemctl is-active same.service") == "active\n"
        assert one.run("systemctl is-enabled slurmd slurmctld munge").output == "disabled\n" * 3
        assert "etc/hostname" in one.changes()
    assert leftovers(folder_of(one)) + leftovers(folder_of(other)) == []


KILLED = """
import sys, time
from tests.bed.machines.booted import booted_machine
from tests.bed.machines.roots import node_root
with booted_machine(node_root()) as machine:
    print(machine.pid, machine.upper.parent.name, flush=True)
    time.sleep(600)
"""


def test_a_killed_test_leaves_no_machine_behind() -> None:
    node_root()
    with subprocess.Popen(
        [sys.executable, "-c", KILLED], cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True
    ) as test:
        assert test.stdout is not None
        leader, name = test.stdout.readline().split()
        assert Path(f"/proc/{leader}").exists()
        test.kill()
    while leftovers(f"/tmp/{name}"):
        time.sleep(0.05)
    assert not Path(f"/proc/{leader}/exe").exists()


@pytest.fixture
def other_root(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A cache and a recipe of our own: it says that it was called, takes a while, and fails where a file says so."""
    script = tmp_path / "recipe.sh"
    script.write_text(
        f'echo called >>{tmp_path}/calls; mkdir "$1" "$2"; touch "$1/first"; sleep 0.3; touch "$1/last"\n'
        f"if [[ -e {tmp_path}/broken ]]; then echo no route to host >&2; exit 1; fi\n"
    )
    monkeypatch.setattr(roots, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(roots, "BUILD", script)
    monkeypatch.setattr(roots, "_problem", None)
    return tmp_path


def test_two_workers_build_one_root(other_root: Path) -> None:
    found: list[Path] = []
    workers = [threading.Thread(target=lambda: found.append(node_root())) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found[0] == found[1]
    assert sorted(path.name for path in found[0].iterdir()) == ["first", "last"]
    assert (other_root / "calls").read_text() == "called\n"


def test_half_a_root_of_a_killed_build_is_never_used(other_root: Path) -> None:
    (other_root / "cache" / "0123.building" / "first").mkdir(parents=True)
    (other_root / "cache" / "9876").mkdir()
    root = node_root()
    assert (root / "last").exists()
    names = {path.name for path in (other_root / "cache").iterdir()}
    assert names == {"9876", root.name, f"{root.name}.lists", f"{root.name}.log", "lock"}


def test_a_root_that_cannot_be_built_fails_with_the_reason_and_leaves_nothing(other_root: Path) -> None:
    (other_root / "broken").touch()
    for _ in range(2):
        with pytest.raises(pytest.fail.Exception, match=r"was not built \(.*mirror(.|\n)*no route"):
            node_root()
    assert (other_root / "calls").read_text() == "called\n"
    assert not [path for path in (other_root / "cache").iterdir() if path.is_dir()]


def test_what_is_missing_fails_where_apt_is_and_is_skipped_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    there = {"apt-get": "/usr/bin/apt-get"}
    monkeypatch.setattr(shutil, "which", there.get)
    with pytest.raises(pytest.fail.Exception, match=r"systemd-nspawn not found: .* install systemd-container"):
        roots.needs("systemd-nspawn")
    there.clear()
    with pytest.raises(pytest.skip.Exception, match="no apt to install systemd-container"):
        roots.needs("systemd-nspawn")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(pytest.skip.Exception, match="need root"):
        roots.needs("bash")
