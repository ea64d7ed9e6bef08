"""Ends a build of a project at each of its steps and looks at what is left; argument: folder.

A step is an event of Python's audit: a file opened, a folder made, renamed or removed, a mode set. Every build is a
process of its own that kills itself at the n-th event, for every n until one gets through.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from generator.projects.build import build
from generator.projects.package import Package, package_folder
from tests.projects.folders import INI, SCRIPT, project


def package(folder: Path, word: str) -> Package:
    """Two versions of one project that share no file content."""
    specs = {SCRIPT: f"#!/bin/sh\necho {word}\n".encode(), f"default/cluster-init/files/{word}": word.encode()}
    return package_folder(project(folder / word, INI.replace("1.0.0", f"1.0.0-{word}"), specs))


def is_whole(folder: Path, wanted: Package) -> bool:
    """Whether a folder is the build of this package and nothing else."""
    found = {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    files = {path.as_posix(): payload.open().read() for path, payload in wanted.files.items()}
    return found == files | {"manifest.json": wanted.manifest}


def killed(wanted: Package, out: Path, step: int) -> bool:
    """Build in a process that ends at this step; False when it was through before."""
    pid = os.fork()
    if pid == 0:
        left = step

        def end(_: str, __: tuple[object, ...]) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(end)
        build(wanted, out)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return os.WTERMSIG(status) == signal.SIGKILL
    if status:
        raise AssertionError(f"step {step}: the build itself failed")
    return False


def main(place: Path) -> None:
    """Every step once; prints how many there are, and how many left something behind."""
    one, other, out = package(place, "a"), package(place, "b"), place / "out"
    folder = out / "demo"
    build(one, out)
    step = leftovers = 0
    is_running = True
    while is_running:
        step += 1
        is_running = killed(other, out, step)
        leftovers += len(list(out.iterdir())) > 1
        # There is a moment between two renames in which no folder has the name.
        if folder.exists():
            assert is_whole(folder, one) or is_whole(folder, other), f"step {step}: half a build"
        for each in (other, one):
            build(each, out)
            assert is_whole(folder, each), f"step {step}: not healed"
            assert [entry.name for entry in out.iterdir()] == ["demo"], f"step {step}: something was left"
    print(step, leftovers)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
