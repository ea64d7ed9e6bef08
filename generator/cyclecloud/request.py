"""How a request to CycleCloud is declared: once, with its source, and with the line that does the same by hand."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Literal
from urllib.parse import quote, urlencode

from ..records import record

Method = Literal["GET", "POST"]
_HOLE = re.compile(r"\{(\w+)\}")


@record
class Call:
    """One request, ready to be sent."""

    request: Request
    path: str
    query: tuple[tuple[str, str], ...] = ()
    cli: str = ""
    """The line of the `cyclecloud` program that does the same; empty where it has none."""

    @property
    def address(self) -> str:
        """Path and query."""
        return f"{self.path}?{urlencode(self.query, quote_via=quote)}" if self.query else self.path


@record
class Request:
    """One kind of request. `path` has `{names}`, each for one segment, which a call fills; `cli` has the same names."""

    method: Method
    path: str
    source: str
    """Public address of what documents it, or of the program that sends it."""
    query: tuple[str, ...] = ()
    """Options that it takes."""
    cli: str = ""
    """The line of the `cyclecloud` program that does the same; empty where it has none."""
    accept: str = "application/json"

    @property
    def only_asks(self) -> bool:
        """Whether nothing is changed by it."""
        return self.method == "GET"

    def __call__(
        self,
        query: Mapping[str, str] | None = None,
        **values: str,
    ) -> Call:
        """The request with its names filled in."""
        unknown = {*(query or {})} - {*self.query} | values.keys() - {*_HOLE.findall(self.path + self.cli)}
        if unknown:
            raise TypeError(f"{self.path} has no {', '.join(sorted(unknown))}")
        path = _HOLE.sub(lambda found: _segment(values[found[1]]), self.path)
        cli = _HOLE.sub(lambda found: shlex.quote(values[found[1]]), self.cli)
        return Call(self, path, tuple((query or {}).items()), cli)


def _segment(value: str) -> str:
    """A name as one part of a path."""
    if value in ("", ".", ".."):
        raise ValueError(f"not a part of a path: {value!r}")
    return quote(value, safe="")
