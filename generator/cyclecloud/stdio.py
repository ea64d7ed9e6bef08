"""Standard input and output as the two ends of a connection, for the ProxyCommand of ssh: bytes, and nothing else."""

from __future__ import annotations

import os
import select
import socket
import threading
from contextlib import suppress

_PIECE = 65536


def carry(connection: socket.socket, source: int = 0, target: int = 1) -> None:
    """Pass bytes both ways until the other side closes, or whoever reads `target` has gone.

    The end of `source` closes only the way there, so that an answer still comes.
    """
    threading.Thread(target=_there, args=(connection, source, target), daemon=True).start()
    with suppress(OSError):
        while data := connection.recv(_PIECE):
            _write(target, data)


def _there(connection: socket.socket, source: int, target: int) -> None:
    with suppress(OSError):
        while data := os.read(source, _PIECE):
            connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
    _until_nobody_reads(target)
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)


def _until_nobody_reads(target: int) -> None:
    """Wait for ssh to be gone: a host that is lost would never end the connection. A file is always read."""
    watched = select.poll()
    watched.register(target, 0)
    with suppress(OSError):
        watched.poll()


def _write(target: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(target, rest) :]
