"""Asks Azure's resource manager: Microsoft's clients write the requests, one pipeline sends them.

The clients are not left to send them themselves. Their typed answers drop what they do not know and take an answer
without a list for an empty one, and what is written first can also be printed, compared and refused. The pipeline sends
what is declared in `requests/` as well: bounded tries, no logging, nothing registered behind the user's back, nothing
to another host, and no change where only questions may be put.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import urlsplit

from ..version import __version__
from .refusals import NotAsked, Refused
from .session import Session

if TYPE_CHECKING:
    from azure.core.pipeline import PipelineResponse
    from azure.core.polling import LROPoller
    from azure.core.rest import HttpRequest, HttpResponse
    from azure.mgmt.core import ARMPipelineClient
    from azure.mgmt.resource.deployments import DeploymentsMgmtClient
    from azure.mgmt.resource.features import FeatureClient
    from azure.mgmt.resource.locks import ManagementLockClient
    from azure.mgmt.resource.resources import ResourceManagementClient
    from azure.mgmt.resource.subscriptions import SubscriptionClient

    Begun = LROPoller[Mapping[str, Any]]

CONNECT_S, ANSWER_S = 10, 90
"""A validation of a whole deployment takes tens of seconds until it answers."""
TRIES = 4
POLL_S = 5.0
"""Between two looks at what Azure works at, where it does not say when to look."""
CONNECTIONS = 32
_Result = TypeVar("_Result")
RESOURCES, _DEPLOYMENTS, _SUBSCRIPTIONS = "2021-04-01", "2025-04-01", "2022-12-01"
_FEATURES, _LOCKS = "2021-07-01", "2016-09-01"
"""The api-versions of the clients."""


class Clients:
    """Of one session; safe for threads. Only those that may change something send what does."""

    def __init__(self, session: Session, *, may_change: bool) -> None:
        self._session = session
        self._sender = _sender(session, may_change=may_change)

    @cached_property
    def resources(self) -> ResourceManagementClient:
        """Providers, resource groups, single resources by id, tags."""
        from azure.mgmt.resource.resources import ResourceManagementClient

        return ResourceManagementClient(**self._writing(RESOURCES))

    @cached_property
    def deployments(self) -> DeploymentsMgmtClient:
        from azure.mgmt.resource.deployments import DeploymentsMgmtClient

        return DeploymentsMgmtClient(**self._writing(_DEPLOYMENTS))

    @cached_property
    def subscriptions(self) -> SubscriptionClient:
        from azure.mgmt.resource.subscriptions import SubscriptionClient

        arguments = self._writing(_SUBSCRIPTIONS)
        del arguments["subscription_id"]
        return SubscriptionClient(**arguments)

    @cached_property
    def features(self) -> FeatureClient:
        from azure.mgmt.resource.features import FeatureClient

        return FeatureClient(**self._writing(_FEATURES))

    def locks(self, subscription: str) -> ManagementLockClient:
        from azure.mgmt.resource.locks import ManagementLockClient

        return ManagementLockClient(**self._writing(_LOCKS) | {"subscription_id": subscription})

    @property
    def subscription(self) -> str:
        return self._session.subscription

    def _writing(self, api_version: str) -> dict[str, Any]:
        """What makes a client that writes requests and sends none."""
        return {
            "credential": self._session,
            "subscription_id": self._session.subscription,
            "base_url": self._session.cloud.resource_manager,
            "api_version": api_version,
            "policies": [],
            "pipeline": _Writing(),
        }

    def write(self, method: str, path_and_query: str, body: object) -> NoReturn:
        """What is declared, written as the clients do it."""
        from azure.core.rest import HttpRequest

        address = self._session.cloud.resource_manager + path_and_query.replace("{subscription}", self.subscription)
        _Writing().run(HttpRequest(method, address, json=body))

    def written(self, write: Callable[[Clients], object]) -> HttpRequest:
        """The request that a call has a client write; ValueError where a name in it would lead elsewhere."""
        try:
            result = write(self)
            if isinstance(result, Iterable):  # a list writes its request when its first item is wanted
                next(iter(result), None)
        except _WrittenError as found:
            if any(part in ("", ".", "..") for part in urlsplit(found.request.url).path.split("/")[1:]):
                raise ValueError(f"not a path of Azure: {found.request.url}") from None
            return found.request
        raise TypeError(f"{write} writes no request")

    def send(self, request: HttpRequest, *, only_asks: bool = False) -> PipelineResponse[HttpRequest, HttpResponse]:
        """What came back and was no error; raises Refused and NotAsked."""
        answer: Any = self._sender.send_request(request, _return_pipeline_response=True, only_asks=only_asks)
        return answer  # type: ignore[no-any-return]

    def follow(self, address: str) -> PipelineResponse[HttpRequest, HttpResponse]:
        from azure.core.rest import HttpRequest

        return self.send(HttpRequest("GET", address))

    def begun(self, answer: PipelineResponse[HttpRequest, HttpResponse]) -> Begun:
        """What an answer has begun, perhaps done already; raises Refused and NotAsked."""
        from azure.core.polling import LROPoller
        from azure.mgmt.core.polling.arm_polling import ARMPolling

        leads = {"azure-asyncoperation", "location"} & {each.casefold() for each in answer.http_response.headers}
        if answer.http_response.status_code == 202 and not leads:
            raise NotAsked("Azure started an operation and does not say where to follow it")
        return outcome(lambda: LROPoller(self._sender, answer, _result_of, ARMPolling(POLL_S)))

    def close(self) -> None:
        """Give the connections back."""
        self._sender.close()


class _WrittenError(Exception):
    """Carries a request out of a client."""

    def __init__(self, request: HttpRequest) -> None:
        super().__init__(request.url)
        self.request = request


class _Writing:
    """A pipeline that leads nowhere."""

    def run(self, request: HttpRequest, **_: Any) -> NoReturn:
        raise _WrittenError(request)


def finished(begun: Begun, limit_s: float) -> Mapping[str, Any]:
    """What it gave. Raises Refused when it has failed, NotAsked when it takes longer than the limit."""
    outcome(lambda: begun.wait(limit_s))
    if not begun.done():
        raise NotAsked(f"Azure has not finished within {limit_s:.0f} s; it continues in Azure")
    return outcome(begun.result) or {}


def outcome(of: Callable[[], _Result]) -> _Result:
    """What polling gives, in our words."""
    from azure.core.exceptions import HttpResponseError
    from azure.core.polling.base_polling import OperationFailed

    try:
        return of()
    except HttpResponseError as error:
        if isinstance(error.inner_exception, OperationFailed) and error.response is not None:
            raise Refused(error.response.status_code or 200, body_of(error.response)) from None
        raise NotAsked("Azure's answer about the operation does not have the documented form") from None


def _result_of(answer: PipelineResponse[HttpRequest, HttpResponse]) -> Mapping[str, Any]:
    """The result at a `Location`, which may be that it has failed."""
    body = body_of(answer.http_response)
    if str(body.get("status")).casefold() in ("failed", "canceled"):
        raise Refused(answer.http_response.status_code, body)
    return body


def body_of(response: Any) -> Mapping[str, Any]:
    """The object in an answer; empty where there is none."""
    body = response.json() if response.content.strip() else {}
    return body if isinstance(body, dict) else {"value": body}


# ---------------------------------------------------------------- the pipeline


def _sender(session: Session, *, may_change: bool) -> ARMPipelineClient[HttpRequest, HttpResponse]:
    import requests
    from azure.core.pipeline.policies import HeadersPolicy, RequestIdPolicy, UserAgentPolicy
    from azure.core.pipeline.transport import RequestsTransport
    from azure.mgmt.core import ARMPipelineClient
    from azure.mgmt.core.policies import ARMChallengeAuthenticationPolicy

    from ..connections import Connections
    from .policies import Answers, Bounded, Guard

    connections = requests.Session()
    connections.mount("https://", Connections(hosts=2, at_once=CONNECTIONS))
    policies = [
        Guard(session.cloud.host, may_change=may_change),
        Answers(session),
        RequestIdPolicy(),
        HeadersPolicy({"Accept": "application/json"}),
        UserAgentPolicy(f"cycleforge/{__version__}", user_agent_use_env=False),
        Bounded(retry_total=TRIES, retry_connect=1, retry_read=1, retry_status=TRIES, retry_backoff_max=10),
        ARMChallengeAuthenticationPolicy(session, session.cloud.scope),
    ]
    transport = RequestsTransport(
        session=connections, session_owner=True, connection_timeout=CONNECT_S, read_timeout=ANSWER_S
    )
    return ARMPipelineClient(session.cloud.resource_manager, policies=policies, transport=transport)
