"""One exchange with the site over TLS: a connection of its own, and a certificate that is the pinned one or trusted.

Nothing is sent before the certificate is known to be right, and no redirect is followed: the header has the password.

Microsoft documents no body of an error. Those of a running server are JSON with `Exception`, `Message` and `Detail`:
https://github.com/Azure/az-hop/issues/221. A proxy's or the web server's own errors are pages.
"""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import ssl
from collections.abc import Mapping
from http.client import HTTPException
from typing import Literal, NoReturn

from msgspec import Struct
from urllib3 import BaseHTTPResponse
from urllib3.connection import HTTPSConnection
from urllib3.exceptions import HTTPError
from urllib3.exceptions import SSLError as NotPinned

from ..version import __version__
from ..words.terminal import printable
from .requests import Call

CONNECT_S = 10.0
ANSWER_S = 60.0
MOST_BYTES = 64 * 1024 * 1024
"""1,000 nodes with all their attributes are a few MiB."""
_LONGEST = 2000
"""Characters of a text of an error."""


class NotAsked(Exception):  # noqa: N818 - named by what happened
    """No answer as CycleCloud gives it: no connection, a different certificate, a page. The reason holds no secret."""

    def __init__(
        self, reason: str, hint: str | None = None, *, lost: Literal["connecting", "sent"] | None = None
    ) -> None:
        """`lost`: when the connection was lost; None where something else was wrong."""
        super().__init__(reason)
        self.reason, self.hint, self.lost = reason, hint, lost


class LoginRefused(NotAsked):
    """The name or the password is wrong, or the account is locked. It is not tried again."""


class Lost(NotAsked):
    """A change was sent, and its answer was lost: it may have happened or not. It is read back, never sent again."""


class Refused(Exception):  # noqa: N818 - named by what happened
    """CycleCloud answered with an error. Its words are made printable here."""

    def __init__(self, status: int, body: object) -> None:
        found = {str(name).casefold(): value for name, value in body.items()} if isinstance(body, Mapping) else {}
        self.status = status
        self.code = printable(str(found.get("exception") or f"HTTP {status}").rpartition(".")[2])[:_LONGEST]
        said = found.get("message") or (body if isinstance(body, str) else "")
        self.message = printable(" ".join(str(said).split()))[:_LONGEST] or "the answer names no reason"
        super().__init__(f"{self.code}: {self.message}")

    @property
    def is_missing(self) -> bool:
        return self.status == 404


class Login:
    """The administrator of the site. The password is in no text of it."""

    def __init__(self, name: str, password: str) -> None:
        self.name, self._password = name, password

    def __repr__(self) -> str:
        return f"Login({self.name})"

    @property
    def header(self) -> str:
        """For HTTP Basic, the documented way: https://learn.microsoft.com/azure/cyclecloud/how-to/use-rest-api"""
        return "Basic " + base64.b64encode(f"{self.name}:{self._password}".encode()).decode()


class Answer(Struct, frozen=True):
    status: int
    body: object
    """Decoded JSON; the text where it is not JSON; None where it is empty."""
    is_json: bool
    headers: Mapping[str, str]
    """Names in lower case."""


