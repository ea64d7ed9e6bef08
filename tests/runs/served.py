"""The process that commands of `loaded.py` are forked from: `served.py WORD…`, the words of a command like those.

Standard input is a socket. A message is the words of a command in JSON, and three descriptors: standard output and
error, and a pipe which takes a line with the number of its process, and one with the status that `os.waitpid` has.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

from generator.cli import main, process
from generator.cyclecloud.jobs import connection


def serve(like: Sequence[str]) -> None:
    """Until the other side hangs up; in the child of a fork until the command ends."""
    asked = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name in loaded_by(like):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    running: dict[int, int] = {}
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, ended)
    while True:
        ready, _, _ = select.select([asked.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            while running:
                child, status = os.waitpid(-1, os.WNOHANG)
                if not child:
                    break
                tell(running[child], status)
                os.close(running.pop(child))
        if asked.fileno() in ready:
            words, descriptors, _, _ = socket.recv_fds(asked, 2**16, 3)
            if not words:
                return
            out, err, told = descriptors
            child = os.fork()
            if not child:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for stream, each in ((1, out), (2, err)):
                    os.dup2(each, stream)
                os.closerange(3, max(asked.fileno(), woken, wake, out, err, told, *running.values()) + 1)
                become(json.loads(words))
            tell(told, child)
            running[child] = told
            os.close(out)
            os.close(err)


def tell(pipe: int, number: int) -> None:
    """A test that has failed may not listen any more."""
    with suppress(BrokenPipeError):
        os.write(pipe, b"%d\n" % number)


def ended(_: int, __: FrameType | None) -> None:
    """Only a signal that has a handler wakes anybody."""


def become(words: list[str]) -> None:
    """The command as it is installed, which does not pause before it asks again."""
    sys.argv = words
    # Those of the server remember what they were opened on.
    sys.stdout = os.fdopen(1, "w", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    connection.PAUSE_S = 0.1
    process()


def loaded_by(words: Sequence[str]) -> list[str]:
    """Our modules that a command loads. It runs in a process of its own: what it remembers is not for others."""
    read, write = os.pipe()
    if not os.fork():
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        main(words)
        os.write(write, " ".join(name for name in sys.modules if name.startswith("generator.")).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as names:
        found = names.read().split()
    os.wait()
    return found


if __name__ == "__main__":
    serve(sys.argv[1:])
