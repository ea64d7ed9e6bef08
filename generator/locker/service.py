"""Requests to Azure's blob service, signed, and tried again within bounds of number and time.

Plain REST on `requests`, and nothing of azure-storage-blob, whose models and pipeline take more time than the requests
of an upload (docs/locker.md has the figures); the tests compare with it.
Source: https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from http import HTTPStatus
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

import requests

from ..connections import Connections
from ..records import record
from ..version import __version__
from .address import Address
from .signing import Signature

VERSION = "2021-12-02"
"""Of the interface: names that XML cannot hold come percent-encoded, and a block may have 4,000 MiB."""
_NEVER_AGAIN = (HTTPStatus.NOT_IMPLEMENTED, HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)


@record
class Limits:
    """Of each request."""

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


@record
class Answer:
    """Of a request that was done. Names of headers may be written in any case."""

    headers: Mapping[str, str]
    content: bytes


class Stopped(Exception):  # noqa: N818 - named by what happened
    """The work has been given up, so the request is not tried again."""


class ServiceError(Exception):
    """The service, or what is in between, answered with an error. `code` is Azure's word for it, if it is Azure."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


class Service:
    """One container of the service. `stop` ends waiting for a next try; requests may come from several threads."""

    def __init__(self, address: Address, signature: Signature, limits: Limits, connections: int) -> None:
        self.stop = threading.Event()
        self._url = f"{address.account_url}/{address.container}"
        self._account_url = f"{address.account_url}/"
        self._signature = signature
        self._limits = limits
        self._session = requests.Session()
        for scheme in ("https://", "http://"):
            self._session.mount(scheme, Connections(hosts=1, at_once=connections))
        # Proxies and CA files are those of the environment, looked up once instead of for each request.
        self._settings = self._session.merge_environment_settings(address.account_url, {}, None, None, None)

    def send(
        self, method: str, name: str = "", query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None, content: bytes = b"", *, tries: int | None = None,
        about_account: bool = False,
    ) -> Answer:  # fmt: skip
        """One request about a blob, or without a name about the container, or about the account.

        Raises ServiceError, Stopped, NoToken, and OSError (which those of `requests` are) when there is no answer.
        """
        url = self._account_url if about_account else f"{self._url}/{quote(name)}" if name else self._url
        if query:
            url += "?" + urlencode(query, quote_via=quote)
        tries = min(tries or self._limits.tries, self._limits.tries)
        deadline = time.monotonic() + self._limits.total_s
        for count in range(tries):
            try:
                response = self._once(method, url, headers or {}, content)
            except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError) as error:
                failure: Exception = error
                asked = None
            else:
                if response.ok and response.status_code < HTTPStatus.MULTIPLE_CHOICES:
                    return Answer(response.headers, response.content)
                failure = _error_of(response)
                if not _is_passing(response.status_code):
                    raise failure
                asked = _retry_after_s(response)
            if count + 1 < tries:
                self._pause(asked or self._limits.pause_s * 2**count, deadline, failure)
        raise failure

    def _once(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> requests.Response:
        response = self._exchange(method, url, headers, content)
        if response.status_code == HTTPStatus.UNAUTHORIZED and self._signature.challenged(response.headers):
            response = self._exchange(method, url, headers, content)
        return response

    def _exchange(self, method: str, url: str, headers: Mapping[str, str], content: bytes) -> requests.Response:
        """Prepared here and not by the session, which would add cookies and what a .netrc says."""
        headers = {
            "User-Agent": f"cycleforge/{__version__}", "x-ms-version": VERSION, "Accept": "application/xml", **headers
        }  # fmt: skip
        request = requests.Request(method, url, headers=headers, data=content, auth=self._signature).prepare()
        timeout = (self._limits.connect_s, self._limits.silence_s)
        return self._session.send(request, timeout=timeout, allow_redirects=False, **self._settings)

    def _pause(self, seconds: float, deadline: float, failure: Exception) -> None:
        if time.monotonic() > deadline:
            raise Stopped(f"no success within {self._limits.total_s:g} s") from failure
        if self.stop.wait(min(seconds, self._limits.longest_pause_s)):
            raise Stopped("given up") from failure


def _is_passing(status: int) -> bool:
    """Whether another try may succeed."""
    if status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS):
        return True
    return status >= HTTPStatus.INTERNAL_SERVER_ERROR and status not in _NEVER_AGAIN


def _retry_after_s(response: requests.Response) -> float | None:
    """What the server asks for; Azure writes seconds, not dates."""
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, ValueError):
        return None


def _error_of(response: requests.Response) -> ServiceError:
    """Format: https://learn.microsoft.com/rest/api/storageservices/status-and-error-codes2"""
    code, message = response.headers.get("x-ms-error-code", ""), ""
    try:
        body = ElementTree.fromstring(response.content)  # noqa: S314 - of the server we signed in to; expat has limits
        if body.tag == "Error":
            code, message = code or body.findtext("Code") or "", body.findtext("Message") or ""
    except (ElementTree.ParseError, ValueError, LookupError):
        pass  # no body, or the page of something in between
    return ServiceError(response.status_code, code, message or response.reason or "")