class Wire:
    """The place of the site, and how it proves that it is the site."""

    def __init__(self, address: str, port: int, certificate_sha256: str | None) -> None:
        self.address, self.port = address, port
        self._pin = _plain(certificate_sha256) if certificate_sha256 else None

    @property
    def place(self) -> str:
        return self.address if self.port == 443 else f"{self.address}:{self.port}"

    def exchange(self, call: Call, login: Login | None) -> Answer:
        """Send it once. Raises NotAsked; Lost where it was sent and changes something."""
        connection, sent = self._connected(), False
        try:
            headers = {"Accept": call.request.accept, "User-Agent": f"cycleforge/{__version__}", "Connection": "close"}
            headers |= {"Authorization": login.header} if login else {}
            connection.timeout, sent = ANSWER_S, True
            connection.request(call.request.method, call.address, headers=headers, preload_content=False)
            return self._read(connection.getresponse())
        except (OSError, HTTPError, HTTPException) as error:
            self._lost(error, sent=sent, changes=not call.request.only_asks)
        finally:
            connection.close()

    def prove(self) -> None:
        """Look at the certificate, and send nothing. Raises NotAsked."""
        self._connected().close()

    def shown(self) -> str:
        """The fingerprint of the certificate that is shown, for a caller that knows by other means whose it is."""
        try:
            shown = ssl.get_server_certificate((self.address, self.port), timeout=CONNECT_S)
        except OSError as error:
            self._lost(error, sent=False, changes=False)
        return colons(hashlib.sha256(ssl.PEM_cert_to_DER_cert(shown)).hexdigest())

    def _connected(self) -> HTTPSConnection:
        """A pinned certificate needs no authority and no name: it is the very one."""
        needs = "CERT_NONE" if self._pin else "CERT_REQUIRED"
        connection = HTTPSConnection(
            self.address, self.port, timeout=CONNECT_S, cert_reqs=needs, assert_fingerprint=self._pin
        )
        try:
            connection.connect()
        except NotPinned:
            connection.close()
            raise NotAsked(
                f"{self.place} shows a different certificate ({self.shown()}) from the one that the deployment "
                f"recorded ({colons(self._pin or '')}); nothing was sent to it",
                "either someone is in between, or the site has a new certificate. `sudo cycleforge-bootstrap status` "
                "on the server prints the site's own; if it is that one, `cycleforge deploy NAME --rerun-first-boot` "
                "records it",
            ) from None
        except (OSError, HTTPError) as error:
            connection.close()
            self._lost(error, sent=False, changes=False)
        return connection

    def _read(self, answer: BaseHTTPResponse) -> Answer:
        content = answer.read(MOST_BYTES + 1, decode_content=False)
        if len(content) > MOST_BYTES:
            raise NotAsked(f"the answer of {self.place} is longer than {MOST_BYTES // 2**20} MiB")
        headers = {name.casefold(): value for name, value in answer.headers.items()}
        if not content.strip():
            return Answer(answer.status, None, False, headers)
        try:
            return Answer(answer.status, json.loads(content), True, headers)
        except (ValueError, RecursionError):
            return Answer(answer.status, content.decode("utf-8", "replace"), False, headers)

    def _lost(self, error: BaseException, *, sent: bool, changes: bool) -> NoReturn:
        error = error.__cause__ or error if isinstance(error, HTTPError) else error
        if sent and changes:
            reason = f"{self.place} {_reason(error)} after the request was sent; it may have had its effect"
            raise Lost(reason, lost="sent") from None
        # A closed port or a missing route stays so for the next second; the caller waits for ssh or a VPN instead.
        if not sent and isinstance(error, ConnectionRefusedError | TimeoutError):
            raise NotAsked(f"{self.place} {_reason(error)}") from None
        raise NotAsked(f"{self.place} {_reason(error)}", lost="sent" if sent else "connecting") from None


def colons(digest: str) -> str:
    text = digest.upper()
    return ":".join(text[at : at + 2] for at in range(0, len(text), 2))


def _plain(fingerprint: str) -> str:
    text = fingerprint.replace(":", "").strip().lower()
    if len(text) != 64 or set(text) - set("0123456789abcdef"):
        raise NotAsked("the deployment recorded an invalid fingerprint of the site's certificate")
    return text


def _reason(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"shows a certificate that is not trusted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return "does not speak TLS as the site does"
    if isinstance(error, TimeoutError):
        return "did not answer in time"
    if isinstance(error, socket.gaierror):
        return "is not known to the name server"
    if isinstance(error, OSError) and error.strerror:
        return f"was not reached: {error.strerror.lower()}"
    return "ended the connection"
