"""Parts of what runs on the scheduler, without one."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from generator.cyclecloud.jobs.prepared import program

RUNS = program("runs.sh").decode().removesuffix('main "$@"\n')
FOLLOW = (
    "declare -A offset=() inode=() state=() ending=(); look() { printf '%s\\n' '-'; new_lines log '' said \"$1\"; }; "
)
"""`look` says what is new in the file `said`."""


def says(folder: Path, script: str, **environment: str) -> list[str]:
    """What the program says whose last line is this."""
    line, env = ["bash", "-c", RUNS + script], {"PATH": "/usr/bin:/bin", **environment}
    done = subprocess.run(line, cwd=folder, text=True, capture_output=True, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(("state", "is_over", "is_good"), [("RUNNING", 1, 1), ("FAILED", 0, 1), ("COMPLETED", 0, 0)])
def test_an_array_of_many_tasks_is_not_over_before_its_last(
    tmp_path: Path, state: str, is_over: int, is_good: int
) -> None:
    """More of them than fit into a pipe."""
    rows = [f"7_{task}|COMPLETED|0:0" for task in range(20_000)]
    rows[5] = f"7_5|{state}|"
    (tmp_path / "a.tasks").write_text("\n".join([*rows, ""]))
    script = 'for each in is_over is_good; do if "${each}" a; then echo 0; else echo 1; fi; done'
    assert says(tmp_path, script) == [str(is_over), str(is_good)]


@pytest.mark.parametrize(
    ("parts", "lines"),
    [
        # Whole lines only, until the end.
        ((b"one\ntw", b"o\nthree", b""), ["-", ":4\tone", "-", ":8\ttwo", "-", ":13\tthree"]),
        # A progress bar, and lines of Windows.
        ((b"10%\r20%\r30", b"%\r\nend\r\n"), ["-", ":8\t20%", "-", ":13\t30%", ":18\tend"]),
        # What is no text, and tabs.
        ((b"a\0b\tc\xff\n",), ["-", ":7\ta b\tc\ufffd"]),
    ],
)
def test_new_lines_of_an_output(tmp_path: Path, parts: tuple[bytes, ...], lines: list[str]) -> None:
    script = FOLLOW + "".join(
        f"cat {number} >>said; look {'over' if number == len(parts) - 1 else chr(39) * 2}; "
        for number in range(len(parts))
    )
    for number, part in enumerate(parts):
        (tmp_path / str(number)).write_bytes(part)
    done = subprocess.run(["bash", "-c", RUNS + script], cwd=tmp_path, capture_output=True, check=True)
    said = done.stdout.decode(errors="replace").split("\n")[:-1]
    assert [line.removeprefix("log\tlog\t") for line in said] == lines


def test_an_output_that_begins_anew(tmp_path: Path) -> None:
    """Shorter than before, another file in its place, or as long as before in the same file."""
    script = "seq 3 >said; look ''; seq 2 >said; look ''; seq 7 9 >new; mv new said; look ''"
    said = [line.rpartition("\t")[2] for line in says(tmp_path, FOLLOW + script)]
    assert said == ["-", "1", "2", "3", "-", "1", "2", "-", "7", "8", "9"]
    script = "echo attempt 0 >said; look ''; echo attempt 1 >said; touch -d tomorrow said; look ''; look over"
    assert [line.rpartition("\t")[2] for line in says(tmp_path, FOLLOW + script)] == [
        "-", "attempt 0", "-", "attempt 1", "-"
    ]  # fmt: skip


def test_long_lines_and_many_are_bounded(tmp_path: Path) -> None:
    """A line of three MiB without an end, and more than is shown at once."""
    (tmp_path / "said").write_bytes(b"x" * 3 * 2**20)
    said = says(tmp_path, FOLLOW + "look ''; look over")
    assert sum(map(len, said)) < 20_000
    assert said[-1].startswith(f"log\tlog\t:{3 * 2**20}\t")
    (tmp_path / "said").write_text("".join(f"line {number}\n" for number in range(100_000)))
    said = says(tmp_path, FOLLOW + "look over", CYCLEFORGE_NEWS="1000")
    assert said[1].startswith("note\tlog\t")
    assert said[1].endswith("all of it is in said")
    assert said[-1].endswith("\tline 99999")
    assert len(said) < 110


@pytest.mark.parametrize("kind", ["/dev/null", "/dev/zero", "pipe", "missing", "."])
def test_an_output_that_is_no_file(tmp_path: Path, kind: str) -> None:
    script = f"if [[ {kind} == pipe ]]; then mkfifo pipe; fi; ln -s {kind} said; look over"
    assert says(tmp_path, FOLLOW + script) == ["-"]


def test_an_output_that_grows_while_it_is_read(tmp_path: Path) -> None:
    """Reading a part of a large file ends before the file does."""
    (tmp_path / "said").write_text("".join(f"{number:06}\n" for number in range(200_000)))
    said = says(tmp_path, FOLLOW + "look ''")
    assert len(said) == 200_001
    assert said[-1] == "log\tlog\t:1400000\t199999"


def test_a_file_that_cannot_be_written_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    """As on a full disk; whoever follows a job goes on."""
    script = 'if whole missing/a text; then echo written; else echo "${REPLY}"; fi; ls -A'
    (said,) = says(tmp_path, script)
    assert said.endswith("is the disk full?")
