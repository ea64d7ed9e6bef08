"""A request as it was understood, an answer, and the errors that Azure Resource Manager documents.

Source of the form of an error: https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors
and `ErrorResponse` in Azure/azure-rest-api-specs:specification/common-types/resource-management/v3/types.json
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Asked:
    """One request; `status` is what it was answered with, 0 when the answer was lost."""

    method: str
    path: str
    query: dict[str, str] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names in lower case; the Authorization header is not kept."""
    caller: str = ""
    """Client id of who asked."""
    status: int = 0
    row: str = ""
    """Source of the row of the table that allowed it; empty if none did."""
    base: str = ""
    """Scheme and host that the client spoke to."""

    @property
    def is_from_az(self) -> bool:
        """Whether a command of Microsoft's `az` sent it that has chosen path and api-version itself; `az rest` has not.

        Source: `send_raw_request` and `get_mgmt_service_client` in Azure/azure-cli:src/azure-cli-core/azure/cli/core
        """
        return "AZURECLI/" in self.headers.get("user-agent", "") and self.headers.get("commandname") != "rest"

    @property
    def line(self) -> str:
        """Method and path, as tests compare them."""
        return f"{self.method} {self.path}"


@dataclass
class Answer:
    """What goes back."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        """The bytes of the body."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


class RefusedError(Exception):
    """An answer with an error."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Sequence[Mapping[str, Any]] = (),
        *,
        headers: Mapping[str, str] | None = None,
        additional_info: Sequence[Mapping[str, Any]] = (),
        target: str | None = None,
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.status = status
        self.headers = dict(headers or {})
        self.error: dict[str, Any] = {"code": code, "message": message}
        if target is not None:
            self.error["target"] = target
        if details:
            self.error["details"] = [dict(each) for each in details]
        if additional_info:
            self.error["additionalInfo"] = [dict(each) for each in additional_info]

    @property
    def answer(self) -> Answer:
        """As it is sent."""
        return Answer(self.status, {"error": self.error}, self.headers)


class NotInTableError(AssertionError):
    """A request that no row allows: the test is wrong, or the code under test is."""
