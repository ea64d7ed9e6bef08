"""The stand-in as a test uses it.

    with running_arm(folder) as arm:                      # a folder for the certificate and a home
        … = arm.environment | {"PATH": arm.path}         # of the command under test; PATH for the stand-in `bicep`
        arm.state.providers["Microsoft.NetApp"]["registrationState"] = "NotRegistered"
        arm.throttle(times=1)
        …run the command…
        assert arm.changes == []                          # nothing was changed
        assert arm.refused == []                          # nothing was asked that Azure does not describe

`arm.renewed()` gives a healthy state and an empty record to the next test, so that one server serves a module. The
state and its forms: state.py. Which requests there are: requests.json, explained in table.py.
"""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from tests.bed.bicep.program import placed

from . import deployments, machines, metadata, policies, resources, rights, stacks, tokens  # noqa: F401 - answers enter themselves
from .answers import ANSWERS, answered
from .exchange import Answer, Asked, NotInTableError, RefusedError
from .faults import Fault, Faults, Moment, Moments, throttled
from .healthy import healthy_state
from .server import LostError, serving
from .state import Caller, State
from .table import row_of

AUDIENCES = ("https://management.azure.com", "https://management.core.windows.net")
CHANGING = ("PUT", "PATCH", "DELETE")


class Arm:
    """Azure Resource Manager, on one port."""

    def __init__(self, port: int, folder: Path, certificate: Path) -> None:
        self.url = f"https://localhost:{port}"
        self.proxy = f"http://127.0.0.1:{port}"
        self.folder = folder
        self.certificate = certificate
        self.bicep = placed(folder / "bin")
        """The stand-in compiler of tests/bed/bicep/program.py, and what a file beside it makes it say instead."""
        self.answer_s = 0.0
        """How long each answer takes."""
        self.renewed()

    def renewed(self) -> Arm:
        """As at the start: healthy, nothing asked, nothing going wrong."""
        self.state: State = healthy_state()
        self.state.url = self.state.authority = self.url
        self.requests: list[Asked] = []
        self.refused: list[str] = []
        """What the table does not have."""
        self.faults = Faults()
        self.moments = Moments()
        self.answer_s = 0.0
        for name in ("broken", "version"):
            self.bicep.with_name(name).unlink(missing_ok=True)
        return self

    # ---- for tests

    @property
    def environment(self) -> dict[str, str]:
        """Variables for the command under test; `path` is not among them."""
        return self.environment_of(self.state.caller)

    def environment_of(self, caller: Caller) -> dict[str, str]:
        """Those of one of `State.callers`, for a second person."""
        return {
            "ARM_CLOUD_METADATA_URL": f"{self.url}/metadata/endpoints?api-version=2022-09-01",
            "AZURE_AUTHORITY_HOST": self.url,
            "AZURE_TENANT_ID": self.state.tenant,
            "AZURE_CLIENT_ID": caller.client_id,
            "AZURE_CLIENT_SECRET": caller.secret,
            "AZURE_SUBSCRIPTION_ID": self.state.subscription,
            "AZURE_TOKEN_CREDENTIALS": "EnvironmentCredential",
            "REQUESTS_CA_BUNDLE": str(self.certificate),
            "SSL_CERT_FILE": str(self.certificate),
            "HTTPS_PROXY": self.proxy,
            "NO_PROXY": "localhost,127.0.0.1",
            "HOME": str(self.folder),
            "AZURE_CONFIG_DIR": str(self.folder / ".azure"),
        }

    @property
    def path(self) -> str:
        """A PATH that begins with the stand-in `bicep`, which compiles what we render."""
        return f"{self.bicep.parent}{os.pathsep}{os.environ['PATH']}"

    @property
    def changes(self) -> list[str]:
        """Requests that change something, in order; POSTs are in `posts`."""
        return [each.line for each in self.requests if each.method in CHANGING]

    @property
    def posts(self) -> list[str]:
        """POST requests, those for tokens not among them."""
        return [each.line for each in self.requests if each.method == "POST"]

    def fail(self, method: str, path: str, refused: RefusedError, times: int = 1) -> None:
        """Answer the next such requests with an error; `path` is a pattern."""
        self.faults.add(Fault(method, path, times, refused))

    def throttle(self, path: str = "*", method: str = "*", *, times: int = 1, retry_after: str = "0") -> None:
        """Answer the next such requests with 429."""
        self.faults.add(Fault(method, path, times, throttled(retry_after)))

    def lose(self, method: str, path: str, *, after_effect: bool, times: int = 1) -> None:
        """Close the connection instead of answering, before or after the request has had its effect."""
        self.faults.add(Fault(method, path, times, None, "after" if after_effect else "before"))

    def at(self, number: int, happens: Callable[[], object], *, after_effect: bool = False) -> None:
        """Let something happen at the request of this number, which is answered then; counted from now on."""
        self.moments = Moments(due=Moment(number, "after" if after_effect else "before", happens, is_end=False))

    def break_off(self, number: int, *, after_effect: bool, end: Callable[[], object] = lambda: None) -> None:
        """From the request of this number on nothing is answered, until `connect`; `end` ends who asks, for example."""
        self.moments = Moments(due=Moment(number, "after" if after_effect else "before", end, is_end=True))

    def connect(self) -> None:
        """Everything is answered again; the record begins anew."""
        self.moments = Moments()
        self.faults.due.clear()
        self.requests.clear()

    # ---- for the server

    def answer(self, asked: Asked, authorization: str | None) -> Answer:
        """The answer to a request; LostError when there is none. Some commands of `az` end a path with a slash."""
        asked = replace(asked, path=asked.path.rstrip("/") or "/")
        entra = tokens.answer(asked, self.state)
        if entra is not None:
            return entra
        if asked.path == "/metadata/endpoints":
            return metadata.answer(asked, self.url, self.state)
        if self.answer_s:
            time.sleep(self.answer_s)
        self.requests.append(asked)
        number = self.moments.next()
        if self.moments.is_lost(number, "before"):
            raise LostError
        answer = self._answer(asked, authorization)
        asked.status = answer.status
        if self.moments.is_lost(number, "after") or self.faults.take(asked, "after"):
            asked.status = 0
            raise LostError
        return answer

    def _answer(self, asked: Asked, authorization: str | None) -> Answer:
        fault = self.faults.take(asked, "before")
        if fault is not None:
            if fault.refused is None:
                raise LostError
            return fault.refused.answer
        try:
            with self.state.lock:
                return self._allowed(asked, authorization)
        except RefusedError as refused:
            return refused.answer
        except NotInTableError as error:
            self.refused.append(str(error))
            return RefusedError(400, "NotInTable", str(error)).answer
        except Exception as error:
            self.refused.append(f"{asked.line}: the stand-in failed: {''.join(traceback.format_exception(error))}")
            return RefusedError(500, "StandInFailed", f"{type(error).__name__}: {error}").answer

    def _allowed(self, asked: Asked, authorization: str | None) -> Answer:
        state = self.state
        if asked.path.startswith(machines.CONSOLES):
            return machines.console_log(state, asked, authorization)
        row = row_of(asked)
        caller = tokens.caller_of(authorization, (*AUDIENCES, self.url), state)
        asked.caller = caller.client_id
        tokens.require_factors(caller, asked)
        named = asked.path.split("/")
        if (
            len(named) > 2
            and named[1].lower() == "subscriptions"
            and named[2].lower() not in (state.subscription, *state.others)
        ):
            raise RefusedError(404, "SubscriptionNotFound", f"The subscription '{named[2]}' could not be found.")
        if row is None:
            return resources.answer(state, asked, caller)
        found, parts = row
        if found.action is not None:
            rights.require(state, caller, found.action, asked.path.partition("/providers/")[0])
        return answered(state, asked, ANSWERS[found.answer](state, asked, caller, parts))


@contextmanager
def running_arm(folder: Path) -> Iterator[Arm]:
    """A stand-in on a free port; `folder` takes its certificate and is the HOME of `environment`."""
    with serving(folder, lambda port, certificate: Arm(port, folder, certificate)) as arm:
        yield arm


__all__ = ["Arm", "RefusedError", "running_arm"]
