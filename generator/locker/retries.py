"""Throttling and network errors are tried again, within bounds of number and time, and never once we have stopped."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from azure.core.exceptions import AzureError
from azure.storage.blob import ExponentialRetry


@dataclass(frozen=True)
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


class Stopped(AzureError):  # noqa: N818 - named by what happened
    """The work has been given up, so the request is not tried again."""


class BoundedRetries(ExponentialRetry):
    """The SDK's policy (408, 5xx, broken connections), with 429, Retry-After, and an end to pauses and tries.

    The option `content_hook` of a request is called with the content of the answer that succeeded; the SDK's own hook
    is lost when a request is tried again.
    """

    def __init__(self, limits: Limits, stop: threading.Event) -> None:
        more = limits.tries - 1
        super().__init__(retry_total=more, retry_connect=more, retry_read=more, retry_status=more)
        self._limits = limits
        self._stop = stop

    def send(self, request: Any) -> Any:
        """Send, and send again after 429, which the SDK takes for an answer."""
        deadline = time.monotonic() + self._limits.total_s
        keep = request.context.options.pop("content_hook", None)
        request.context.options.setdefault("retry_hook", lambda **_: self._in_time(deadline))
        for count in range(self._limits.tries):
            response = super().send(request)  # type: ignore[no-untyped-call]
            if response.http_response.status_code != HTTPStatus.TOO_MANY_REQUESTS or count == self._limits.tries - 1:
                break
            self._in_time(deadline)
            self._pause(_retry_after_s(response.http_response) or self._limits.pause_s * 2**count)
        if keep is not None and response.http_response.status_code == HTTPStatus.OK:
            keep(response.http_response.body())
        return response

    def get_backoff_time(self, settings: dict[str, Any]) -> float:
        """Seconds until the next try: what the server asked for, else twice as long each time."""
        response = getattr(settings["history"][-1], "http_response", None) if settings["history"] else None
        asked = _retry_after_s(response) if response is not None else None
        return asked or self._limits.pause_s * 2.0 ** (settings["count"] - 1)

    def sleep(self, settings: dict[str, Any], transport: Any) -> None:
        """Wait before the next try, but not once we have stopped."""
        self._pause(self.get_backoff_time(settings))

    def _pause(self, seconds: float) -> None:
        if self._stop.wait(min(seconds, self._limits.longest_pause_s)):
            raise Stopped("given up")

    def _in_time(self, deadline: float) -> None:
        if time.monotonic() > deadline:
            raise Stopped(f"no success within {self._limits.total_s:g} s")


def _retry_after_s(response: Any) -> float | None:
    """What the server asks for; Azure writes seconds, not dates."""
    try:
        return max(0.0, float(response.headers["Retry-After"]))
    except (KeyError, TypeError, ValueError):
        return None
