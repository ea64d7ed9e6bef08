"""`cycleforge`, kept loaded: each command is a process that is forked from one which has imported what it takes.

It is a process of its own, with its arguments, streams, exit status and the signals that are sent to it, and nothing in
it was computed before. What is not repeated is the start of the interpreter and the imports (`served.py`), which is two
thirds of what a command costs.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from tests.bed.limits import COMMAND_S

SERVER = Path(__file__).with_name("served.py")


class Command:
    """A command that was started, as `subprocess.Popen[str]` has it."""

    def __init__(self, server: socket.socket, words: Sequence[str]) -> None:
        self.args, self.returncode = ["cycleforge", *words], -1
        ends = [os.pipe() for _ in range(3)]
        socket.send_fds(server, [json.dumps(self.args).encode()], [write for _, write in ends])
        for _, write in ends:
            os.close(write)
        self.stdout, self.stderr, self._told = (os.fdopen(read, encoding="utf-8") for read, _ in ends)
        self._pid = int(self._told.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr):
            stream.close()
        self._wait()

    def send_signal(self, number: int) -> None:
        """Where it has not ended."""
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def communicate(self, timeout: float = COMMAND_S) -> tuple[str, str]:
        """What it has not been heard to write yet; one that takes longer is killed, and TimeoutExpired is raised."""
        late, said = threading.Event(), list[str]()

        def end() -> None:
            late.set()
            self.send_signal(signal.SIGKILL)

        timer = threading.Timer(timeout, end)
        reader = threading.Thread(target=lambda: said.append(self.stderr.read()))
        timer.start()
        reader.start()
        out = self.stdout.read()
        reader.join()
        with self:
            timer.cancel()
        if late.is_set():
            raise subprocess.TimeoutExpired(self.args, timeout, out, said[0])
        return out, said[0]

    def _wait(self) -> None:
        """Until it has ended: its exit status is negative where a signal has ended it."""
        if not self._told.closed:
            with self._told:
                self.returncode = os.waitstatus_to_exitcode(int(self._told.readline()))


class Loaded:
    """What commands are forked from; they have its folder and environment."""

    def __init__(self, like: Sequence[str], folder: Path, environment: Mapping[str, str]) -> None:
        """`like`: the words of a command that changes nothing, and loads what others load."""
        self._ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            line = [sys.executable, str(SERVER), *like]
            self._process = subprocess.Popen(
                line, cwd=folder, env=environment, stdin=theirs.fileno(), stdout=subprocess.DEVNULL
            )

    def starts(self, *words: str) -> Command:
        """`cycleforge` with these words, in the background."""
        return Command(self._ours, words)

    def close(self) -> None:
        """No more commands."""
        self._ours.close()
        self._process.wait()
