"""`cycleforge health` as a process: what a script sees, how long a large fleet takes, what is imported."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
from pathlib import Path

import pytest

from tests.answers import data_of
from tests.command import COMMAND, MODULE, PYTHON
from tests.health import fleet
from tests.health.results import check, gpus, reduce, result

ROOT = Path(__file__).resolve().parents[2]


def command(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m generator health` in a folder."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CYCLE", "LC_", "LANG"))}
    return subprocess.run(
        [*COMMAND, "health", *arguments],
        cwd=folder,
        env=clean | {"PYTHONPATH": str(ROOT)} | environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
    )


def test_from_the_files_of_a_cluster_to_the_nodes_to_pull(tmp_path: Path) -> None:
    """The way of the README: copy, collect, report, list."""
    fleet.make(tmp_path / "cycleforge-health")
    collected = command("collect", "cycleforge-health", "--into", "health.json", folder=tmp_path)
    assert collected.returncode == 2
    assert collected.stdout.startswith("health.json: 33 results of 17 nodes")
    report = command("report", "health.json", *fleet.ARGUMENTS, folder=tmp_path)
    assert report.returncode == 2
    assert report.stdout.startswith("19 nodes: 2 failed, 2 missing, 1 stale, 3 not measured, 2 suspect, 9 healthy\n")
    assert "sudo scontrol update NodeName=hpc-[9,13] State=DRAIN" in report.stdout
    listed = command("report", "health.json", *fleet.ARGUMENTS, "--nodes-only", "failed", folder=tmp_path)
    assert (listed.stdout, listed.returncode) == ("hpc-[9,13]\n", 2)
    assert "hint: the node or the copy stopped halfway" in listed.stderr


def test_nothing_of_the_process_shows(tmp_path: Path) -> None:
    """Not the seed of hashes, the zone, the locale."""
    fleet.make(tmp_path / "health")
    seen = set()
    for seed, zone, locale in (("0", "UTC", "C.UTF-8"), ("1", "Asia/Tokyo", "C"), ("2", "America/Lima", "C.UTF-8")):
        surroundings = {"PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale, "PYTHONUTF8": "1"}
        command("collect", "health", "--into", "all.json", folder=tmp_path, **surroundings)
        done = command("report", "health", *fleet.ARGUMENTS, folder=tmp_path, **surroundings)
        seen.add((done.stdout, (tmp_path / "all.json").read_bytes()))
        (tmp_path / "all.json").unlink()
    assert len(seen) == 1


def test_a_thousand_nodes(tmp_path: Path) -> None:
    """2,000 results of thirty checks each; the processor time grows with the nodes and no faster."""
    checks = [gpus(), *[check(f"mount_{number}", detail="/shared") for number in range(28)]]

    def cpu_s(nodes: int) -> float:
        folder = tmp_path / str(nodes)
        folder.mkdir()
        for number in range(1, nodes + 1):
            for kind in ("quick", "deep"):
                value = reduce(f"{470 + number % 7}.{number % 10}" if number != nodes // 2 else "430")
                path = folder / f"hpc-{number}.{kind}.json"
                path.write_text(json.dumps(result(f"hpc-{number}", kind, value, *checks)))
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = command("report", ".", "--expect", f"hpc-[1-{nodes + 1}]", folder=folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == 1
        assert done.stdout.startswith(f"{nodes + 1} nodes: 1 missing, 1 suspect, {nodes - 1} healthy\n")
        return after.ru_utime - before.ru_utime

    # Five times the nodes: at most 5 if linear, 25 if quadratic.
    few, many = cpu_s(200), cpu_s(1000)
    assert many < 10 * few


def test_ten_thousand_files(tmp_path: Path) -> None:
    """Most of them rubbish; none is lost and none stops the rest."""
    for number in range(10_000):
        (tmp_path / str(number)).write_text("{" if number % 100 else json.dumps(result(f"hpc-{number}")))
    done = command("report", ".", "--kind", "quick", "--json", folder=tmp_path)
    assert done.returncode == 2
    answer = data_of(done.stdout)
    assert (answer["files"], answer["counts"]["nodes"], len(answer["problems"])) == (10_000, 100, 9_900)


def test_a_reader_that_goes_away_is_quiet(tmp_path: Path) -> None:
    """`cycleforge health report … | head -n 1`."""
    fleet.make(tmp_path / "health")
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, "health", "report", str(tmp_path / "health")],
        cwd=ROOT,
        stdout=writer,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize("arguments", [["--help"], ["report", "--help"], ["collect"]])
def test_help_and_wrong_usage_import_nothing_heavy(arguments: list[str]) -> None:
    """The package is imported by `run` only; msgspec, of which records are, brings `decimal`."""
    done = subprocess.run(
        [PYTHON, "-X", "importtime", "-m", MODULE, "health", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    imported = set(re.findall(r"\|\s+([\w.]+)$", done.stderr, re.MULTILINE))
    assert f"{MODULE}.cli.common" in imported
    assert imported & {"yaml", "jinja2", f"{MODULE}.health"} == set()


def test_a_report_reads_no_yaml(tmp_path: Path) -> None:
    """The definition's parser is not needed for it."""
    fleet.make(tmp_path / "health")
    done = subprocess.run(
        [PYTHON, "-X", "importtime", "-m", MODULE, "health", "report", str(tmp_path / "health")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    imported = set(re.findall(r"\|\s+([\w.]+)$", done.stderr, re.MULTILINE))
    assert f"{MODULE}.health.result" in imported
    assert imported & {"yaml", "jinja2", f"{MODULE}.definition.text.source", f"{MODULE}.definition.model"} == set()
