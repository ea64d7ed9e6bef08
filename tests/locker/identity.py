"""What gives a machine its tokens, on the loopback: the identity endpoint of App Service, and tokens of our own making.

`DefaultAzureCredential` asks such an endpoint when IDENTITY_ENDPOINT and IDENTITY_HEADER are set, before it would go to
169.254.169.254, where a test must never go.
Source: https://learn.microsoft.com/azure/app-service/overview-managed-identity#rest-endpoint-reference
"""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal
from urllib.parse import parse_qs, urlsplit

AUDIENCE = "https://storage.azure.com"
TENANT = "33333333-3333-3333-3333-333333333333"
ISSUER = f"https://sts.windows.net/{TENANT}/"
LIFETIME_S = 3600
_HEADER = "the-header-of-this-test"

Behaviour = Literal["gives", "refuses", "hangs"]


def token(audience: str = AUDIENCE) -> str:
    """A token that `azurite --oauth basic` takes: it looks at issuer, audience and times, not at the signature."""
    now = int(time.time())
    claims = {
        "aud": audience, "iss": ISSUER, "iat": now - 60, "nbf": now - 60, "exp": now + LIFETIME_S,
        "oid": "44444444-4444-4444-4444-444444444444", "tid": TENANT, "ver": "1.0",
    }  # fmt: skip
    return ".".join((_part({"alg": "RS256", "typ": "JWT"}), _part(claims), "c2ln"))


def _part(fields: Mapping[str, object]) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()


class Identity:
    """The endpoint's address, what it does, and for which resources it was asked."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.behaviour: Behaviour = "gives"
        self.audience = AUDIENCE
        """Whom the tokens are for; another one makes tokens that the server refuses."""
        self.asked: list[str] = []
        self._released = threading.Event()

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to find it."""
        return {"IDENTITY_ENDPOINT": self.url, "IDENTITY_HEADER": _HEADER}

    def answer(self, query: Mapping[str, list[str]], header: str | None) -> tuple[int, Mapping[str, object]]:
        """Status and JSON for one request."""
        self.asked.append(query.get("resource", [""])[0])
        if header != _HEADER:
            return 401, {"statusCode": 401, "message": "No Managed Identity found for specified header"}
        if self.behaviour == "hangs":
            self._released.wait()
        if self.behaviour != "gives":
            return 400, {"statusCode": 400, "message": "No User Assigned or Delegated Managed Identity found"}
        expires_on = str(int(time.time()) + LIFETIME_S)
        return 200, {"access_token": token(self.audience), "expires_on": expires_on, "resource": self.asked[-1],
                     "token_type": "Bearer"}  # fmt: skip

    def release(self) -> None:
        """Let requests that hang end."""
        self._released.set()


@contextmanager
def identity() -> Iterator[Identity]:
    """An endpoint on a free port, ended afterwards."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            query = parse_qs(urlsplit(self.path).query)
            status, fields = endpoint.answer(query, self.headers["X-IDENTITY-HEADER"])
            body = json.dumps(fields).encode()
            with suppress(OSError):  # a client that has waited long enough
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = False
    endpoint = Identity(f"http://127.0.0.1:{server.server_address[1]}/msi/token")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.release()
        server.shutdown()
        thread.join()
        server.server_close()
