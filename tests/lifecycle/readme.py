"""Runs the lines of a rendered README as a user pastes them, in bash, with stand-ins for `az` and `ssh`."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath

from generator.plan.types import Plan
from generator.render import readme
from tests.lifecycle import azure as stand_in
from tests.lifecycle import server
from tests.lifecycle.azure import Azure

_BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)
_PASSED = ("CYCLEFORGE_SERVER_KEY", "CYCLEFORGE_SERVER_IMAGE", "CYCLEFORGE_DATABASE_STORAGE")
"""Variables that commands of a README set and that others read."""

# A command writes its name, the variables and its arguments into one pipe and reads its exit status from another:
# a Python process for each of fifty commands would take most of the time.
_CLIENT = """#!/usr/bin/env bash
exec 9>'{folder}/lock'
flock 9
printf '%s\\0' "${{0##*/}}" {values} "$@" >'{folder}/request'
read -r status <'{folder}/reply'
cat '{folder}/out'
cat '{folder}/err' >&2
exit "${{status}}"
"""


def words(plan: Plan, title: str, file: str = "README.md") -> str:
    """What is below a heading."""
    text = readme.render(plan)[PurePosixPath(file)].content.decode()
    return re.split(r"(?m)^## ", text.split(f"\n## {title}\n", 1)[1], maxsplit=1)[0]


def section(plan: Plan, title: str, file: str = "README.md") -> list[str]:
    """The blocks of commands below a heading, in order."""
    blocks: list[str] = _BLOCK.findall(words(plan, title, file))
    assert blocks, title
    return blocks


def paste(azure: Azure, folder: Path, blocks: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run blocks in one shell, which goes on after an error as a terminal does."""
    with _commands(azure, folder) as path:
        return subprocess.run(
            ["bash", "-c", "\n".join(blocks)],
            env={"PATH": f"{path}:{os.environ['PATH']}", "HOME": str(folder), "server": "10.0.0.4", **environment},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )


@contextmanager
def _commands(azure: Azure, folder: Path) -> Iterator[Path]:
    """A folder with `az` and `ssh`, which a thread of this process answers."""
    path = folder / "bin"
    path.mkdir(exist_ok=True)
    for name in ("request", "reply"):
        if not (path / name).exists():
            os.mkfifo(path / name)
    for name in ("az", "ssh"):
        values = " ".join(f'"${{{variable}:-}}"' for variable in _PASSED)
        (path / name).write_text(_CLIENT.format(folder=path, values=values))
        (path / name).chmod(0o755)
    thread = threading.Thread(target=_answer, args=(azure, path), daemon=True)
    thread.start()
    try:
        yield path
    finally:
        (path / "request").write_bytes(b"")
        thread.join(30)


def _answer(azure: Azure, path: Path) -> None:
    """Until an empty request."""
    while request := (path / "request").read_bytes():
        program, *words = request.decode().removesuffix("\0").split("\0")
        values, words = dict(zip(_PASSED, words, strict=False)), words[len(_PASSED) :]
        try:
            status, out, err = stand_in.answer(azure, words, values) if program == "az" else server.answer(azure, words)
        except Exception as error:
            status, out, err = 70, "", f"NotPlayed: {error!r}\n"
        (path / "out").write_text(out)
        (path / "err").write_text(err)
        (path / "reply").write_text(f"{status}\n")
