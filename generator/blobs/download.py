"""One file from the network: https only, with limits on time, size and tries. Proxies are those of the environment."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import IO, Any
from urllib.parse import urlsplit

from msgspec import Struct

from ..version import __version__

Progress = Callable[[int, int | None], None]
"""Called with the bytes so far and, where the server says so, of the whole."""
_CHUNK_BYTES = 64 * 1024
_RETRIED = frozenset({408, 425, 429, 500, 502, 503, 504})
_LONGEST_PAUSE_S = 30.0


class Limits(Struct, frozen=True):
    """How long and how often. The last two fields are for the tests, whose server is on the loopback without TLS."""

    answer_s: float = 30
    """Silence of the server after which a try ends."""
    total_s: float = 600
    """For all tries of one file."""
    tries: int = 3
    pause_s: float = 2
    """Before the second try; doubles after it. A server's Retry-After counts more, up to half a minute."""
    schemes: tuple[str, ...] = ("https",)
    address: Callable[[str], str] = str


class DownloadFailed(Exception):  # noqa: N818 - named by what happened
    """A download that did not succeed; `hint` says what to do, if there is more than to do it elsewhere."""

    def __init__(self, reason: str, hint: str | None = None, *, retry: bool = False, pause_s: float | None = None):
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.retry = retry
        self.pause_s = pause_s


def download(url: str, limit_bytes: int, limits: Limits, progress: Progress = lambda *_: None) -> bytes:
    """The file at an address; raises DownloadFailed."""
    deadline = time.monotonic() + limits.total_s
    address = limits.address(url)
    for attempt in range(1, limits.tries + 1):
        try:
            return _once(address, limit_bytes, limits, deadline, progress)
        except DownloadFailed as failure:
            pause = min(failure.pause_s or limits.pause_s * 2 ** (attempt - 1), _LONGEST_PAUSE_S)
            if not failure.retry or attempt == limits.tries or time.monotonic() + pause > deadline:
                tries = f" ({attempt} tries)" if attempt > 1 else ""
                raise DownloadFailed(f"{failure.reason}{tries}", failure.hint) from failure
            time.sleep(pause)
    raise AssertionError("no attempt was allowed")


class _SchemesOnly(urllib.request.HTTPRedirectHandler):
    """Follows a redirect only to an address that would have been allowed in the first place."""

    def __init__(self, schemes: tuple[str, ...]) -> None:
        self._schemes = schemes

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        """The request that follows, or DownloadFailed."""
        try:
            _allowed(newurl, self._schemes)
        except DownloadFailed:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _allowed(url: str, schemes: tuple[str, ...]) -> None:
    if urlsplit(url).scheme not in schemes:
        raise DownloadFailed(f"the address is not https: {url}")


def _once(url: str, limit_bytes: int, limits: Limits, deadline: float, progress: Progress) -> bytes:
    _allowed(url, limits.schemes)
    opener = urllib.request.build_opener(_SchemesOnly(limits.schemes))
    request = urllib.request.Request(url, headers={"User-Agent": f"cycleforge/{__version__}"})  # noqa: S310 - checked
    host = urlsplit(url).hostname
    try:
        with opener.open(request, timeout=limits.answer_s) as answer:
            return _body(answer, limit_bytes, deadline, limits, progress)
    except urllib.error.HTTPError as error:
        with error:
            raise _refused(error) from error
    except urllib.error.URLError as error:
        raise _unreachable(host, error.reason, limits) from error
    except (OSError, http.client.HTTPException) as error:
        raise _unreachable(host, error, limits) from error


def _body(answer: Any, limit_bytes: int, deadline: float, limits: Limits, progress: Progress) -> bytes:
    length = answer.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    if total is not None and total > limit_bytes:
        raise DownloadFailed(f"the server offers {total} bytes, more than the {limit_bytes} expected")
    parts, size = [], 0
    while part := answer.read1(_CHUNK_BYTES):
        parts.append(part)
        size += len(part)
        if size > limit_bytes:
            raise DownloadFailed(f"the server sends more than the {limit_bytes} bytes expected")
        if time.monotonic() > deadline:
            raise DownloadFailed(f"not complete after {limits.total_s:g} s: {size} bytes")
        progress(size, total)
    if total is not None and size != total:
        raise DownloadFailed(f"the connection ended after {size} of {total} bytes", retry=True)
    return b"".join(parts)


def _refused(error: urllib.error.HTTPError) -> DownloadFailed:
    text = f"the server answered HTTP {error.code} {error.reason or ''}".rstrip()
    if error.code in (404, 410):
        return DownloadFailed(f"{text}: the file is no longer there")
    if error.code in (401, 403, 407):
        return DownloadFailed(f"{text}; a proxy may be in between")
    after = error.headers.get("Retry-After", "") if error.headers else ""
    pause = float(after) if after.isdecimal() else None
    return DownloadFailed(text, retry=error.code in _RETRIED, pause_s=pause)


def _unreachable(host: str | None, reason: object, limits: Limits) -> DownloadFailed:
    if isinstance(reason, ssl.SSLCertVerificationError):
        text = f"the certificate of {host} is not accepted: {reason.verify_message}"
        return DownloadFailed(text, "if a proxy of your site inspects TLS, give its CA file in SSL_CERT_FILE")
    if isinstance(reason, TimeoutError):
        return DownloadFailed(f"{host} did not answer for {limits.answer_s:g} s", retry=True)
    words = reason.strerror if isinstance(reason, OSError) and reason.strerror else str(reason) or type(reason).__name__
    # A name that does not exist will not exist in two seconds either.
    is_lasting = isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME
    return DownloadFailed(f"no connection to {host}: {words}", retry=not is_lasting)
