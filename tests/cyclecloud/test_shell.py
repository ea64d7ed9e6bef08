"""`Shell` through a real ssh to a real sshd: how commands end, connections that are lost, copies that are whole."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from generator.cyclecloud import shell
from generator.cyclecloud.shell import Shell, Unreachable
from generator.errors import CannotRead
from tests.bed.ssh.host import Host, new_key
from tests.bed.ssh.hosts import Hosts, hosts
from tests.bed.ssh.relay import Relay
from tests.cyclecloud.hostile_tars import TOP, member

LIMIT_S = 120.0
BLANK = "a folder's $name\nin two lines"


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosts]:
    with hosts(tmp_path_factory.mktemp("ssh"), "server", "scheduler") as made:
        yield made


@pytest.fixture
def server(bed: Hosts) -> Iterator[Shell]:
    yield Shell(bed.config, "server")
    bed["server"].mode = "answers"


@contextmanager
def through(bed: Hosts, limit: int) -> Iterator[Shell]:
    """The server, on a line that is lost after so many bytes."""
    host = bed["server"]
    with Relay(host.address, host.port, limit) as relay:
        config = bed.folder / f"config-{limit}"
        config.write_text(bed.config.read_text().replace(f"Port {host.port}\n", f"Port {relay.port}\n"))
        yield Shell(config, "server")


def filled(folder: Path) -> Path:
    """Names with blanks, bytes of all values, an empty folder, a link, a program, a long name."""
    (folder / "in it" / "empty").mkdir(parents=True)
    (folder / "bytes").write_bytes(bytes(range(256)) * 1000)
    (folder / "in it" / "-a 'name'").write_text("x")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "link").symlink_to("bytes")
    (folder / f"{'é' * 60}-long").write_text("its name has more than 100 bytes")
    return folder


def listing(folder: Path) -> dict[str, object]:
    """What is there."""
    return {
        str(path.relative_to(folder)): path.readlink()
        if path.is_symlink()
        else (path.read_bytes(), path.stat().st_mode & 0o700)
        if path.is_file()
        else None
        for path in sorted(folder.rglob("*"))
    }


# ------------------------------------------------------------ commands


def test_a_command_is_for_a_posix_shell(server: Shell) -> None:
    ran = server.run("printf '%s' 'a  b'; cat; echo no >&2; (exit 7)", input=b"\xc3\xa9\n", limit_s=LIMIT_S)
    assert (ran.status, ran.out, ran.err) == (7, "a  bé\n", "no\n")


@pytest.mark.parametrize("command", ["exit 255", "echo words >&2; exit 255", "sh -c 'exit 255' # comment"])
def test_the_255_of_a_command_is_not_that_of_ssh(server: Shell, command: str) -> None:
    ran = server.run(command, limit_s=LIMIT_S)
    assert ran.status == 255
    assert ran.err == ("words\n" if "words" in command else "")


def test_bytes_that_are_no_text_do_not_matter(server: Shell) -> None:
    assert server.run(r"printf '\377ok'", limit_s=LIMIT_S).out == "\ufffdok"


def test_a_command_that_is_killed_has_a_status(server: Shell) -> None:
    assert server.run("kill -9 $$", limit_s=LIMIT_S).status == 137


def test_a_syntax_error_is_the_commands_own(server: Shell) -> None:
    assert server.run("if", limit_s=LIMIT_S).status == 2


def test_a_host_behind_another_one(bed: Hosts) -> None:
    assert Shell(bed.config, "scheduler").run("echo $HOSTNAME", limit_s=LIMIT_S).out == "scheduler\n"


def test_the_line_is_what_a_person_types(bed: Hosts) -> None:
    shell = Shell(Path("out/a b/ssh_config"), "server")
    assert shlex.join(shell.line("echo 1", tty=True)) == "ssh -F 'out/a b/ssh_config' -t server 'echo 1'"
    assert shell.line() == ["ssh", "-F", "out/a b/ssh_config", "server"]


@pytest.mark.parametrize("name", ["-oProxyCommand=x", "", "a b", "user@host", "a/b"])
def test_a_name_that_ssh_would_read_as_something_else(bed: Hosts, name: str) -> None:
    with pytest.raises(CannotRead, match="not the name of a host"):
        Shell(bed.config, name)


def test_lines_come_while_the_command_runs(bed: Hosts, server: Shell) -> None:
    fifo = bed["server"].home / "go"
    os.mkfifo(fifo)
    lines = server.follow("echo one; echo err >&2; cat go; printf last")
    assert [next(lines), next(lines)] == ["one", "err"]
    fifo.write_text("two\n")
    assert list(lines) == ["two", "last"]


def test_whoever_stops_listening_ends_ssh(server: Shell) -> None:
    lines = server.follow("while echo x; do sleep 0.1; done")
    assert next(lines) == "x"
    lines.close()  # type: ignore[attr-defined]


# ------------------------------------------------------------ connections that fail


def test_a_connection_that_is_lost_in_the_middle(bed: Hosts, server: Shell) -> None:
    lines = server.follow("echo begun; sleep 600")
    assert next(lines) == "begun"
    bed["server"].cut()
    with pytest.raises(Unreachable, match=r"server: .*(lost|closed)") as lost:
        list(lines)
    assert "may still be running" in str(lost.value.hint)


@pytest.mark.parametrize("mode", ["refuses", "hangs"])
def test_a_host_that_does_not_answer(bed: Hosts, mode: str) -> None:
    config = bed.folder / f"quick-{mode}"
    config.write_text(bed.config.read_text().replace("ConnectTimeout 30", "ConnectTimeout 1"))
    bed["server"].mode = mode
    try:
        with pytest.raises(Unreachable, match=r"server: it (closes|does not answer)"):
            Shell(config, "server").run("true", limit_s=LIMIT_S)
    finally:
        bed["server"].mode = "answers"


def test_nobody_listens(bed: Hosts, tmp_path: Path) -> None:
    with Host("gone", tmp_path / "gone", bed.key) as gone:
        port = gone.port
    config = tmp_path / "config"
    config.write_text(bed.config.read_text().replace(f"Port {bed['server'].port}\n", f"Port {port}\n"))
    with pytest.raises(Unreachable, match="nothing listens"):
        Shell(config, "server").run("true", limit_s=LIMIT_S)


def test_another_host_key_is_never_taken(bed: Hosts, tmp_path: Path) -> None:
    other = new_key(tmp_path / "other").with_suffix(".pub").read_text()
    known, config = tmp_path / "known", tmp_path / "config"
    config.write_text(bed.config.read_text().replace(str(bed.known), str(known)))
    known.write_text(f"server {other}")
    with pytest.raises(Unreachable, match="not the one that was known") as changed:
        Shell(config, "server").run("touch came", limit_s=LIMIT_S)
    assert "replaced" in str(changed.value.hint)
    known.write_text("")
    with pytest.raises(Unreachable, match="host key is not known"):
        Shell(config, "server").run("touch came", limit_s=LIMIT_S)
    assert not (bed["server"].home / "came").exists()


def test_another_key_of_the_user(bed: Hosts, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(bed.config.read_text().replace(str(bed.key), str(new_key(tmp_path / "mine"))))
    with pytest.raises(Unreachable, match="refuses your key"):
        Shell(config, "server").run("true", limit_s=LIMIT_S)


def test_a_command_that_does_not_end(server: Shell) -> None:
    with pytest.raises(Unreachable, match=r"did not end `sleep 600` within 0\.5 s") as late:
        server.run("sleep 600", limit_s=0.5)
    assert "check before" in str(late.value.hint)


def test_what_ssh_says_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in shell.explained("server", "bad \x1b[2J banner\n").reason


# ------------------------------------------------------------ copies


def test_a_folder_there_and_back(bed: Hosts, server: Shell, tmp_path: Path) -> None:
    sent = filled(tmp_path / "sent")
    server.send(sent, f"jobs/{BLANK}")
    there = bed["server"].home / "jobs" / BLANK
    assert listing(there) == listing(sent)
    left = server.fetch(f"jobs/{BLANK}", tmp_path / "new" / "back")
    assert left == ["left behind (a link): link"]
    (sent / "link").unlink()
    assert listing(tmp_path / "new" / "back") == listing(sent)
    assert [path.name for path in there.parent.iterdir()] == [BLANK]
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["back"]


def test_a_file_there_and_back(bed: Hosts, server: Shell, tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(bytes(range(256)))
    server.send(tmp_path / "one", "-one")
    server.send(tmp_path / "one", "-one")
    server.fetch(str(bed["server"].home / "-one"), tmp_path / "two")
    assert (tmp_path / "two").read_bytes() == bytes(range(256))


def test_what_else_is_in_a_folder_stays(bed: Hosts, server: Shell, tmp_path: Path) -> None:
    sent = filled(tmp_path / "again")
    there = bed["server"].home / "again"
    server.send(sent, "again")
    (there / "results").write_text("of an earlier run")
    (sent / "bytes").write_text("new")
    with (there / "bytes").open("rb") as open_already:
        server.send(sent, "again")
        assert open_already.read(3) == bytes(range(3))
    assert (there / "bytes").read_text() == "new"
    assert (there / "results").read_text() == "of an earlier run"
    (tmp_path / "back" / "mine").mkdir(parents=True)
    server.fetch("again", tmp_path / "back")
    (there / "link").unlink()
    assert listing(tmp_path / "back") == listing(there) | {"mine": None}


@pytest.mark.parametrize("limit", [500, 60_000, 250_000])
def test_a_half_copied_folder_is_never_left(bed: Hosts, tmp_path: Path, limit: int) -> None:
    sent = filled(tmp_path / "sent")
    (sent / "noise").write_bytes(os.urandom(300_000))
    name = f"cut-{limit}"
    with through(bed, limit) as shell, pytest.raises(Unreachable):
        shell.send(sent, f"{name}/folder")
    cleaned = f'until [ -z "$(ls -A {name} 2>/dev/null)" ]; do sleep 0.05; done'
    assert Shell(bed.config, "server").run(cleaned, limit_s=LIMIT_S).status == 0


def test_a_half_fetched_folder_is_never_left(bed: Hosts, server: Shell, tmp_path: Path) -> None:
    home = bed["server"].home
    bed["server"].program("tar", '#!/bin/sh\n/usr/bin/tar "$@" | head -c 5000\nkill -9 $PPID\n')
    (home / "results").mkdir()
    (home / "results" / "noise").write_bytes(os.urandom(20_000))
    try:
        with pytest.raises(Unreachable):
            server.fetch("results", tmp_path / "results")
    finally:
        (bed["server"].programs / "tar").unlink()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_is_full_there(bed: Hosts, server: Shell, tmp_path: Path) -> None:
    bed["server"].program("tar", "#!/bin/sh\necho 'tar: No space left on device' >&2\nexit 2\n")
    try:
        with pytest.raises(Unreachable, match=r"could not copy .* to server:full: tar: No space left on device"):
            server.send(filled(tmp_path / "sent"), "full")
    finally:
        (bed["server"].programs / "tar").unlink()
    assert not [path for path in bed["server"].home.iterdir() if "full" in path.name]


def test_something_that_is_not_there(server: Shell, tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="no-such: Cannot stat"):
        server.fetch("no-such", tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        server.send(tmp_path / "nothing", "x")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_outside_the_folder(bed: Hosts, server: Shell, tmp_path: Path) -> None:
    evil = bed["server"].home / "evil"
    evil.mkdir()
    (evil / "out").symlink_to("/etc/passwd")
    (evil / "good").write_text("x")
    server.fetch("evil", tmp_path / "got")
    assert listing(tmp_path / "got").keys() == {"good"}


def test_a_host_that_sends_without_end(
    bed: Hosts, server: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a tar, as an answer, as a line, and as what it complains of."""
    bed["server"].program("tar", "#!/bin/sh\ncat /dev/zero\n")
    try:
        with pytest.raises(Unreachable, match=r"could not copy .*: server sent something behind the end") as refused:
            server.fetch("results", tmp_path / "results")
    finally:
        (bed["server"].programs / "tar").unlink()
    assert f"scp -F {bed.config} -r server:results" in str(refused.value.hint)
    assert list(tmp_path.iterdir()) == []

    monkeypatch.setattr("generator.cyclecloud.shell._MOST_BYTES", 1024**2)
    with pytest.raises(Unreachable, match="server sent more than 1 MiB in answer to `cat /dev/zero`"):
        server.run("cat /dev/zero", limit_s=LIMIT_S)

    monkeypatch.setattr("generator.cyclecloud.shell._LONGEST_LINE", 1000)
    lines = server.follow("cat /dev/zero")
    assert len(next(lines)) == 1000
    lines.close()  # type: ignore[attr-defined]

    ran = server.run("head -c 9000000 /dev/zero >&2; echo at last >&2; exit 3", limit_s=LIMIT_S)
    assert (ran.status, ran.err.strip("\0"), len(ran.err)) == (3, "at last\n", 64 * 1024)


def test_a_host_whose_tar_is_not_one(bed: Hosts, server: Shell, tmp_path: Path) -> None:
    """It answers with members that never end, each of them small."""
    archive = tmp_path / "member"
    archive.write_bytes(TOP + member(b"content/f", b"x") * 100)
    bed["server"].program("tar", f"#!/bin/sh\ncat {archive}; while cat {archive}; do :; done\n")
    try:
        with pytest.raises(Unreachable, match="server sent two files of one name"):
            server.fetch("results", tmp_path / "new" / "results")
    finally:
        (bed["server"].programs / "tar").unlink()
    assert list((tmp_path / "new").iterdir()) == []
