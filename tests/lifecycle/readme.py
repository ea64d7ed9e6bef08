"""Runs the lines of a rendered README as a user pastes them, in bash, with stand-ins for `az` and `ssh`."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedRWPair
from pathlib import Path, PurePosixPath

from generator.files.file import Files
from generator.plan.deployment import Plan
from generator.render import readme
from tests.lifecycle import azure as stand_in
from tests.lifecycle import server
from tests.lifecycle.azure import Azure

_BLOCK = re.compile(r"```bash\n(.*?)```", re.DOTALL)
_PASSED = ("CYCLEFORGE_SERVER_KEY", "CYCLEFORGE_SERVER_IMAGE", "CYCLEFORGE_DATABASE_STORAGE")
"""Variables that commands of a README set and that others read."""

# A command sends its name, the variables and its arguments, and gets its exit status and both outputs. Bash alone: a
# section has fifty commands.
_CLIENT = """#!/usr/bin/env bash
exec 3<>/dev/tcp/127.0.0.1/{port}
printf '%s\\0' "$(($# + {more}))" "${{0##*/}}" {values} "$@" >&3
for answer in status out err; do IFS= read -r -d '' "${{answer?}}" <&3; done
printf '%s' "${{out}}"
printf '%s' "${{err}}" >&2
exit "${{status}}"
"""


_rendered: dict[int, tuple[Plan, Files]] = {}


def words(plan: Plan, title: str, file: str = "README.md") -> str:
    """What is below a heading."""
    # By identity: a plan has no hash. It is kept, so that no other one gets its number.
    if id(plan) not in _rendered:
        _rendered[id(plan)] = plan, readme.render(plan)
    text = _rendered[id(plan)][1][PurePosixPath(file)].content.decode()
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
    """A folder with `az` and `ssh`, which a thread of this process answers, one after the other."""
    path = folder / "bin"
    path.mkdir(exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        values = " ".join(f'"${{{variable}:-}}"' for variable in _PASSED)
        text = _CLIENT.format(port=listening.getsockname()[1], more=len(_PASSED) + 1, values=values)
        for name in ("az", "ssh"):
            (path / name).write_text(text)
            (path / name).chmod(0o755)
        thread = threading.Thread(target=_answer, args=(azure, listening), daemon=True)
        thread.start()
        try:
            yield path
        finally:
            # A connection that asks for nothing is the last one.
            socket.create_connection(listening.getsockname()).close()
            thread.join(30)


def _answer(azure: Azure, listening: socket.socket) -> None:
    """Until one asks for nothing."""
    while True:
        connection, _ = listening.accept()
        with connection, connection.makefile("rwb") as stream:
            count = _word(stream)
            if not count:
                return
            program, *words = [_word(stream) for _ in range(int(count))]
            values, words = dict(zip(_PASSED, words, strict=False)), words[len(_PASSED) :]
            try:
                reply = stand_in.answer(azure, words, values) if program == "az" else server.answer(azure, words)
            except Exception as error:
                reply = 70, "", f"NotPlayed: {error!r}\n"
            with suppress(BrokenPipeError):  # whoever asked was ended
                stream.write("".join(f"{text}\0" for text in reply).encode())
                stream.flush()


def _word(stream: BufferedRWPair) -> str:
    """Up to a NUL byte, or to the end."""
    word = bytearray()
    while (byte := stream.read(1)) not in (b"", b"\0"):
        word += byte
    return word.decode()
