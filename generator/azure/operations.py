"""What takes its time: Azure answers at once and says where to look.

Source: https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations. azure-core has a poller,
but it takes `Retry-After: 0` for no header, waits without end, and shows nothing in between.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from .refusals import NotAsked, Refused
from .transport import LONGEST_PAUSE_S, Answer

_PAUSE_S = 5.0
_DONE, _FAILED = "succeeded", ("failed", "canceled", "cancelled")
Follow = Callable[[str], Answer]
"""Sends a GET to an address that an answer names."""


class Operation:
    """One of them, from the answer that began it; `resource` is the address of what a PUT makes."""

    def __init__(self, follow: Follow, begun: Answer, resource: str = "") -> None:
        self._follow, self._resource = follow, resource
        self._status_at = begun.headers.get("azure-asyncoperation", "")
        self._location = begun.headers.get("location", "")
        self._last = begun
        self.state = "accepted"
        self.is_done = self._is_over(begun)
        if self.is_done:
            self.state = "succeeded"

    @property
    def pause_s(self) -> float:
        """How long Azure wants to be left alone before the next look."""
        text = self._last.headers.get("retry-after", "").strip()
        return min(float(text), LONGEST_PAUSE_S) if text.isdecimal() else _PAUSE_S

    @property
    def result(self) -> Mapping[str, Any]:
        """What the operation gave, once it is done."""
        return self._last.body

    def look(self) -> bool:
        """Look once; whether it is done. Raises Refused when it has failed."""
        if self.is_done:
            return True
        self._last = self._follow(self._status_at or self._location or self._resource)
        self.state = _state(self._last.body) or ("running" if self._last.status == 202 else _DONE)
        if self.state in _FAILED:
            raise Refused(self._last.status, self._last.body)
        if self._status_at:
            self.is_done = self.state == _DONE
            if self.is_done and (self._location or self._resource):
                self._last = self._follow(self._resource or self._location)
        elif self._location:
            self.is_done = self._last.status != 202
        else:
            self.is_done = self.state == _DONE
        return self.is_done

    def _is_over(self, begun: Answer) -> bool:
        """Whether the first answer is the last one."""
        if self._status_at or (self._location and begun.status == 202):
            return False
        if begun.status == 202:
            raise NotAsked("Azure has begun something and does not say where to look")
        state = _state(begun.body)
        if state in _FAILED:
            raise Refused(begun.status, begun.body)
        return not self._resource or not state or state == _DONE


def finished(operation: Operation, limit_s: float, pause: Callable[[float], None] = time.sleep) -> Mapping[str, Any]:
    """Wait for it; raises Refused when it fails, NotAsked when it takes longer than the limit."""
    end = time.monotonic() + limit_s
    while not operation.is_done:
        if time.monotonic() + operation.pause_s > end:
            raise NotAsked(f"Azure has not finished within {limit_s:.0f} s; it goes on working")
        pause(operation.pause_s)
        operation.look()
    return operation.result


def _state(body: Mapping[str, Any]) -> str:
    """State of an operation, or of the resource that it makes; lower case, empty where nothing says it."""
    properties = body.get("properties")
    state = body.get("status")
    if not isinstance(state, str) and isinstance(properties, dict):
        state = properties.get("provisioningState")
    return state.casefold() if isinstance(state, str) else ""
