"""The smallest resource manager: what a test puts into it, by path, over TLS on the loopback."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from azure.core.credentials import AccessToken

from generator.azure.clouds import Cloud
from generator.azure.session import Session
from tests.locker.certificate import Certificate

ME = "00000000-0000-0000-0000-000000000001"
SECRET = "the-token-of-this-test"
Reply = tuple[int, object, dict[str, str]]


class Credential:
    """Gives the same token, and counts."""

    def __init__(self) -> None:
        self.given = 0

    def get_token(self, *scopes: str, claims: str | None = None, **_: Any) -> AccessToken:
        self.given += 1
        return AccessToken(SECRET, int(time.time()) + 3600)


class Small:
    """`replies` by method and path with query, each in turn, the last one for ever."""

    def __init__(self, url: str) -> None:
        self.url, self.asked, self.replies = url, [""][:0], dict[str, list[Reply]]()
        self.gate: threading.Barrier | None = None
        """Requests that are answered only when as many have come."""

    def put(self, path: str, body: object, status: int = 200, **headers: str) -> None:
        reply = (status, body, {name.replace("_", "-"): value for name, value in headers.items()})
        self.replies.setdefault(path, []).append(reply)

    def session(self, credential: Credential | None = None) -> Session:
        return Session(Cloud("AzureCloud", self.url, self.url, False), credential or Credential(), ME)


@contextmanager
def serving(certificate: Certificate) -> Iterator[Small]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            self.rfile.read(size)
            small.asked.append(f"{self.command} {self.path}")
            if small.gate is not None:
                small.gate.wait(10)
            waiting = small.replies.get(self.path.partition("?")[0]) or [(404, {}, {})]
            status, body, headers = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            """Quiet."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.socket = certificate.server_context().wrap_socket(http.socket, server_side=True)
    small = Small(f"https://127.0.0.1:{http.server_address[1]}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield small
    finally:
        http.shutdown()
        thread.join()
        http.server_close()
