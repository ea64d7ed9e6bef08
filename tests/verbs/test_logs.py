"""`cycleforge logs`: which files, how much of them, and nothing that steers a terminal or is secret."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.verbs.place import Living
from tests.what_if.place import PASSWORD


@pytest.fixture
def logged(living: Living) -> Living:
    root = living.folder / "root"
    for path, text in (
        ("var/log/cycleforge/bootstrap.log", "one\ntwo\nthree \x1b[2J\tpassword=hunter22\n"),
        ("var/log/slurmctld/slurmctld.log", "slurmctld says\n"),
        ("opt/azurehpc/slurm/logs/resume.log", "resumed\n"),
        ("var/log/slurmd/slurmd.log", "slurmd says\n"),
    ):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return living


def test_the_server_is_the_default(logged: Living) -> None:
    code, out, err = logged("logs", "minimal.yaml", "--lines", "2")
    assert (code, logged.changes) == (0, []), err
    assert "/var/log/cycleforge/bootstrap.log <==\ntwo\nthree \\x1b[2J" in out
    assert "one" not in out.partition("<==")[2]
    assert "hunter22" not in out


@pytest.mark.parametrize(("host", "shown"), [("scheduler", ["slurmctld says", "resumed"]), ("htc-1", ["slurmd says"])])
def test_each_kind_of_host_has_its_files(logged: Living, host: str, shown: list[str]) -> None:
    logged.also_reaches("htc-1")
    code, out, err = logged("logs", "minimal.yaml", host)
    assert code == 0, err
    assert [text for text in ("slurmctld says", "resumed", "slurmd says") if text in out] == shown


def test_what_is_not_there_is_no_empty_log(living: Living) -> None:
    code, _, err = living("logs", "minimal.yaml", "scheduler")
    assert (code, "has none of these logs: /var/log/slurmctld/slurmctld.log" in err) == (4, True)
    assert living("logs", "minimal.yaml", "--lines", "0")[0] == 2


def test_through_azure_it_is_shorter(logged: Living) -> None:
    logged.has_no_path_to("server")
    (logged.folder / "root/opt/cycle_server/logs").mkdir(parents=True)
    (logged.folder / "root/opt/cycle_server/logs/cycle_server.log").write_text("a line of it\n" * 9000)
    code, out, err = logged("logs", "minimal.yaml", "--lines", "9000")
    assert (code, out.count("a line of it") > 100) == (0, True), err


def test_following_ends_with_the_user(logged: Living) -> None:
    """A program of its own, which gets Ctrl-C; it shows what comes after its beginning."""
    logged.patch.setenv("CYCLECLOUD_ADMIN_PASSWORD", PASSWORD)
    file = logged.folder / "root/var/log/cycleforge/bootstrap.log"
    words = [sys.executable, "-c", "from generator.cli import main; import sys; sys.exit(main(sys.argv[1:]))"]
    with subprocess.Popen(
        [*words, "logs", "minimal.yaml", "--follow"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=logged.environment(Path(__file__).parents[2]), start_new_session=True,
    ) as follows:  # fmt: skip
        assert follows.stdout is not None
        for wanted in ("three \\x1b[2J", "added ***"):
            while wanted not in (row := follows.stdout.readline()):
                assert row, follows.communicate()
            with file.open("a") as log:
                log.write(f"added {PASSWORD}\n")
        follows.send_signal(2)
        assert follows.wait() == 130
