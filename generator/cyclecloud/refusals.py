"""What CycleCloud said no to, and what could not be asked at all.

Microsoft documents no body of an error. Those of a running server are JSON with `Exception`, `Message` and `Detail`:
https://github.com/Azure/az-hop/issues/221. A proxy's or the web server's own errors are pages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..words.terminal import printable

_LONGEST = 2000


class NotAsked(Exception):  # noqa: N818 - named by what happened
    """Nobody answered as CycleCloud does: no connection, another certificate, a page. The reason holds no secret."""

    def __init__(
        self, reason: str, hint: str | None = None, *, lost: Literal["connecting", "sent"] | None = None
    ) -> None:
        """`lost`: when the connection was lost; None where something else was wrong."""
        super().__init__(reason)
        self.reason, self.hint, self.lost = reason, hint, lost


class LoginRefused(NotAsked):
    """The name or the password is wrong, or the account is locked. Nobody tries again with the same."""


class Lost(NotAsked):
    """A change was sent, and its answer was lost: it may have happened or not. It is read back, never sent again."""


class Refused(Exception):  # noqa: N818 - named by what happened
    """CycleCloud answered with an error. Its words are made printable here."""

    def __init__(self, status: int, body: object) -> None:
        found = {str(name).casefold(): value for name, value in body.items()} if isinstance(body, Mapping) else {}
        self.status = status
        self.code = printable(str(found.get("exception") or f"HTTP {status}").rpartition(".")[2])[:_LONGEST]
        said = found.get("message") or (body if isinstance(body, str) else "")
        self.message = printable(" ".join(str(said).split()))[:_LONGEST] or "the answer names no reason"
        super().__init__(f"{self.code}: {self.message}")

    @property
    def is_missing(self) -> bool:
        """Whether there is nothing of that name."""
        return self.status == 404
