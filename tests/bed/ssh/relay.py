"""A port that passes bytes on to another one, until the connection is lost."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self


class Relay:
    """Passes `limit` bytes of the client; then both ends are closed, or (`hangs`) nothing passes any more."""

    def __init__(self, address: str, port: int, limit: int, *, hangs: bool = False) -> None:
        self._to, self._limit, self._hangs = (address, port), limit, hangs
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._over = threading.Event()

    def __enter__(self) -> Self:
        self._threads = [threading.Thread(target=self._serve, daemon=True)]
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def _serve(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._to)
            for thread in (
                threading.Thread(target=self._pass, args=(near, far, self._limit), daemon=True),
                threading.Thread(target=self._pass, args=(far, near, None), daemon=True),
            ):
                self._threads.append(thread)
                thread.start()

    def _pass(self, source: socket.socket, target: socket.socket, limit: int | None) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(65536):
                passed += len(data)
                if limit is not None and passed > limit:
                    break
                target.sendall(data)
        if limit is not None and passed > limit and self._hangs:
            self._over.wait()
        for each in (source, target):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
