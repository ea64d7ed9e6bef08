"""One pipeline of azure-core to the resource manager: bounded tries, no logging, nothing registered by itself."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from ..records import record
from ..version import __version__
from .challenge import claims_of
from .refusals import NotAsked, Refused
from .session import Session

if TYPE_CHECKING:
    from azure.core.rest import HttpRequest, HttpResponse
    from azure.mgmt.core import ARMPipelineClient

CONNECT_S, ANSWER_S = 10, 90
"""A validation of a whole deployment takes tens of seconds until it answers."""
TRIES = 4
LONGEST_PAUSE_S = 60
"""A `Retry-After` above it is not obeyed but reported."""
CONNECTIONS = 32


@record
class Answer:
    """What came back and was no error."""

    status: int
    body: Mapping[str, Any]
    headers: Mapping[str, str]


class Transport:
    """Sends requests; safe for threads. `address` in `send` is complete, and always at the resource manager."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._client = _client(session)

    def send(self, method: str, address: str, body: object = None) -> Answer:
        """The answer; raises Refused and NotAsked."""
        from azure.core.exceptions import AzureError
        from azure.core.rest import HttpRequest

        self._session.get_token(self._session.cloud.scope)
        request: HttpRequest = HttpRequest(method, address, json=body)
        try:
            response = self._client.send_request(request)
            content = response.read()
        except AzureError as error:
            raise NotAsked(f"{self._session.cloud.host} {_reason(error)}") from None
        headers = {name.casefold(): value for name, value in response.headers.items()}
        # The policy of the pipeline has answered the challenge once, with a token that does not meet it either.
        claims = claims_of(headers.get("www-authenticate", "")) if response.status_code == 401 else None
        if claims is not None:
            raise self._session.unmet(claims)
        return _answer(response.status_code, headers, content, self._session.cloud.host)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()


def _client(session: Session) -> ARMPipelineClient[HttpRequest, HttpResponse]:
    import requests
    from azure.core.pipeline.policies import HeadersPolicy, RetryPolicy, UserAgentPolicy
    from azure.core.pipeline.transport import RequestsTransport
    from azure.mgmt.core import ARMPipelineClient
    from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy

    from ..connections import Connections

    class Bounded(RetryPolicy[Any, Any]):
        """Waits as long as the service says, up to a bound."""

        def is_retry(self, settings: dict[str, Any], response: Any) -> bool:
            """Whether the request is sent again."""
            pause = self.get_retry_after(response)
            return not (pause and pause > LONGEST_PAUSE_S) and bool(super().is_retry(settings, response))

    connections = requests.Session()
    connections.mount("https://", Connections(hosts=2, at_once=CONNECTIONS))
    retry = Bounded(retry_total=TRIES, retry_connect=1, retry_read=1, retry_status=TRIES, retry_backoff_max=10)
    policies = [
        HeadersPolicy({"Accept": "application/json"}),
        UserAgentPolicy(f"cycleforge/{__version__}", user_agent_use_env=False),
        retry,
        ARMChallengeAuthenticationPolicy(session, session.cloud.scope),
    ]
    transport = RequestsTransport(
        session=connections, session_owner=True, connection_timeout=CONNECT_S, read_timeout=ANSWER_S
    )
    return ARMPipelineClient(session.cloud.resource_manager, policies=policies, transport=transport)


def _answer(status: int, headers: Mapping[str, str], content: bytes, host: str) -> Answer:
    """What an answer says; anything that Azure would not say is nobody's answer."""
    body: object = {}
    if content.strip():
        try:
            body = json.loads(content)
        except (ValueError, RecursionError):
            raise NotAsked(f"what answered for {host} is not Azure: HTTP {status} without JSON") from None
    if 300 <= status < 400:
        raise NotAsked(f"what answered for {host} is not Azure: it leads elsewhere (HTTP {status})")
    if status >= 400:
        raise Refused(status, body)
    if not isinstance(body, dict):
        body = {"value": body}
    return Answer(status, body, headers)


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
