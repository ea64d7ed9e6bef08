"""How the server says no. Microsoft documents no body of an error; each form that it may have is played.

`json`: Azure/az-hop#221 shows a running server's. `page`: that of the web server, Tomcat, which answers before the
application does. `empty`: what the documentation says ("No Content").
"""

from __future__ import annotations

from typing import Literal

from tests.bed.arm.exchange import Answer, RefusedError

Form = Literal["json", "page", "empty"]
_PAGE = "<!doctype html><html><head><title>HTTP Status {0}</title></head><body><h1>HTTP Status {0}</h1></body></html>"


class FailureError(RefusedError):
    """An answer with an error."""

    form: Form = "json"

    def __init__(self, status: int, kind: str, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(status, kind, message, headers=headers)
        self.kind, self.message = kind, message

    @property
    def answer(self) -> Answer:
        """As it is sent."""
        if self.form == "empty":
            return Answer(self.status, None, self.headers)
        if self.form == "page":
            return Answer(self.status, _PAGE.format(self.status).encode(), self.headers)
        body = {
            "Exception": f"com.cyclecomputing.cloud.exceptions.{self.kind}",
            "Message": self.message,
            "Detail": "Please see /opt/cycle_server/logs/cycle_server.log for lines tagged with request-1274.",
        }
        return Answer(self.status, body, self.headers)


def missing(what: str) -> FailureError:
    """404."""
    return FailureError(404, "NotFoundException", f"{what} not found")


def invalid(text: str) -> FailureError:
    """400, with the name that Azure/az-hop#221 shows."""
    return FailureError(400, "InvalidAttributeException", text)
