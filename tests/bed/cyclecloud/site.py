"""The site as a test uses it: one port, one administrator, and what goes wrong."""

from __future__ import annotations

import base64
import hashlib
import ssl
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.bed.arm.exchange import Answer, Asked, NotInTableError, RefusedError
from tests.bed.arm.faults import Fault, Faults
from tests.bed.arm.server import LostError, serving
from tests.locker.certificate import HOST

from .exchange import FailureError, Form
from .state import State
from .table import row_of

USER, PASSWORD = "ccadmin", "s3cret-of-the-test-A1"
LOCK_TRIES, LOCK_WITHIN_S, LOCKED_S = 5, 60.0, 300.0
"""Source: https://learn.microsoft.com/azure/cyclecloud/how-to/user-authentication"""


class SiteStandIn:
    """CycleCloud's REST interface."""

    def __init__(self, port: int, certificate: Path, address: str = HOST) -> None:
        self.port, self.address, self.certificate = port, address, certificate
        der = ssl.PEM_cert_to_DER_cert(certificate.read_text())
        digest = hashlib.sha256(der).hexdigest().upper()
        self.fingerprint = ":".join(digest[at : at + 2] for at in range(0, 64, 2))
        self.renewed()

    def renewed(self) -> SiteStandIn:
        """As at the start: no cluster, nothing asked, nothing going wrong."""
        self.state = State()
        self.requests: list[Asked] = []
        self.refused: list[str] = []
        """What no table has, and what the stand-in itself could not do."""
        self.faults = Faults()
        self.answer_s = 0.0
        self.form: Form = "json"
        self.clock: Callable[[], float] = time.monotonic
        self.wrong: list[float] = []
        """When logins failed that count."""
        self.locked_until = 0.0
        self.locked_status = 401
        """What a locked account is told is not documented: 401 or 403."""
        return self

    # ---- for tests

    @property
    def changes(self) -> list[str]:
        """Requests that change something."""
        return [each.line for each in self.requests if each.method == "POST"]

    @property
    def lines(self) -> list[str]:
        """All requests."""
        return [each.line for each in self.requests]

    def fail(self, method: str, path: str, failure: FailureError, times: int = 1) -> None:
        """Answer the next such requests with an error."""
        self.faults.add(Fault(method, path, times, failure))

    def lose(self, method: str, path: str, *, after_effect: bool, times: int = 1) -> None:
        """Close the connection instead of answering."""
        self.faults.add(Fault(method, path, times, None, "after" if after_effect else "before"))

    # ---- for the server

    def answer(self, asked: Asked, authorization: str | None) -> Answer:
        """The answer to a request; LostError when there is none."""
        if self.answer_s:
            time.sleep(self.answer_s)
        self.requests.append(asked)
        answer = self._answer(asked, authorization)
        asked.status = answer.status
        if self.faults.take(asked, "after"):
            asked.status = 0
            raise LostError
        return answer

    def _answer(self, asked: Asked, authorization: str | None) -> Answer:
        fault = self.faults.take(asked, "before")
        if fault is not None and fault.refused is None:
            raise LostError
        try:
            with self.state.lock:
                return self._allowed(asked, authorization, fault)
        except FailureError as failure:
            failure.form = self.form
            return failure.answer
        except RefusedError as refused:
            return refused.answer
        except NotInTableError as error:
            self.refused.append(str(error))
            return FailureError(400, "NotInTable", str(error)).answer
        except Exception as error:
            self.refused.append(f"{asked.line}: the stand-in failed: {''.join(traceback.format_exception(error))}")
            return FailureError(500, "StandInFailed", type(error).__name__).answer

    def _allowed(self, asked: Asked, authorization: str | None, fault: Fault | None) -> Answer:
        if fault is not None and fault.refused is not None:
            raise fault.refused
        row, parts = row_of(asked)
        self._logged_in(authorization)
        answer = row.answers(self.state, asked, parts)
        return answer if isinstance(answer, Answer) else Answer(200, answer)

    def _logged_in(self, authorization: str | None) -> None:
        now = self.clock()
        is_locked = now < self.locked_until
        if authorization == "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode() and not is_locked:
            self.wrong.clear()
            return
        if authorization is not None and not is_locked:
            if self.wrong and now - self.wrong[-1] > LOCK_WITHIN_S:
                self.wrong.clear()
            self.wrong.append(now)
            if len(self.wrong) >= LOCK_TRIES:
                self.locked_until = now + LOCKED_S
        challenge = {"WWW-Authenticate": 'Basic realm="CycleCloud"'}
        raise FailureError(self.locked_status if is_locked else 401, "UnauthorizedException", "Unauthorized", challenge)


@contextmanager
def running_site(folder: Path, address: str = HOST, port: int = 0) -> Iterator[SiteStandIn]:
    """A stand-in, on a free port if none is given; `folder` takes its certificate."""
    with serving(folder, lambda port, made: SiteStandIn(port, made, address), (address, port)) as site:
        yield site
