"""Problems of files that other machines have written: where, how serious, and what to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from msgspec import Struct

Level = Literal["error", "warning"]


class Unusable(Exception):  # noqa: N818 - named by what it is
    """Raised when a file cannot be used. `line` and `column` count from 1; 0 is unknown."""

    def __init__(self, kind: str, message: str, line: int = 0, column: int = 0) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.line = line
        self.column = column


class ProblemKind(Struct, frozen=True):
    """An error means that a verdict may be unknown; a warning loses nothing."""

    level: Level
    hint: str


class FileProblem(Struct, frozen=True, order=True):
    """One problem. `line` and `column` count from 1; 0 is unknown. The room that reads the file declares the kinds."""

    kinds: ClassVar[Mapping[str, ProblemKind]]

    file: str
    line: int
    column: int
    kind: str
    message: str

    @property
    def level(self) -> Level:
        return self.kinds[self.kind].level

    @property
    def hint(self) -> str:
        return self.kinds[self.kind].hint

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file

    def as_json(self) -> dict[str, object]:
        return {
            "file": self.file,
            "line": self.line or None,
            "column": self.column or None,
            "level": self.level,
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
        }
