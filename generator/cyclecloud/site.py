"""The server's REST interface: asks, and changes once.

Wrong passwords lock the account: "five authorization failures within 60 seconds of each other" do, for five minutes.
So there is one request at a time until the login is known to be good, a refused login is never repeated, and no other
command of this user tries one at this site within the next minute.
Source: https://learn.microsoft.com/azure/cyclecloud/how-to/user-authentication
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..disk import file
from .requests import Call
from .wire import Answer, Login, LoginRefused, NotAsked, Refused, Wire

TRIES = 3
PAUSE_S = 1.0
LONGEST_PAUSE_S = 20.0
LOCK_S = 60.0
"""Failures further apart than this do not add up."""
_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})
_DENIED = 401


class Site:
    """One site. Every method raises `Refused` and `NotAsked`; all of them may be called by several threads at once."""

    def __init__(
        self,
        address: str,
        port: int,
        certificate_sha256: str | None,
        login: Login | None,
        *,
        remembered: Path | None = None,
    ) -> None:
        """`remembered` is the file that notes when this user was refused here; it holds no secret."""
        self._wire, self._login = Wire(address, port, certificate_sha256), login
        self._remembered = remembered
        self._gate = threading.Lock()
        self._is_proved = login is None
        self._denied: LoginRefused | None = None

    @property
    def place(self) -> str:
        return self._wire.place

    def get(self, call: Call) -> Any:
        """What JSON the answer is; a question is asked again where the server was busy or the connection was lost."""
        if not call.request.only_asks:
            raise TypeError(f"{call.request.path} changes something")
        for left in reversed(range(TRIES)):
            try:
                answer = self._sent(call)
            except NotAsked as reason:
                # Before the login is known to be good, what was lost may have been a refusal that counts.
                if not left or reason.lost is None or (reason.lost == "sent" and not self._is_proved):
                    raise
                time.sleep(PAUSE_S)
                continue
            if answer.status in _AGAIN and left:
                time.sleep(_pause(answer.headers))
                continue
            return self._good(answer).body
        raise AssertionError("unreachable")

    def change(self, call: Call) -> Answer:
        """Send it once. Raises `Lost` where it may have had its effect; then it is read back."""
        if call.request.only_asks:
            raise TypeError(f"{call.request.path} only asks")
        return self._good(self._sent(call))

    # ---------------------------------------------------------------- login

    def _sent(self, call: Call) -> Answer:
        if self._is_proved:
            return self._checked(self._wire.exchange(call, self._login))
        with self._gate:
            if self._denied is not None:
                raise self._denied
            if not self._is_proved:
                self._must_have_waited()
            answer = self._checked(self._wire.exchange(call, self._login))
            # An error of the web server itself may come before anybody has looked at the password.
            self._is_proved = self._is_proved or answer.status < 500
            return answer

    def _checked(self, answer: Answer) -> Answer:
        if answer.status == _DENIED:
            self._note()
            name = self._login.name if self._login else "nobody"
            self._denied = LoginRefused(
                f"{self.place} refused the password of {name}, or the account is locked",
                "five wrong passwords in a row lock the account for five minutes: check the password, wait a minute, "
                "and run the command again",
            )
            self._is_proved = False
            raise self._denied
        return answer

    def _must_have_waited(self) -> None:
        """Raises LoginRefused where another command was refused here less than a minute ago."""
        if self._remembered is None:
            return
        try:
            ago = time.time() - self._remembered.stat().st_mtime
        except OSError:
            return
        if 0 <= ago < LOCK_S:
            raise LoginRefused(
                f"{self.place} refused a login {ago:.0f} s ago; it was not tried again, because five refused ones in a "
                "row lock the account",
                f"run the command again in {LOCK_S - ago:.0f} s, with the right password",
            )

    def _note(self) -> None:
        if self._remembered is not None:
            with suppress(OSError):
                self._remembered.parent.mkdir(parents=True, exist_ok=True)
                file.write(self._remembered, b"")

    # ---------------------------------------------------------------- answers

    def _good(self, answer: Answer) -> Answer:
        if 300 <= answer.status < 400:
            raise NotAsked(
                f"{self.place} redirects (HTTP {answer.status}), so it is not CycleCloud",
                "open it in a browser to see what answers there",
            )
        if answer.status >= 400:
            raise Refused(answer.status, answer.body if answer.is_json else None)
        if answer.body is not None and not answer.is_json:
            raise NotAsked(
                f"{self.place} is not CycleCloud: it answered HTTP {answer.status} without JSON",
                "open it in a browser to see what answers there",
            )
        return answer


def _pause(headers: Mapping[str, str]) -> float:
    try:
        return min(max(float(headers["retry-after"]), 0.0), LONGEST_PAUSE_S)
    except (KeyError, ValueError):
        return PAUSE_S
