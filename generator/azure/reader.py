"""Asks Azure, and can do nothing else: GET, and POSTs that are declared to change nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from .operations import Operation, finished
from .refusals import NotAsked, Refused
from .request import Call
from .session import Session
from .transport import CONNECTIONS, Answer, Transport

_PAGES = 500
_Result = TypeVar("_Result")
_Key = tuple[object, ...]


class Reader:
    """Questions of one run; the same question is sent once, whoever asks it, and its answer or failure is shared.

    Every method raises `Refused` and `NotAsked`. All of them may be called by several threads at once.
    """

    def __init__(self, session: Session) -> None:
        self.session = session
        self._transport = Transport(session)
        self._lock = threading.Lock()
        self._known: dict[_Key, Future[Any]] = {}
        self._asked: list[Call] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def subscription(self) -> str:
        """Its id."""
        return self.session.subscription

    @property
    def asked(self) -> tuple[Call, ...]:
        """What was asked, each question once, in the order of their beginning."""
        return tuple(self._asked)

    def get(self, call: Call) -> Mapping[str, Any]:
        """One object."""
        self._must_be(call, "GET")
        return self._once(("get", call.key), call, lambda: self._send(call).body)

    def find(self, call: Call) -> Mapping[str, Any] | None:
        """One object, or None where Azure says that there is none of that name."""
        try:
            return self.get(call)
        except Refused as refused:
            if refused.is_missing:
                return None
            raise

    def pages(self, call: Call) -> Sequence[Mapping[str, Any]]:
        """The items of a list, of all its pages."""
        self._must_be(call, "GET")
        return self._once(("pages", call.key), call, lambda: self._pages(call))

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
        self._must_be(call, "POST")
        return self._once(
            ("post", call.key), call, lambda: finished(Operation(self._follow, self._send(call)), limit_s)
        )

    def get_secret(self, call: Call) -> Mapping[str, Any]:
        """The answer to a POST that gives a secret: nothing keeps it."""
        self._must_be(call, "POST")
        with self._lock:
            if all(call.key != each.key for each in self._asked):
                self._asked.append(call)
        return self._send(call).body

    def together(self, questions: Sequence[Callable[[], _Result]]) -> list[_Result]:
        """Ask several questions at the same time; the first failure in their order is raised when all have ended."""
        if len(questions) < 2:
            return [question() for question in questions]
        with ThreadPoolExecutor(min(len(questions), CONNECTIONS)) as pool:
            futures = [pool.submit(question) for question in questions]
        return [future.result() for future in futures]

    def once(self, what: str, ask: Callable[[], _Result]) -> _Result:
        """What several checks need and one finds out: the first to ask does it, the others wait for it."""
        return self._once(("once", what), None, ask)

    def forget(self) -> None:
        """Ask anew whatever is asked from now on."""
        with self._lock:
            self._known.clear()

    def close(self) -> None:
        """Give the connections back, and the answers, which are large: no further question is put."""
        self._transport.close()
        self.forget()

    def _must_be(self, call: Call, method: str) -> None:
        if call.request.method != method or not call.request.only_asks:
            raise TypeError(f"a Reader does not send {call.request.method} {call.request.path}")

    def _once(self, key: _Key, call: Call | None, ask: Callable[[], _Result]) -> _Result:
        with self._lock:
            future: Future[_Result] | None = self._known.get(key)
            is_first = future is None
            if future is None:
                future = self._known[key] = Future()
                if call is not None:
                    self._asked.append(call)
        if is_first:
            try:
                future.set_result(ask())
            except BaseException as error:
                future.set_exception(error)
        try:
            return future.result()
        finally:
            del future  # a failure knows the frames that it came through, and they would know it

    def _send(self, call: Call) -> Answer:
        address = call.address(self.subscription, self.session.cloud.resource_manager)
        return self._transport.send(call.request.method, address, call.body)

    def _follow(self, address: str) -> Answer:
        """A GET to an address that Azure has given; a token goes to nobody else."""
        parts, own = urlsplit(address), self.session.cloud
        if parts.scheme != "https" or parts.netloc.casefold() != own.host.casefold():
            raise NotAsked(f"an answer leads from {own.host} to another host, {parts.netloc}")
        return self._transport.send("GET", address)

    def _pages(self, call: Call) -> list[Mapping[str, Any]]:
        answer, items = self._send(call), []
        for _ in range(_PAGES):
            value = answer.body.get("value")
            if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
                raise NotAsked(f"the answer to {call.request.path} is no list")
            items += value
            following = answer.body.get("nextLink")
            if not following:
                return items
            answer = self._follow(str(following))
        raise NotAsked(f"the list of {call.request.path} has more than {_PAGES} pages")
