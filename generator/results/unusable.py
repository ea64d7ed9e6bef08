"""Why a file cannot be used."""

from __future__ import annotations


class Unusable(Exception):  # noqa: N818 - named by what it is
    """Raised by a reader; becomes a problem of the file. `line` and `column` count from 1; 0 is unknown."""

    def __init__(self, kind: str, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.line = line
        self.column = column
