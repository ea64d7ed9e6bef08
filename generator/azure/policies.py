"""What holds for every request to the resource manager and for its answer.

Imports azure-core, so that only what asks Azure imports it.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from azure.core.exceptions import AzureError
from azure.core.pipeline import PipelineRequest, PipelineResponse
from azure.core.pipeline.policies import HTTPPolicy, RetryPolicy, SansIOHTTPPolicy
from azure.core.rest import HttpRequest, HttpResponse

from .refusals import NotAsked, Refused
from .session import Session, claims_of

LONGEST_PAUSE_S = 60
"""A `Retry-After` above it is not obeyed but reported."""


class Guard(SansIOHTTPPolicy[HttpRequest, HttpResponse]):
    """Lets nothing out to another host, and no change where only questions may be put."""

    def __init__(self, host: str, *, may_change: bool) -> None:
        super().__init__()
        self._host, self._may_change = host, may_change

    def on_request(self, request: PipelineRequest[HttpRequest]) -> None:
        """Raises TypeError for a change, NotAsked for a link of an answer that leads elsewhere."""
        sent = request.http_request
        is_question = request.context.options.pop("only_asks", False) and sent.method == "POST"
        if not (sent.method == "GET" or is_question or self._may_change):
            raise TypeError(f"a Reader does not send {sent.method} {urlsplit(sent.url).path}")
        parts = urlsplit(sent.url)
        if parts.scheme != "https" or parts.netloc.casefold() != self._host.casefold():
            raise NotAsked(f"an answer leads from {self._host} to another host, {parts.netloc}")


class Bounded(RetryPolicy[HttpRequest, HttpResponse]):
    """Waits as long as the service says, up to a bound."""

    def is_retry(self, settings: dict[str, Any], response: Any) -> bool:
        pause = self.get_retry_after(response)
        return not (pause and pause > LONGEST_PAUSE_S) and bool(super().is_retry(settings, response))


class Answers(HTTPPolicy[HttpRequest, HttpResponse]):
    """Gives back what Azure has answered; raises Refused for its errors, NotAsked for what is not Azure's answer."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self._session, self._host = session, session.cloud.host

    def send(self, request: PipelineRequest[HttpRequest]) -> PipelineResponse[HttpRequest, HttpResponse]:
        try:
            answer = self.next.send(request)
        except AzureError as error:
            raise NotAsked(f"{self._host} {_reason(error)}") from None
        self._must_be_azures(answer.http_response)
        return answer

    def _must_be_azures(self, response: HttpResponse) -> None:
        status = response.status_code
        # The policy of the pipeline has answered the challenge once, with a token that does not meet it either.
        claims = claims_of(response.headers.get("www-authenticate", "")) if status == 401 else None
        if claims is not None:
            raise self._session.unmet(claims)
        try:
            body = response.json() if response.content.strip() else {}
        except (ValueError, RecursionError):
            raise NotAsked(f"{self._host} answered HTTP {status} without JSON, so it is not Azure") from None
        if 300 <= status < 400:
            raise NotAsked(f"{self._host} redirects (HTTP {status}), so it is not Azure")
        if status >= 400:
            raise Refused(status, body)


def _reason(error: BaseException) -> str:
    """Why there was no answer, without the address, which may hold a signature."""
    for each in _chain(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return f"shows a certificate that is not trusted: {each.verify_message}"
        if isinstance(each, TimeoutError) or "Timeout" in type(each).__name__:
            return "did not answer in time"
        if isinstance(each, socket.gaierror):
            return "is not known to the name server"
        if isinstance(each, ConnectionError) and each.strerror:
            return f"was not reached: {each.strerror.lower()}"
    return "ended the connection, or was not reached"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Every error behind an error, however requests and urllib3 have wrapped it, the innermost first."""
    seen: list[BaseException] = []
    waiting: list[object] = [error]
    while waiting:
        each = waiting.pop()
        if isinstance(each, BaseException) and each not in seen:
            seen.append(each)
            waiting += [each.__cause__, each.__context__, *each.args]
            waiting += [getattr(each, name, None) for name in ("reason", "inner_exception")]
    yield from reversed(seen)
