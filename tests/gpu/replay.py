"""A capture as a machine: each command that was captured answers as it did, any other one is refused."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

_PROGRAM = """#!{python}
import json, sys
from pathlib import Path
folder = Path({folder!r})
known = [entry for entry in json.loads((folder / "index.json").read_text()) if entry["command"][0] == {tool!r}]
for entry in known:
    if entry["command"] == [{tool!r}, *sys.argv[1:]] and "exit" in entry:
        sys.stdout.write((folder / entry["printed"]).read_text())
        sys.exit(entry["exit"])
if not any("exit" in entry for entry in known):
    sys.exit(127)
print("Invalid combination of input arguments. Please run nvidia-smi -h for help.")
sys.exit(2)
"""


def programs(folder: Path, place: Path) -> list[str]:
    """Write the programs of a capture into a folder for PATH, and return their names.

    One that was not on that machine is not here either, whatever lies further behind on PATH.
    """
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    tools = sorted({entry["command"][0] for entry in index})
    place.mkdir(parents=True, exist_ok=True)
    for tool in tools:
        (place / tool).write_text(_PROGRAM.format(python=sys.executable, folder=str(folder.resolve()), tool=tool))
        (place / tool).chmod(0o755)
    return tools


def machine(folder: Path) -> Callable[[Path], dict[str, str]]:
    """What the checks read beside their tools, as far as a capture has it: its GPUs on the bus, at its time."""
    index = json.loads((folder / "index.json").read_text(encoding="utf-8"))
    answers = {" ".join(entry["command"]): folder / entry["printed"] for entry in index if "exit" in entry}

    def fill(root: Path) -> dict[str, str]:
        for path, text in (("uptime", "100000.00 100000.00\n"), ("stat", "btime 1\n")):
            (root / "proc").mkdir(exist_ok=True)
            (root / "proc" / path).write_text(text)
        for command, printed in answers.items():
            if not command.startswith("nvidia-smi --query-gpu=index,pci.bus_id "):
                continue
            for address in re.findall(r"(?m)^[0-9]+, ([0-9A-Fa-f:.]+)$", printed.read_text(encoding="utf-8")):
                device = root / "sys/bus/pci/devices" / address.lower()
                device.mkdir(parents=True)
                (device / "vendor").write_text("0x10de\n")
                (device / "class").write_text("0x030200\n")
        return {"CYCLEFORGE_NOW_S": str(max(entry["at"] for entry in index if "exit" in entry))}

    return fill
