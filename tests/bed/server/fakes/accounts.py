"""Users of the stand-in site: who may log in, and when an account is locked.

Source: azure-docs articles/cyclecloud/how-to/user-authentication.md: five authorization failures, each within 60
seconds of the one before, lock an account for five minutes. Whether a success in between resets the count is not
published; here it does not.
"""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass, field

WITHIN_S = 60
FAILURES = 5
LOCKED_S = 300


def encode(password: str) -> str:
    """Stands for `cyclecli.util.encode`, whose algorithm is not published: reversible, and not the plain text."""
    return base64.b64encode(bytes(byte ^ 0x5A for byte in password.encode())).decode()


@dataclass
class Accounts:
    """`scale` real seconds are one second of the program under test."""

    scale: float
    passwords: dict[str, str] = field(default_factory=dict)
    late: int = 0
    """How often a right password is still refused, because its record has only just been imported."""
    failures: int = 0
    """Of all logins."""
    locks: int = 0
    _in_a_row: int = 0
    _last: float = float("-inf")
    _locked_until: float = float("-inf")

    def accept(self, user: str, password: str) -> bool:
        now = time.monotonic() / self.scale
        if now < self._locked_until:
            self.failures += 1
            return False
        if self.passwords.get(user) == password:
            if not self.late:
                return True
            self.late -= 1
        self.failures += 1
        self._in_a_row = self._in_a_row + 1 if now - self._last <= WITHIN_S else 1
        self._last = now
        if self._in_a_row >= FAILURES:
            self.locks += 1
            self._locked_until = now + LOCKED_S
        return False
