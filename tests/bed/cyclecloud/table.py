"""Which requests there are.

`path` has `{name}` for one part; `query` are the options.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.bed.arm.exchange import Asked, NotInTableError

from .documented import DOCUMENTED
from .undocumented import UNDOCUMENTED


@dataclass(frozen=True)
class Row:
    """One request."""

    method: str
    path: str
    answer: str
    source: str
    is_documented: bool
    query: tuple[str, ...] = ()

    @property
    def answers(self) -> Callable[..., Any]:
        """Who answers it."""
        return (DOCUMENTED if self.is_documented else UNDOCUMENTED)[self.answer]


@cache
def rows() -> tuple[Row, ...]:
    """Of both tables."""
    found = []
    for name in ("documented", "undocumented"):
        for each in json.loads((Path(__file__).parent / f"{name}.json").read_text()):
            fields: dict[str, Any] = {
                key: tuple(value) if isinstance(value, list) else value for key, value in each.items()
            }
            found.append(Row(is_documented=name == "documented", **fields))
    return tuple(found)


def row_of(asked: Asked) -> tuple[Row, dict[str, str]]:
    """The row that allows a request, with the parts of its path."""
    for row in rows():
        pattern = re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(row.path))
        matched = re.fullmatch(pattern, asked.path)
        if matched is not None and row.method == asked.method:
            if unknown := asked.query.keys() - {*row.query}:
                raise NotInTableError(f"{asked.line}: the option {', '.join(sorted(unknown))} is not in the table")
            asked.row = row.source
            return row, matched.groupdict()
    raise NotInTableError(f"{asked.line}: neither table has it")
