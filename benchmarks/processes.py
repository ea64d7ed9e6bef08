"""Whole processes: `cycleforge build` and `cycleforge --help`, each beside its yardstick."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.table import Ratio
from generator.files import assets

ROUNDS = 31
YARDSTICK = """\
import json, pathlib, sys
import jinja2, yaml
definition = yaml.safe_load(open(sys.argv[1], encoding="utf-8"))
out = pathlib.Path(sys.argv[3])
environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
template = environment.from_string("{% for line in lines %}{{ line }}\\n{% endfor %}")
for name, lines in json.load(open(sys.argv[2], encoding="utf-8")).items():
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(template.render(lines=lines, definition=definition), encoding="utf-8")
"""
"""A bare script: PyYAML reads the definition, one Jinja2 template renders the same number of files and bytes."""


def build_ratio() -> Ratio:
    """`cycleforge build llm-a100` into an empty folder, as a whole process."""
    definition = assets.folder("cluster_defs") / "llm-a100.yaml"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = [_program(), "build", str(definition), "--out", str(folder / "ours")]
        _run(command)
        lines = folder / "lines.json"
        lines.write_text(json.dumps(_same_size(folder / "ours" / "llm-a100")), encoding="utf-8")
        script = folder / "yardstick.py"
        script.write_text(YARDSTICK, encoding="utf-8")
        bare = [sys.executable, str(script), str(definition), str(lines), str(folder / "bare")]
        ours, theirs = _alternate(
            lambda: _fresh(command, folder / "ours"),
            lambda: _fresh(bare, folder / "bare"),
        )
        files = len(json.loads(lines.read_text(encoding="utf-8")))
    return Ratio("cycleforge build llm-a100", ours, f"PyYAML + Jinja2, the same {files} files and bytes", theirs, 3)


def help_ratio() -> Ratio:
    """`cycleforge --help` beside an interpreter that does nothing."""
    ours, theirs = _alternate(lambda: _timed([_program(), "--help"]), lambda: _timed([sys.executable, "-c", "pass"]))
    return Ratio("cycleforge --help", ours, "python -c pass", theirs, 5)


def _program() -> str:
    return str(Path(sys.executable).parent / "cycleforge")


def _same_size(folder: Path) -> dict[str, list[str]]:
    """For every built file as many bytes of text, in lines of at most 100 characters."""
    result = {}
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        full, rest = divmod(path.stat().st_size, 101)
        result[str(path.relative_to(folder))] = ["x" * 100] * full + (["x" * (rest - 1)] if rest else [])
    return result


def _fresh(command: list[str], folder: Path) -> float:
    shutil.rmtree(folder, ignore_errors=True)
    return _timed(command)


def _alternate(one: Callable[[], float], other: Callable[[], float]) -> tuple[float, float]:
    """Of alternating runs the pair whose ratio is the middle one, after one warm-up each.

    The speed of a shared machine changes within seconds. Two runs one after the other have the same, but the fastest
    runs of either kind need not: over five measurements in a row the ratio of the fastest went from 2.33 to 2.55, the
    middle ratio from 2.12 to 2.42.
    """
    one(), other()
    pairs = sorted(((one(), other()) for _ in range(ROUNDS)), key=lambda pair: pair[0] / pair[1])
    return pairs[ROUNDS // 2]


def _timed(command: list[str]) -> float:
    start = time.perf_counter()
    _run(command)
    return time.perf_counter() - start


def _run(command: list[str]) -> None:
    """As a user's shell runs it: without variables that change how Python works, for both sides."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
