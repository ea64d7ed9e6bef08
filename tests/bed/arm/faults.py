"""What a test lets go wrong: refusals, throttling, lost answers. Each is used up after `times` requests.

Or by number: something happens at the n-th request, and from there on there may be no connection any more.

arm.fail("PUT", "*/virtualMachines/*", RefusedError(409, "Conflict", "…"))
arm.throttle(times=2, retry_after="0")
arm.lose("PUT", "*/deployments/*", after_effect=True)
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from .exchange import Asked, RefusedError

When = Literal["before", "after"]


@dataclass
class Fault:
    """What happens to requests of this method and path; both are patterns."""

    method: str
    path: str
    times: int
    refused: RefusedError | None = None
    """None: the answer is lost."""
    when: When = "before"

    def concerns(self, asked: Asked) -> bool:
        """Whether it is still due for this request."""
        return (
            self.times > 0
            and fnmatchcase(asked.method, self.method)
            and fnmatchcase(asked.path.lower(), self.path.lower())
        )


@dataclass
class Faults:
    """All of a server."""

    due: list[Fault] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, fault: Fault) -> None:
        """One more."""
        with self._lock:
            self.due.append(fault)

    def take(self, asked: Asked, when: When) -> Fault | None:
        """The first one that concerns the request, used once."""
        with self._lock:
            found = next((each for each in self.due if each.when == when and each.concerns(asked)), None)
            if found is not None:
                found.times -= 1
            return found


@dataclass
class Moment:
    """The request of this number, counted from one, before or after its effect, and what happens then."""

    number: int
    when: When
    happens: Callable[[], object]
    is_end: bool
    """Whether neither it nor any later request is answered."""


@dataclass
class Moments:
    """The number of the request that is answered now, and the one moment that a test has asked for."""

    asked: int = 0
    due: Moment | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next(self) -> int:
        """The number of one more request."""
        with self._lock:
            self.asked += 1
            return self.asked

    def is_lost(self, number: int, when: When) -> bool:
        """Whether this request gets no answer; what is due at it happens before that."""
        due = self.due
        if due is None:
            return False
        if number == due.number and when == due.when:
            due.happens()
            return due.is_end
        return due.is_end and number > due.number


def throttled(retry_after: str) -> RefusedError:
    """429: https://learn.microsoft.com/azure/azure-resource-manager/management/request-limits-and-throttling"""
    return RefusedError(
        429,
        "TooManyRequests",
        "The request is being throttled as the limit has been reached for the subscription.",
        headers={"Retry-After": retry_after},
    )
