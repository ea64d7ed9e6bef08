"""Asks Azure, and can do nothing else: GET, and POSTs that are declared to change nothing."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Self, TypeVar
from urllib.parse import urlsplit

from .clients import CONNECTIONS, Clients, body_of, finished
from .refusals import NotAsked, Refused
from .request import Call
from .session import Session

if TYPE_CHECKING:
    from azure.core.rest import HttpRequest

_PAGES = 500
_Result = TypeVar("_Result")
_Key = tuple[object, ...]


class Reader:
    """Questions of one run; the same question is sent once, whoever asks it, and its answer or failure is shared.

    Every method raises `Refused` and `NotAsked`. All of them may be called by several threads at once.
    """

    may_change = False

    def __init__(self, session: Session) -> None:
        self.session = session
        self._clients = Clients(session, may_change=self.may_change)
        self._lock = threading.Lock()
        self._known: dict[_Key, Future[Any]] = {}
        self._lines: dict[str, None] = {}

    @property
    def subscription(self) -> str:
        return self.session.subscription

    @property
    def lines(self) -> tuple[str, ...]:
        """The `az` lines of what was sent, each once, in the order of their beginning."""
        return tuple(self._lines)

    def line(self, call: Call) -> str:
        """The `az` line that asks, or does, the same."""
        return _line(call, self._clients.written(call.write), self.subscription)

    def get(self, call: Call) -> Mapping[str, Any]:
        return self._once("get", call, lambda request: body_of(self._clients.send(request).http_response))

    def find(self, call: Call) -> Mapping[str, Any] | None:
        """One object, or None where Azure says that there is none of that name."""
        try:
            return self.get(call)
        except Refused as refused:
            if refused.is_missing:
                return None
            raise

    def pages(self, call: Call) -> Sequence[Mapping[str, Any]]:
        return self._once("pages", call, self._pages)

    def find_pages(self, call: Call) -> Sequence[Mapping[str, Any]]:
        """The items of a list; none where Azure says that there is not even what they would belong to."""
        try:
            return self.pages(call)
        except Refused as refused:
            if refused.is_missing:
                return ()
            raise

    def post(self, call: Call, limit_s: float = 600) -> Mapping[str, Any]:
        """The answer to a question that needs a body; one that takes its time is waited for."""

        def ask(request: HttpRequest) -> Mapping[str, Any]:
            return finished(self._clients.begun(self._clients.send(request, only_asks=call.only_asks)), limit_s)

        return self._once("post", call, ask)

    def get_secret(self, call: Call) -> Mapping[str, Any]:
        """The answer to a POST that gives a secret: nothing keeps it."""
        request = self._noted(call)
        return body_of(self._clients.send(request, only_asks=call.only_asks).http_response)

    def together(self, questions: Sequence[Callable[[], _Result]]) -> list[_Result]:
        """Ask several questions at the same time; the first failure in their order is raised when all have ended."""
        if len(questions) < 2:
            return [question() for question in questions]
        with ThreadPoolExecutor(min(len(questions), CONNECTIONS)) as pool:
            futures = [pool.submit(question) for question in questions]
        return [future.result() for future in futures]

    def once(self, what: str, ask: Callable[[], _Result]) -> _Result:
        """What several checks need and one finds out: the first to ask does it, the others wait for it."""
        return self._shared(("once", what), ask)

    def forget(self) -> None:
        """Ask anew whatever is asked from now on."""
        with self._lock:
            self._known.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give the connections back, and the answers, which are large: no further question is put."""
        self._clients.close()
        self.forget()

    def _noted(self, call: Call) -> HttpRequest:
        """What a call sends, from now on among the lines."""
        request = self._clients.written(call.write)
        with self._lock:
            self._lines[_line(call, request, self.subscription)] = None
        return request

    def _once(self, how: str, call: Call, ask: Callable[[HttpRequest], _Result]) -> _Result:
        request = self._noted(call)
        return self._shared((how, request.method, request.url.casefold(), request.content), lambda: ask(request))

    def _shared(self, key: _Key, ask: Callable[[], _Result]) -> _Result:
        with self._lock:
            future: Future[_Result] | None = self._known.get(key)
            is_first = future is None
            if future is None:
                future = self._known[key] = Future()
        if is_first:
            try:
                future.set_result(ask())
            except BaseException as error:
                future.set_exception(error)
        try:
            return future.result()
        finally:
            del future  # a failure knows the frames that it came through, and they would know it

    def _pages(self, request: HttpRequest) -> list[Mapping[str, Any]]:
        path = urlsplit(request.url).path
        body, items = body_of(self._clients.send(request).http_response), []
        for _ in range(_PAGES):
            value = body.get("value")
            if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
                raise NotAsked(f"the answer to {path} is no list")
            items += value
            following = body.get("nextLink")
            if not following:
                return items
            body = body_of(self._clients.follow(str(following)).http_response)
        raise NotAsked(f"the list of {path} has more than {_PAGES} pages")


def _line(call: Call, request: HttpRequest, subscription: str) -> str:
    if call.az:
        return f"{call.az} --subscription {shlex.quote(subscription)}"
    words = ["az", "rest", "--method", request.method.lower(), "--url", request.url]
    return shlex.join([*words, "--body", str(request.content)] if request.content else words)
