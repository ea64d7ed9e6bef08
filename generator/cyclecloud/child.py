"""Programs that we start: those that hold a way open, such as a tunnel, end when we do, however that happens.

What one says is read while it runs, and no more of it is kept than is wanted: a host decides how much it sends, and a
pipe that is read to its end and kept would fill the memory or the disk.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO

from ..plan.parameters import SECRETS

_GUARDED = 'exec 3<&0; "$@" 3<&- </dev/null & child=$!; { cat <&3 >/dev/null; kill -TERM 0; } & wait "$child"'
"""The group ends when the pipe does, of which we alone have the other end: no signal is needed, SIGKILL will do.
`az` is a script that starts Python, so that it is not enough to end the one process that was started."""
_PAUSE_S = 0.05
_PATIENCE_S = 5.0
MOST_ERRORS = 64 * 1024
"""Bytes of a standard error; its end says why something failed."""
_PIECE = 64 * 1024


class Ended(Exception):  # noqa: N818 - named by what happened
    """The program has ended before the way was open; `said` is what it wrote."""

    def __init__(self, said: str) -> None:
        super().__init__(said)
        self.said = said


class Holder:
    """A program that is to listen at a port of this machine."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, said: IO[bytes]) -> None:
        self.process, self.port, self._said = process, port, said

    def wait_until_open(self, limit_s: float) -> None:
        """Raises Ended, also when it takes too long."""
        deadline = time.monotonic() + limit_s
        while not listens(self.port):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Ended(self.said())
            time.sleep(_PAUSE_S)

    def said(self) -> str:
        self._said.seek(0)
        return self._said.read().decode(errors="replace")


@contextmanager
def held(words: Sequence[str], port: int) -> Iterator[Holder]:
    """Start it. Raises FileNotFoundError where there is no such program."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            ["/bin/sh", "-c", _GUARDED, "sh", *words],
            stdin=subprocess.PIPE,
            stdout=said,
            stderr=said,
            env=environment(),
            start_new_session=True,
        )
        try:
            yield Holder(process, port, said)
        finally:
            _end_group(process)


def environment() -> dict[str, str]:
    """Without what `deploy`, `status` and `update` take from it: neither ssh nor `az` nor a ProxyCommand needs it."""
    return {name: value for name, value in os.environ.items() if name not in SECRETS}


def free_port(preferred: int = 0) -> int:
    """A free port of 127.0.0.1; the preferred one if it is free."""
    for port in dict.fromkeys((preferred, 0)):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)) as found:
            number: int = found.getsockname()[1]
            return number
    raise OSError("this machine has no free port")


def listens(port: int) -> bool:
    """Whether a program listens there, without a connection: `az` serves one after the other, each costs a session.

    With SO_REUSEADDR a port can be bound until a program listens on it. Source: socket(7)
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def _end_group(process: subprocess.Popen[bytes]) -> None:
    _close_input(process)
    _reap(process)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def end(process: subprocess.Popen[bytes]) -> None:
    """Close its input, and see that it ends."""
    _close_input(process)
    stop(process)


def stop(process: subprocess.Popen[bytes]) -> None:
    """At SIGTERM ssh ends the program of its ProxyCommand, too; SIGKILL would leave that to itself."""
    if process.poll() is None:
        process.terminate()
        _reap(process)


def _close_input(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with suppress(OSError):
            process.stdin.close()


def _reap(process: subprocess.Popen[bytes]) -> None:
    try:
        process.wait(_PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Drain:
    """Reads a pipe to its end in a thread of its own."""

    def __init__(self, pipe: IO[bytes], most: int, too_much: Callable[[], None] | None = None) -> None:
        """Keep `most` bytes: the last ones, or with `too_much` the first, and it is called at the first byte more."""
        self._pipe, self._most, self._too_much = pipe, most, too_much
        self._kept = bytearray()
        self.is_cut = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def content(self) -> bytes:
        """What is kept, once the program has ended: what it started may hold the pipe open for longer."""
        self._thread.join(_PATIENCE_S)
        return bytes(self._kept)

    def _read(self) -> None:
        # A pipe that is closed here by the one who has given up is no error.
        with suppress(OSError, ValueError):
            while piece := self._pipe.read1(_PIECE):  # type: ignore[attr-defined]
                self._keep(piece)

    def _keep(self, piece: bytes) -> None:
        self._kept += piece
        if len(self._kept) <= self._most:
            return
        if self._too_much is None:
            del self._kept[: -self._most]
            return
        del self._kept[self._most :]
        if not self.is_cut:
            self.is_cut = True
            self._too_much()
