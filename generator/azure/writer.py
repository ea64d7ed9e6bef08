"""Changes things in Azure. Only `deploy`, `delete` and `preflight --fix` make one, after they have asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .clients import finished
from .reader import Reader
from .request import Call

if TYPE_CHECKING:
    from azure.core.pipeline import PipelineResponse
    from azure.core.rest import HttpRequest, HttpResponse

    from .clients import Begun


class Writer(Reader):
    """A Reader that also sends what is declared to change something. Nothing of that is sent twice or remembered."""

    may_change = True

    def send(self, call: Call) -> PipelineResponse[HttpRequest, HttpResponse]:
        """Send it, and look no further after what it began. Raises `Refused` and `NotAsked`."""
        if call.only_asks:
            raise TypeError(f"{call.az or call.write} only asks")
        request = self._noted(call)
        answer = self._clients.send(request)
        self.forget()
        return answer

    def begin(self, call: Call) -> Begun:
        """Send it; what it began may go on for long."""
        return self._clients.begun(self.send(call))

    def do(self, call: Call, limit_s: float = 600) -> Mapping[str, Any]:
        """Send it and wait until it is done."""
        return finished(self.begin(call), limit_s)
