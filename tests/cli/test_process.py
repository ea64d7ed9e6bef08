"""The command as a process: exit codes, pipes, signals, environment, start-up."""

from __future__ import annotations

import fcntl
import os
import re
import shlex
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path

import pytest

from tests.cli.running import GOOD
from tests.command import COMMAND, MODULE, PYTHON

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m generator` in a folder."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CYCLE", "LC_", "LANG"))}
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT), "CYCLEFORGE_BLOBS": os.environ["CYCLEFORGE_BLOBS"]} | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )


def test_exit_codes(tmp_path: Path) -> None:
    """What a script sees."""
    (tmp_path / "good.yaml").write_text(GOOD)
    (tmp_path / "wrong.yaml").write_text(GOOD.replace("max_nodes", "max_node"))
    (tmp_path / "broken.yaml").write_text("a: [1\n")
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "lab").write_text("a file")
    expected = {
        ("validate", "good.yaml"): 0,
        ("validate", "wrong.yaml"): 1,
        ("validate", "broken.yaml"): 2,
        ("validate", "missing.yaml"): 2,
        ("--wrong",): 2,
        ("build", "good.yaml"): 5,
        ("build", "good.yaml", "--out", "other"): 0,
    }
    for arguments, code in expected.items():
        done = command(*arguments, folder=tmp_path)
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_quiet(tmp_path: Path) -> None:
    """`cycleforge list rules | head -n 1`."""
    process = subprocess.Popen(
        [*COMMAND, "explain", "--all"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), errors) == (141, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [["explain", "--all"], ["list", "images"]])
def test_a_full_disk_behind_standard_output(arguments: list[str]) -> None:
    """A redirect into a full disk is not our bug."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([*COMMAND, *arguments], cwd=ROOT, stdout=full, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 5
    assert b"standard output: no space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_interrupt(tmp_path: Path) -> None:
    """Ctrl-C while standard input is read."""
    process = subprocess.Popen(
        [*COMMAND, "validate", "-"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None
    process.stdin.write(b"name: lab\n")
    process.stdin.flush()
    while struct.unpack("i", fcntl.ioctl(process.stdin, termios.FIONREAD, bytes(4))) != (0,):
        time.sleep(0.05)  # what was taken out of the pipe shows that the command reads
    process.send_signal(signal.SIGINT)
    process.wait()
    process.stdin.close()
    assert process.stderr is not None
    errors = process.stderr.read()
    process.stderr.close()
    assert process.stdout is not None
    process.stdout.close()
    assert process.returncode == 130
    assert b"interrupted" in errors
    assert b"Traceback" not in errors


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_terminals_that_cannot_show_a_letter(tmp_path: Path, encoding: str) -> None:
    """An escape instead of a traceback."""
    (tmp_path / "x.yaml").write_text("日本: [1\n")
    done = command("validate", "x.yaml", folder=tmp_path, PYTHONIOENCODING=encoding)
    assert done.returncode == 2
    assert "E0001" in done.stderr
    assert "Traceback" not in done.stderr


def test_color_on_a_terminal_only_and_not_with_no_color(tmp_path: Path) -> None:
    """A pseudo-terminal stands for the terminal."""
    (tmp_path / "x.yaml").write_text("a: [1\n")

    def on_terminal(*flags: str, **environment: str) -> str:
        master, slave = os.openpty()
        subprocess.run(
            [*COMMAND, "validate", "x.yaml", *flags], cwd=tmp_path, stderr=slave, check=False,
            stdout=subprocess.DEVNULL,
            env={name: value for name, value in os.environ.items() if name != "NO_COLOR"}
            | {"PYTHONPATH": str(ROOT), "TERM": "xterm"} | environment,
        )  # fmt: skip
        os.close(slave)
        text = os.read(master, 100_000).decode()
        os.close(master)
        return text

    assert "\x1b[1;31merror E0001" in on_terminal()
    for text in (on_terminal("--no-color"), on_terminal(NO_COLOR="1"), on_terminal(TERM="dumb")):
        assert "error E0001" in text
        assert "\x1b" not in text


def test_a_build_into_a_closed_output_is_whole(tmp_path: Path) -> None:
    """The folder is written before its result is printed."""
    (tmp_path / "good.yaml").write_text(GOOD)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "build", "good.yaml"], cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
    assert (tmp_path / "output" / "lab" / "manifest.json").is_file()


def test_help_imports_nothing_heavy() -> None:
    """The start-up budget, without a stopwatch: none of these is needed to print the help."""
    done = subprocess.run(
        [PYTHON, "-X", "importtime", "-m", MODULE, "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(re.findall(r"\|\s+([\w.]+)$", done.stderr, re.MULTILINE))
    heavy = {
        "yaml",
        "jinja2",
        "shtab",
        "dataclasses",
        "inspect",
        "json",
        "typing",
        "pathlib",
        f"{MODULE}.definition.model",
        f"{MODULE}.problems.problem",
    }
    assert f"{MODULE}.cli.parser" in imported
    assert imported & heavy == set()


def test_no_help_of_a_verb_imports_azure() -> None:
    line = f"import sys; from {MODULE}.cli.parser import full_parser; full_parser(); print(*sys.modules)"
    done = subprocess.run([PYTHON, "-c", line], cwd=ROOT, capture_output=True, text=True, check=True)
    imported = set(done.stdout.split())
    assert f"{MODULE}.cli.deploy" in imported
    heavy = ("azure", "requests", "rich", f"{MODULE}.azure", f"{MODULE}.cyclecloud", f"{MODULE}.locker")
    assert [name for name in imported if f"{name}.".startswith(tuple(f"{each}." for each in heavy))] == []


def test_the_order_of_hashes_does_not_show(tmp_path: Path) -> None:
    """The same problems in the same order, whatever the seed."""
    (tmp_path / "x.yaml").write_text(GOOD.replace("max_nodes", "max_node") + "foo: 1\nbar: ${A}x\nfoo: 2\n")
    seen = {command("validate", "x.yaml", folder=tmp_path, PYTHONHASHSEED=seed).stderr for seed in ("0", "1", "2")}
    assert len(seen) == 1


@pytest.mark.parametrize(("closed", "code", "out", "err"), [
    ("<&-", 2, "", "E0006"),
    (">&-", 5, "", "cannot write the result to standard output"),
    ("2>&-", 1, '"ok": false', ""),
])  # fmt: skip
def test_a_stream_that_is_closed(tmp_path: Path, closed: str, code: int, out: str, err: str) -> None:
    """As a service manager may start us: no file and no connection takes its number, and nothing is our bug."""
    (tmp_path / "x.yaml").write_text("name: lab\n")
    words = ["validate", "-"] if closed == "<&-" else ["validate", "x.yaml", "--json"]
    line = shlex.join([*COMMAND, *words])
    done = subprocess.run(
        ["bash", "-c", f"{line} {closed}"], cwd=tmp_path, env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, out in done.stdout, err in done.stderr) == (code, True, True), done
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr
