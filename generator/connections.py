"""Connections of `requests` to one service, which share what they trust.

Otherwise each of them reads the certificates of all authorities anew: 16 ms for those that come with certifi, as often
as there are questions at once.
"""

from __future__ import annotations

import ssl
import threading
from pathlib import Path
from typing import Any

from requests import PreparedRequest
from requests.adapters import DEFAULT_CA_BUNDLE_PATH, HTTPAdapter
from urllib3.util import create_urllib3_context

Verify = bool | str | None


class Connections(HTTPAdapter):
    """What `requests` does, with one TLS context for all connections; a file of authorities is read once."""

    def __init__(self, *, hosts: int, at_once: int) -> None:
        self._lock = threading.Lock()
        self._contexts: dict[str, ssl.SSLContext | None] = {}
        super().__init__(pool_connections=hosts, pool_maxsize=at_once)

    def build_connection_pool_key_attributes(
        self, request: PreparedRequest, verify: Verify, cert: str | tuple[str, str] | None = None
    ) -> Any:
        """The way that `requests` documents for a TLS context of one's own."""
        host, tls = super().build_connection_pool_key_attributes(request, verify, cert)  # type: ignore[arg-type]
        context = self._context(request.url, verify)
        if context is None:
            return host, tls
        read = ("ca_certs", "ca_cert_dir")
        return host, {name: value for name, value in tls.items() if name not in read} | {"ssl_context": context}

    def cert_verify(self, conn: Any, url: str, verify: Verify, cert: Any) -> None:
        """Names the file to each connection, unless it has been read; a proxy that speaks TLS itself needs it, too."""
        has_tls_proxy = conn.proxy is not None and conn.proxy.scheme == "https"
        if has_tls_proxy or self._context(url, verify) is None:
            super().cert_verify(conn, url, verify, cert)  # type: ignore[no-untyped-call]

    def _context(self, url: str | None, verify: Verify) -> ssl.SSLContext | None:
        """None where there is nothing to read, or it cannot be read: that then fails in the words of `requests`."""
        if not verify or not (url or "").lower().startswith("https"):
            return None
        path = DEFAULT_CA_BUNDLE_PATH if verify is True else verify
        with self._lock:
            if path not in self._contexts:
                self._contexts[path] = _trusting(path)
            return self._contexts[path]


def _trusting(path: str) -> ssl.SSLContext | None:
    context = create_urllib3_context()
    try:
        if Path(path).is_dir():
            context.load_verify_locations(capath=path)
        else:
            context.load_verify_locations(cafile=path)
    except OSError:
        return None
    return context
