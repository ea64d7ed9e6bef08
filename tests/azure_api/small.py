"""What answers in Azure's place, over TLS on the loopback: what a test puts into it, by path.

Only for what `tests/bed/arm` cannot play, as it answers what Azure documents: pages of a proxy, 302, broken JSON, lists
that are none, a link to another host, nobody at the port, and answers that wait for one another.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from azure.core.credentials import AccessToken

from generator.azure.clouds import Cloud
from generator.azure.session import Session
from tests.locker.certificate import Certificate

ME = "00000000-0000-0000-0000-000000000001"
SECRET = "the-token-of-this-test"
Reply = tuple[int, object, Mapping[str, str]]


class Credential:
    """Gives the same token."""

    def get_token(self, *scopes: str, claims: str | None = None, **_: Any) -> AccessToken:
        return AccessToken(SECRET, int(time.time()) + 3600)


class Small:
    """The replies to each path, in turn; the last one stays."""

    def __init__(self, url: str) -> None:
        self.url, self.replies = url, dict[str, list[Reply]]()
        self.asked: list[str] = []
        self.gate: threading.Barrier | None = None
        """Requests that are answered only when as many have come."""

    def put(self, path: str, body: object, status: int = 200, **headers: str) -> None:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        self.replies.setdefault(path, []).append((status, body, given))

    def session(self) -> Session:
        return Session(Cloud("AzureCloud", self.url, self.url, False), Credential(), ME)


@contextmanager
def serving(certificate: Certificate) -> Iterator[Small]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            if small.gate is not None:
                small.gate.wait(10)
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            path = self.path.partition("?")[0]
            small.asked.append(f"{self.command} {path}")
            waiting = small.replies.get(path, [(404, {}, {})])
            status, body, headers = waiting.pop(0) if len(waiting) > 1 else waiting[0]
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
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
