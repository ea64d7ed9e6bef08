"""The interpreter from which runs of the program are forked: see `fakes/warm.py`, whose other end this is."""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from generator.files import assets

WARM = Path(__file__).parent / "fakes/warm.py"


class Interpreter:
    """One process that waits for runs; it ends when this side does, also by a kill."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        # The flags and the locale of the launcher, bootstrap/cycleforge-bootstrap.
        command = [sys.executable, "-B", "-s", "-S", str(WARM), str(assets.folder("bootstrap"))]
        environment = os.environ | {"LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}
        with theirs:
            self._process = subprocess.Popen(command, stdin=theirs.fileno(), env=environment)
        atexit.register(self.end)

    def end(self) -> None:
        self._ours.close()
        self._process.wait()

    def run(self, arguments: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        """The program with these arguments and exactly this environment, in a session of its own and without input.

        FAKE_KILL in the environment runs it by `fakes/killed.py`.
        """
        script = str(WARM.with_name("killed.py")) if "FAKE_KILL" in environment else ""
        wanted = {"arguments": arguments, "environment": environment, "folder": str(Path.cwd()), "script": script}
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err, Path(os.devnull).open() as given:
            message = json.dumps(wanted).encode()
            descriptors = [given.fileno(), out.fileno(), err.fileno()]
            try:
                sent = socket.send_fds(self._ours, [message], descriptors)
                assert sent == len(message)
                status = int(self._ours.recv(64))
            except BaseException:
                # What comes back later is no answer to the next run.
                warm.cache_clear()
                self._process.send_signal(signal.SIGKILL)
                raise
            texts = []
            for stream in (out, err):
                stream.seek(0)
                texts.append(stream.read().decode())
        return subprocess.CompletedProcess([*arguments], os.waitstatus_to_exitcode(status), *texts)


@functools.cache
def warm() -> Interpreter:
    return Interpreter()
