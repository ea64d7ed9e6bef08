"""Builds two versions in turn until it is killed; argument: folder.

With a second argument, `children`, it builds nothing itself: for each line on its standard input a child of it begins,
whose id it prints, and for the next line it waits until that child is gone. A child starts in a hundredth of the time.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from generator.files.file import Files
from generator.output import folder as output
from tests.output.folders import files


def build_endlessly(target: Path, versions: list[Files]) -> None:
    """One version after the other."""
    while True:
        for version in versions:
            output.write(target, version)


def serve(target: Path, versions: list[Files]) -> None:
    """Children, one at a time, until the input ends."""
    while sys.stdin.readline():
        child = os.fork()
        if not child:
            build_endlessly(target, versions)
        print(child, flush=True)
        sys.stdin.readline()
        os.waitpid(child, 0)
        print("gone", flush=True)


if __name__ == "__main__":
    both = [files("a", count=30), files("b", count=31)]
    if sys.argv[2:] == ["children"]:
        serve(Path(sys.argv[1]), both)
    else:
        print("ready", flush=True)
        build_endlessly(Path(sys.argv[1]), both)
