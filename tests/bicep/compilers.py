"""The Bicep compiler of this machine: the one that BICEP names, that of the PATH, or what `make tools` has installed.

BICEP may also name a checker, where there is no compiler: it takes the files and prints a line for each finding. What
only a compiler can do is then not tried. Tests that need one of them are marked `bicep`, or `bicep(compiler=True)`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from generator.files import assets

MODULES = sorted((assets.folder("bicep_templates") / "modules").glob("*.bicep"))
_INSTALLED = assets.root() / ".cache"
_VERSION = re.compile(r"Bicep CLI version (\d+\.\d+\.\d+)")
_READ = re.compile(r"(\bint\()?readEnvironmentVariable\('(\w+)'")
_LONG_ENOUGH = "/".join(["Long-enough1"] * 9)
_AT_ONCE = 2


@cache
def program() -> str | None:
    """A compiler or a checker; a BICEP that names neither is a fault of the run."""
    given = os.environ.get("BICEP")
    if given:
        found = shutil.which(given)
        if found is None:
            raise pytest.UsageError(f"BICEP is {given}, which is no program")
        return str(Path(found).absolute())
    installed = sorted(map(str, _INSTALLED.glob("bicep-*/bicep")))
    return shutil.which("bicep") or (installed[-1] if installed else None)


@cache
def version() -> str | None:
    """Of the compiler; None where there is none."""
    found = program()
    if found is None:
        return None
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    match = _VERSION.search(done.stdout)
    return match[1] if done.returncode == 0 and match else None


def run(command: str, file: Path) -> subprocess.CompletedProcess[str]:
    """What the compiler does with a file, to standard output; the variables that it reads are set."""
    found = program()
    assert found is not None
    assert version() is not None, "marked for a compiler"
    return _run([found, command, str(file), "--stdout"], file)


def compiled(file: Path) -> bytes:
    """The template that `bicep build` makes."""
    done = run("build", file)
    assert done.returncode == 0, done.stderr
    return done.stdout.encode()


def findings(*files: Path) -> list[str]:
    """What is found in these files and their modules, one finding a line."""
    if version() is not None:
        commands = ["build-params" if file.suffix == ".bicepparam" else "build" for file in files]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            done = list(pool.map(run, commands, files))
        assert all(each.stderr or each.returncode == 0 for each in done)
        # `FILE(LINE,COLUMN) : LEVEL CODE: MESSAGE`
        said = "".join(each.stderr for each in done)
        return [re.sub(r"^(.*?)\((\d+),(\d+)\) : ", r"\1:\2:\3: ", line) for line in said.splitlines() if line]
    found = program()
    assert found is not None, "marked for a checker"
    checked = _run([found, *map(str, files)], *files)
    lines = checked.stdout.splitlines()
    assert checked.returncode in (0, 1), checked.stderr
    assert lines or checked.returncode == 0, checked.stderr
    return lines


def findings_below(files: Mapping[str, Path]) -> dict[str, list[str]]:
    """For each name what is found in its file, its parameter file and what is below their folder, from one run for all.

    The folders are apart from each other. Reading the types of Azure's resources takes longer than most files.
    """
    both = [each for file in files.values() for each in (file, file.with_suffix(".bicepparam")) if each.exists()]
    lines = findings(*both)
    # A file that the given ones refer to is named from the working folder where it is below that.
    starts = {name: (f"{file.parent}/", f"{os.path.relpath(file.parent)}/") for name, file in files.items()}
    found = {name: [line for line in lines if line.startswith(starts[name])] for name in files}
    assert sorted(lines) == sorted(line for each in found.values() for line in each), lines
    return found


def selected(names: Iterable[str], request: pytest.FixtureRequest) -> list[str]:
    """Those with which a test of this run is parametrized: with `-k` one case costs no more than itself."""
    ends = {item.nodeid.partition("[")[2] for item in request.session.items}
    return [name for name in names if f"{name}]" in ends]


def _run(command: list[str], *files: Path) -> subprocess.CompletedProcess[str]:
    """With a value for every variable that a parameter file reads."""
    texts = (file.read_text() for file in files if file.suffix == ".bicepparam")
    read = (found for text in texts for found in _READ.findall(text))
    variables = {name: "20" if is_number else _LONG_ENOUGH for is_number, name in read}
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})


@cache
def knows(command: str) -> bool:
    """Whether there is a compiler, and it has this command."""
    found = program()
    if found is None or version() is None:
        return False
    said = subprocess.run([found, "--help"], capture_output=True, text=True, check=False).stdout
    return re.search(rf"^\s+(?:bicep )?{command}\b", said, re.MULTILINE) is not None
