"""A capture as programs: each command that was captured answers as it did, any other one is refused."""

from __future__ import annotations

import json
import sys
from pathlib import Path

_PROGRAM = """#!{python}
import json, sys
from pathlib import Path
folder = Path({folder!r})
for entry in json.loads((folder / "index.json").read_text()):
    if entry["command"] == [{tool!r}, *sys.argv[1:]] and "exit" in entry:
        sys.stdout.write((folder / entry["printed"]).read_text())
        sys.exit(entry["exit"])
print("Invalid combination of input arguments. Please run nvidia-smi -h for help.")
sys.exit(2)
"""


def programs(folder: Path, place: Path) -> list[str]:
    """Write the programs of a capture into a folder for PATH, and return their names."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    tools = sorted({entry["command"][0] for entry in index if "exit" in entry})
    place.mkdir(parents=True, exist_ok=True)
    for tool in tools:
        (place / tool).write_text(_PROGRAM.format(python=sys.executable, folder=str(folder.resolve()), tool=tool))
        (place / tool).chmod(0o755)
    return tools
