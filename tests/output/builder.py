"""A process that builds two versions in turn until it is killed; arguments: folder, `exchange` or `renames`."""

from __future__ import annotations

import sys
from pathlib import Path

from generator.disk import swap as folder_swap
from generator.output import folder as output
from tests.output.folders import files

if __name__ == "__main__":
    target = Path(sys.argv[1])
    if sys.argv[2] == "renames":
        folder_swap._exchange = lambda one, other: False
    versions = [files("a", count=30), files("b", count=31)]
    print("ready", flush=True)
    while True:
        for version in versions:
            output.write(target, version)
