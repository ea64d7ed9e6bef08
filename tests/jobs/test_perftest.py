"""The row of `ib_write_bw`: every fake prints that of perftest, and jobs read it."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from generator.files import assets
from tests.bed import perftest
from tests.bed.scripts import rocm
from tests.projects import test_health_deep

TESTS = Path(__file__).parents[1]
PERL = TESTS / "bed/slurm/fakes/ib_write_bw"
BASH = TESTS / "jobs/fakes/fabric/ib_write_bw"

PUBLIC = " 1048576    5000             396.21             395.90\t\t     0.047195\n"
"""linux-rdma/perftest#273; microsoft/superbenchmark, tests/data/ib_loopback_8M_size.log, has the same tabs."""


def rate(folder: Path, text: str) -> str:
    (folder / "output").write_text(text, encoding="utf-8")
    script = f". {assets.folder('recipes')}/lib/perftest.sh; rate_in output"
    return subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PUBLIC, "395.90"),
        (PUBLIC.replace("\t", " "), "395.90"),
        (PUBLIC.replace(" ", "\t"), "395.90"),
        (f"{perftest.HEADER}\n{PUBLIC}{PUBLIC.replace('395.90', '390.10')}----\n", "390.10"),
        # -D: a test by time has no peak (perftest_parameters.c, print_full_bw_report)
        (PUBLIC.replace("396.21", "0.00"), "395.90"),
        (PUBLIC[:40] + "\n", ""),
        (PUBLIC.replace("395.90", "-nan"), ""),
        (f"{perftest.HEADER}\n", ""),
        ("", ""),
    ],
)
def test_the_rate_is_the_average_of_the_last_whole_row(text: str, expected: str, tmp_path: Path) -> None:
    assert rate(tmp_path, text) == expected


def of_perl(folder: Path) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    command = ["perl", str(PERL), "-p", port, "-d", "mlx5_ib0"]
    environment = os.environ | {"FAKE_STATE": str(folder)}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        # It says so once it listens.
        while "Waiting for client" not in server.stdout.readline():
            assert server.poll() is None
        return subprocess.run(
            [*command, "127.0.0.1"], env=environment, capture_output=True, text=True, check=True
        ).stdout


def of_bash(folder: Path) -> str:
    log = folder / "log"
    os.mkfifo(folder / "log.listens.hpc-1.18515")
    environment = os.environ | {"FAKE_LOG": str(log), "SLURMD_NODENAME": "hpc-1"}
    script = f'exec 3<>{log}.listens.hpc-1.18515; "$0" -s 8388608 -F -d mlx5_ib0 -p 18515 localhost'
    command = ["bash", "-c", script, str(BASH)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def of_python(text: str) -> str:
    lines = "".join(line for line in text.splitlines(keepends=True) if line.startswith("printf ' "))
    script = f"value=197.21\n{lines.replace('VALUE', '197.21')}"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout


def test_every_fake_prints_the_row_of_perftest(tmp_path: Path) -> None:
    printed = {
        "tests/bed/slurm/fakes/ib_write_bw": of_perl(tmp_path),
        "tests/jobs/fakes/fabric/ib_write_bw": of_bash(tmp_path),
        "tests/bed/scripts/rocm.py": of_python(rocm.IB_WRITE),
        "tests/projects/test_health_deep.py": of_python(test_health_deep.IB_WRITE),
    }
    for name, output in printed.items():
        assert perftest.HEADER in output.splitlines(), name
        rows = perftest.rows(output)
        assert len(rows) == 1, (name, output)
        for row, real in rows:
            assert row == real, name
        assert rate(tmp_path, output), name


def test_no_fake_of_perftest_is_left_out() -> None:
    """What prints its header prints it as the others do."""
    has_table = {
        str(path.relative_to(TESTS.parent))
        for path in TESTS.rglob("*")
        if path != Path(__file__) and path.suffix in ("", ".py", ".sh") and path.is_file()
        if b"BW average[Gb/sec]" in path.read_bytes()
    }
    assert has_table == {
        "tests/bed/perftest.py",
        str(PERL.relative_to(TESTS.parent)),
        str(BASH.relative_to(TESTS.parent)),
    }
