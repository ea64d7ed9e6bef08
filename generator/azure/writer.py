"""Changes things in Azure. Only `deploy`, `delete` and `preflight --fix` make one, after they have asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .operations import Operation, finished
from .reader import Reader
from .request import Call


class Writer(Reader):
    """A Reader that also sends what is declared to change something. Nothing of that is sent twice or remembered."""

    def begin(self, call: Call) -> Operation:
        """Send it; what it began may go on for long. Raises `Refused` and `NotAsked`."""
        if call.request.only_asks:
            raise TypeError(f"{call.request.method} {call.request.path} only asks")
        answer = self._send(call)
        self._changed(call)
        is_made = call.request.method == "PUT"
        resource = call.address(self.subscription, self.session.cloud.resource_manager) if is_made else ""
        return Operation(self._follow, answer, resource)

    def do(self, call: Call, limit_s: float = 600) -> Mapping[str, Any]:
        """Send it and wait until it is done."""
        return finished(self.begin(call), limit_s)

    def _changed(self, call: Call) -> None:
        with self._lock:
            self._asked.append(call)
            self._known.clear()
