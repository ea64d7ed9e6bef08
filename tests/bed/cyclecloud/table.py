"""Which requests there are.

`path` has `{name}` for one part; `query` are the options, `body` and `form` the fields that must be there; `since` is
the release that brought it, `anonymous` what is answered without a login.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from tests.bed.arm.exchange import Asked, NotInTableError

from .documented import DOCUMENTED, body_of
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
    body: tuple[str, ...] = ()
    form: tuple[str, ...] = ()
    since: str = ""
    anonymous: bool = False

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
            _check(row, asked)
            asked.row = row.source
            return row, matched.groupdict()
    raise NotInTableError(f"{asked.line}: neither table has it")


def _check(row: Row, asked: Asked) -> None:
    unknown = asked.query.keys() - {*row.query}
    if unknown:
        raise NotInTableError(f"{asked.line}: the option {', '.join(sorted(unknown))} is not in the table")
    absent = [field for field in row.body if field not in body_of(asked)]
    if row.form:
        given = dict(parse_qsl(asked.body.decode())) if isinstance(asked.body, bytes) else {}
        absent += [field for field in row.form if field not in given]
    if absent:
        raise NotInTableError(f"{asked.line}: the body has no {', '.join(absent)}")
