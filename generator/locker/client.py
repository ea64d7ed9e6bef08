"""Azure's client for one container: our limits, one set of connections, and nothing but the credential signs."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from azure.core.exceptions import IncompleteReadError, ServiceRequestError, ServiceResponseError
from azure.core.pipeline.transport import RequestsTransport
from azure.storage.blob import ContainerClient
from msgspec import Struct

from ..connections import Connections
from ..version import __version__
from .address import Address
from .credentials import Credential

CONNECTIONS = 16
VERSION = "2021-12-02"
"""Of the interface, older than the package's own: accounts outside of the public cloud learn new ones late."""
PIECE_BYTES = 2 * 2**20
"""Read at once of a download; times the number of connections, this bounds the memory."""
_NEVER_AGAIN = (HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)


class Limits(Struct, frozen=True):
    connect_s: float = 10
    silence_s: float = 60
    """Of the server, after which a try ends."""
    tries: int = 7
    pause_s: float = 0.4
    """Before the second try; doubles after it."""
    longest_pause_s: float = 15
    """Bounds a server's Retry-After, too."""
    total_s: float = 300
    """After this long nothing is tried again."""


class Stopped(Exception):  # noqa: N818 - named by what happened
    """The work has been given up, so the request is not tried again."""


def client(address: Address, credential: Credential, limits: Limits, stop: threading.Event) -> ContainerClient:
    """The client for all threads; `stop` ends waiting for a next try."""
    logging.getLogger("azure").setLevel(logging.CRITICAL + 1)  # what is wrong is in our own messages, once
    session = requests.Session()
    for scheme in ("https://", "http://"):
        session.mount(scheme, Connections(hosts=1, at_once=CONNECTIONS))
    # Proxies and CA files are those of the environment. A password of .netrc, or a cookie, is never sent.
    found = session.merge_environment_settings(address.account_url, {}, None, None, None)
    session.trust_env, session.proxies = False, found["proxies"]
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    transport = _Patient(
        limits, stop, session=session, connection_verify=found["verify"], connection_timeout=limits.connect_s,
        read_timeout=limits.silence_s,
    )  # fmt: skip
    return ContainerClient(
        address.account_url, address.container, credential, api_version=VERSION, transport=transport, retry_total=0,
        permit_redirects=False, user_agent=f"cycleforge/{__version__}", max_single_get_size=PIECE_BYTES,
        max_chunk_get_size=PIECE_BYTES,
    )  # fmt: skip


class _Patient(RequestsTransport):  # type: ignore[misc] # its module gives names away as Any
    """Sends a request again, within bounds of number and time, where another try may succeed."""

    def __init__(self, limits: Limits, stop: threading.Event, **options: Any) -> None:
        super().__init__(**options)
        self._limits, self._stop = limits, stop

    def send(self, request: Any, **options: Any) -> Any:
        tries = min(options.pop("tries", self._limits.tries), self._limits.tries)
        deadline = time.monotonic() + self._limits.total_s
        for left in reversed(range(tries)):
            pause_s = self._limits.pause_s * 2 ** (tries - left - 1)
            try:
                answer = super().send(request, **options)
            except (ServiceRequestError, ServiceResponseError, IncompleteReadError, requests.RequestException):
                if not left:
                    raise
            else:
                if not left or not _is_passing(answer.status_code):
                    break
                pause_s = _retry_after_s(answer.headers) or pause_s
            if time.monotonic() > deadline:
                raise Stopped(f"no success within {self._limits.total_s:g} s")
            if self._stop.wait(min(pause_s, self._limits.longest_pause_s)):
                raise Stopped("given up")
        return answer


def _is_passing(status: int) -> bool:
    """Whether another try may succeed."""
    if status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS):
        return True
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in _NEVER_AGAIN


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """What the server asks for; Azure writes seconds, not dates."""
    try:
        return max(0.0, float(headers["Retry-After"]))
    except (KeyError, ValueError):
        return None
