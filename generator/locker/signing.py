"""How a request to the blob service is signed: with the account key, a shared access signature, or a login's token.

Each is an `AuthBase` of `requests`: it gets every request as it is about to be sent.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import field
from email.utils import formatdate
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

from requests import PreparedRequest
from requests.auth import AuthBase

from ..records import record

if TYPE_CHECKING:
    from azure.core.credentials import TokenCredential

SCOPE = "https://storage.azure.com/.default"
_EARLY_S = 300.0
"""So long before its end a token is replaced."""
_TENANT = re.compile(r"authorization_uri=\"?https://[^/\s\"]+/([0-9A-Za-z.-]+)")
_SIGNED_HEADERS = (
    "content-encoding", "content-language", "content-length", "content-md5", "content-type", "date",
    "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
)  # fmt: skip


class NoToken(Exception):  # noqa: N818 - named by what happened
    """The login that worked before gives no token any more; the text says why."""


class Signature(AuthBase):
    """One way to sign."""

    def challenged(self, headers: Mapping[str, str]) -> bool:
        """Whether it can answer a refusal (401), so that the request should be sent once more."""
        return False


@record
class SharedKey(Signature):
    """The key of the account.

    Source: https://learn.microsoft.com/rest/api/storageservices/authorize-with-shared-key
    """

    account: str
    key: str = field(repr=False)
    """In base64."""

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the date and the header that proves who asks."""
        request.headers["x-ms-date"] = formatdate(usegmt=True)
        digest = hmac.digest(base64.b64decode(self.key), self._text(request).encode(), hashlib.sha256)
        request.headers["Authorization"] = f"SharedKey {self.account}:{base64.b64encode(digest).decode('ascii')}"
        return request

    def _text(self, request: PreparedRequest) -> str:
        headers = {name.lower(): str(value).strip() for name, value in request.headers.items()}
        if headers.get("content-length") == "0":
            del headers["content-length"]
        parts = urlsplit(str(request.url))
        query = sorted((name.lower(), value) for name, value in parse_qsl(parts.query, keep_blank_values=True))
        return "\n".join([
            str(request.method),
            *(headers.get(name, "") for name in _SIGNED_HEADERS),
            *(f"{name}:{headers[name]}" for name in sorted(headers) if name.startswith("x-ms-")),
            f"/{self.account}{parts.path}",
            *(f"{name}:{value}" for name, value in query),
        ])  # fmt: skip


@record
class Sas(Signature):
    """A shared access signature: `sv=…&sig=…`."""

    signature: str = field(repr=False)

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add it to the address."""
        url = str(request.url)
        request.url = f"{url}{'&' if '?' in url else '?'}{self.signature}"
        return request


class Login(Signature):
    """A credential of azure-identity, whose tokens are used until shortly before they end."""

    def __init__(self, credential: TokenCredential) -> None:
        self._credential = credential
        self._lock = threading.Lock()
        self._tenant: str | None = None
        self._token, self._until = "", 0.0

    def token(self) -> str:
        """A token that is valid for some minutes; raises NoToken."""
        from azure.core.exceptions import AzureError

        with self._lock:
            if time.time() > self._until:
                try:
                    got = self._credential.get_token(SCOPE, tenant_id=self._tenant)
                except (AzureError, ValueError) as error:
                    raise NoToken(str(error)) from error
                self._token, self._until = got.token, got.expires_on - _EARLY_S
            return self._token

    def __call__(self, request: PreparedRequest) -> PreparedRequest:
        """Add the token."""
        request.headers["Authorization"] = f"Bearer {self.token()}"
        return request

    def challenged(self, headers: Mapping[str, str]) -> bool:
        """An account of another tenant than that of the login names it in its refusal.

        Source: https://learn.microsoft.com/rest/api/storageservices/authorize-with-azure-active-directory#bearer-challenge
        """
        found = _TENANT.search(headers.get("WWW-Authenticate", ""))
        if found is None or found[1] in ("common", self._tenant):
            return False
        with self._lock:
            self._tenant, self._until = found[1], 0.0
        return True
