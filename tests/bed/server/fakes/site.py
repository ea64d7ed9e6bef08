"""A CycleCloud server, an Azure and a locker in one object, which fail as the real ones are known to."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import selectors
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

from tests.bed.server.fakes.azure import Azure
from tests.bed.server.fakes.command_line import CommandLine
from tests.bed.server.fakes.cycle_server import CycleServer
from tests.bed.server.fakes.state import State


class Site(State):
    """State of the fakes, their network side, and a record of every call."""

    def __init__(
        self, root: Path, facts: dict[str, Any], chunks: dict[str, bytes], certificate: Path, scale: float = 1.0
    ) -> None:
        """`certificate` is a PEM file with key and certificate of the portal; `scale` as in `Accounts`."""
        super().__init__(root, facts, chunks, scale)
        self.certificate = certificate
        self.program: int | None = None
        self._azure, self._cycle_server, self.command_line = Azure(self), CycleServer(self), CommandLine(self)
        self.programs: dict[str, Callable[[list[str], dict[str, Any]], dict[str, Any]]] = {
            "cycle_server": self._cycle_server.run,
            "cyclecloud": self.command_line.run,
            "jetpack": _jetpack,
        }
        self._stop = threading.Event()
        self._wake, self._asleep = socket.socketpair()
        self._servers: list[Any] = []
        self._threads: list[threading.Thread] = []

    def start(self, ports: tuple[int, int, int] = (0, 0, 0)) -> None:
        """Listen on three ports, by default free ones, of the loopback interface and begin to import records."""
        site = self

        class Web(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:  # http.server's name
                self.respond(*site.get(self.path, dict(self.headers)))

            def do_PUT(self) -> None:  # http.server's name
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                self.respond(*site.put(self.path, dict(self.headers), body))

            def respond(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        class Programs(StreamRequestHandler):
            def handle(self) -> None:
                # A program that ended with its caller does not send all of it, or does not read the answer any more.
                with contextlib.suppress(OSError, ValueError):
                    words = [self.word() for _ in range(int(self.word()))]
                    answer = site.answer(words)
                    self.wfile.write("".join(f"{text}\0" for text in answer).encode())

            def word(self) -> str:
                word = bytearray()
                while (byte := self.rfile.read(1)) != b"\0":
                    if not byte:
                        raise ValueError("ended early")
                    word += byte
                return word.decode()

        ThreadingTCPServer.daemon_threads = True
        web, programs, portal = (("127.0.0.1", port) for port in ports)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(self.certificate)
        secure = ThreadingHTTPServer(portal, Web)
        secure.socket = tls.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
        self._servers = [ThreadingHTTPServer(web, Web), ThreadingTCPServer(programs, Programs), secure]
        for target in (self._accept, self._import_records):
            thread = threading.Thread(target=target, daemon=True)
            self._threads.append(thread)
            thread.start()
        self.url = f"http://127.0.0.1:{self._servers[0].server_address[1]}"
        self.port = self._servers[1].server_address[1]
        self.portal = f"https://127.0.0.1:{secure.server_address[1]}"

    def stop(self) -> None:
        self._stop.set()
        self._wake.close()
        for thread in self._threads:
            thread.join()
        for server in self._servers:
            server.server_close()

    def _accept(self) -> None:
        """One thread waits for all ports, so that a server on which nothing happens costs nothing."""
        with selectors.DefaultSelector() as ready, self._asleep:
            ready.register(self._asleep, selectors.EVENT_READ)
            for server in self._servers:
                ready.register(server, selectors.EVENT_READ, server)
            while not self._stop.is_set():
                for key, _ in ready.select():
                    if key.data:
                        key.data.handle_request()

    def get(self, target: str, headers: dict[str, str]) -> tuple[int, bytes]:
        """One web request: instance metadata, Resource Manager, blobs, portal."""
        url = urlparse(target)
        asked = {key: values[0] for key, values in parse_qs(url.query).items()}
        with self.lock:
            if url.path.startswith("/metadata/"):
                return self._azure.metadata(url.path, headers)
            if "/deployments/" in url.path:
                return self._azure.deployment(url.path.rsplit("/", 1)[1], headers)
            if asked.get("comp") == "list":
                return self._azure.list_blobs(asked, headers)
            if url.path == "/ui/metadata":
                return (200, b"{}") if self.is_up else (503, b"starting")
            if url.path.startswith("/clusters/"):
                return self._cluster_status(url.path.split("/")[2], headers)
        return 404, b"no such page"

    def put(self, target: str, headers: dict[str, str], body: bytes) -> tuple[int, bytes]:
        path = urlparse(target).path
        if "/deployments/" not in path:
            return 405, b""
        with self.lock:
            return self._azure.write_deployment(path.rsplit("/", 1)[1], headers, body)

    def _cluster_status(self, name: str, headers: dict[str, str]) -> tuple[int, bytes]:
        kind, _, pair = headers.get("Authorization", "").partition(" ")
        user, _, password = base64.b64decode(pair or "").decode().partition(":")
        if kind != "Basic" or not self.accounts.accept(user, password):
            return 401, b"unauthorized"
        return (200, b"{}") if name in self.clusters else (404, b"no such cluster")

    def answer(self, words: list[str]) -> tuple[str, str, str]:
        """What one call of a faked program ends with: its exit status, output and errors."""
        name, folder, process, parent, terminal, *argv = words
        environment = Path(f"/proc/{process}/environ").read_bytes().decode()
        answer = self.call({"name": name, "argv": argv, "folder": folder, "parent": int(parent),
                            "terminal": terminal == "yes", "environment": environment})  # fmt: skip
        status = "hang" if answer.get("hang") else str(answer.get("status", 0))
        return status, answer.get("output", ""), answer.get("errors", "")

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        with self.lock:
            self.calls.append(request)
        argv = request["argv"]
        words = " ".join(word for word in argv if not word.startswith("-"))
        name = f"{request['name']} {words}"
        if self._kill("kill_before", name, request):
            return {"status": 137}
        with self.lock:
            answer = self.programs[request["name"]](argv, request)
        if self._kill("kill_after", name, request):
            return {"status": 137}
        return answer

    def _kill(self, fault: str, name: str, request: dict[str, Any]) -> bool:
        """A power cut at this moment: the bootstrap itself gets SIGKILL."""
        if not getattr(self.faults, fault) or not re.match(getattr(self.faults, fault), name):
            return False
        setattr(self.faults, fault, "")
        os.kill(request["parent"], signal.SIGKILL)
        return True

    def _import_records(self) -> None:
        while not self._stop.is_set():
            self._cycle_server.import_records()
            time.sleep(0.01)  # takes less than to wait for the event


def _jetpack(_: list[str], __: dict[str, Any]) -> dict[str, Any]:
    return {"status": 1, "errors": "jetpack is for nodes, not for the server\n"}
