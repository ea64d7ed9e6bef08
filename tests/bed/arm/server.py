"""The port: TLS for whoever speaks TLS, and CONNECT for whoever takes it for a proxy (HTTPS_PROXY).

As a proxy it leads the hosts of Azure's public cloud to itself, so that programs which know these by heart (MSAL asks
login.microsoftonline.com about every other authority, `az` replaces the public cloud's) never leave the machine. Other
hosts are refused.
Source: RFC 9110, section 9.3.6 (CONNECT)
"""

from __future__ import annotations

import json
import socket
import ssl
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.locker.certificate import HOST, self_signed

from .exchange import Answer, Asked
from .tokens import HOSTS

PROXIED = (*HOSTS, "management.azure.com", "graph.microsoft.com", "localhost")
_TLS = 0x16
"""First byte of a TLS handshake (RFC 8446, section 5.1)."""


class StandIn(Protocol):
    """Who answers behind the port."""

    refused: list[str]

    def answer(self, asked: Asked, authorization: str | None) -> Answer:
        """The answer to a request; LostError when there is none."""


Stand = TypeVar("Stand", bound=StandIn)


class LostError(Exception):
    """The connection is closed without an answer."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1
    disable_nagle_algorithm = True
    arm: StandIn
    context: ssl.SSLContext

    def setup(self) -> None:
        if self.request.recv(1, socket.MSG_PEEK)[:1] != bytes([_TLS]):
            self._connect()
        plain = self.request
        self.request = self.context.wrap_socket(plain, server_side=True)
        self.server.open.add(self.request)  # type: ignore[attr-defined]
        super().setup()

    def _connect(self) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = self.request.recv(1)
            if not piece:
                raise ConnectionError("closed before CONNECT")
            head += piece
        method, target, _ = head.split(b"\r\n")[0].decode().split(" ")
        host = target.partition(":")[0]
        if method != "CONNECT" or host not in PROXIED:
            self.arm.refused.append(f"{method} {target}: not a host of the stand-in")
            self.request.sendall(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            raise ConnectionError(f"{method} {target}")
        self.request.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")

    def finish(self) -> None:
        with suppress(OSError, ValueError):
            super().finish()
        self.server.open.discard(self.request)  # type: ignore[attr-defined]
        self.request.close()

    def handle(self) -> None:
        with suppress(LostError, OSError):
            super().handle()

    def answer(self) -> None:
        """One request; what the stand-in itself cannot do must not look like a lost connection."""
        try:
            self._answer()
        except (LostError, OSError):
            raise
        except Exception as error:
            self.arm.refused.append(f"{self.command} {self.path}: {''.join(traceback.format_exception(error))}")
            self.send_error(500, type(error).__name__)

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", "0"))
        content = self.rfile.read(length)
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() != "authorization"}
        is_json = "json" in headers.get("content-type", "")
        body: Any = _read(content) if is_json and content else content or None
        query = dict(parse_qsl(parts.query, keep_blank_values=True))
        base = f"https://{self.headers['Host']}"
        asked = Asked(self.command, unquote(parts.path).replace("//", "/"), query, body, headers, base=base)
        answer = self.arm.answer(asked, self.headers.get("Authorization"))
        content = answer.content
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        if content:
            self.send_header("Content-Type", "application/json; charset=utf-8")
        if answer.status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_HEAD = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - as http.server calls them

    def log_message(self, *_: object) -> None:
        """Quiet."""


def _read(content: bytes) -> Any:
    """JSON; `az` writes one key without quotes, and Azure takes it.

    Source: `JsonCTemplatePolicy` in Azure/azure-cli:src/azure-cli/azure/cli/command_modules/resource/custom.py
    """
    return json.loads(content.replace(b", template:{", b', "template":{', 1))


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    request_queue_size = 128

    def __init__(self, at: tuple[str, int], handler: type[_Handler]) -> None:
        self.open: set[ssl.SSLSocket] = set()
        super().__init__(at, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away, a handshake that failed."""


@contextmanager
def serving(folder: Path, make: Callable[[int, Path], Stand], at: tuple[str, int] = (HOST, 0)) -> Iterator[Stand]:
    """Serve what `make` returns for a port and a certificate; port 0 is a free one."""
    made = self_signed(folder, PROXIED)

    class Handler(_Handler):
        context = made.server_context()

    server = _Server(at, Handler)
    stand = make(server.server_address[1], made.certificate)
    Handler.arm = stand
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield stand
    finally:
        server.shutdown()
        thread.join()
        for connection in list(server.open):  # kept alive by clients that have not closed theirs
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        server.server_close()
