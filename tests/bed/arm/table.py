"""Which requests there are: `requests*.json`, where every row names the public source of what it allows.

`rows` are single requests. `path` has `{name}` for one part and `{scope}` for any number of parts; `api_versions` are
the ones that may be sent (`*`: the server has given the address); `query` the other options; `body` the fields that
must be there, with points; `action` what the caller needs; `answer` the function in `answers.py` or another module of
this folder (`document`: `State.documents` has it).

`types` are kinds of resources, for which GET, PUT, PATCH, DELETE and LIST are the same everywhere.
Source: https://github.com/cloud-and-ai-microsoft/resource-provider-contract/blob/master/v1.0/resource-api-reference.md
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .exchange import Asked, NotInTableError

_FILES = sorted(Path(__file__).parent.glob("requests*.json"))


@dataclass(frozen=True)
class Row:
    """One request that Azure describes."""

    method: str
    path: str
    api_versions: tuple[str, ...]
    source: str
    answer: str
    action: str | None = None
    query: tuple[str, ...] = ()
    body: tuple[str, ...] = ()

    @property
    def pattern(self) -> re.Pattern[str]:
        """What matches it, with a group for each name; case does not count."""
        return _pattern(self.path)


@dataclass(frozen=True)
class Kind:
    """One type of resources."""

    type: str
    api_versions: tuple[str, ...]
    methods: tuple[str, ...]
    source: str
    body: tuple[str, ...] = ()
    query: tuple[str, ...] = ()
    long: tuple[str, ...] = ()
    """Methods that take time."""


@cache
def _pattern(path: str) -> re.Pattern[str]:
    text = re.sub(
        r"\\\{(\w+)\\\}", lambda at: rf"(?P<{at[1]}>{'.*' if at[1] == 'scope' else '[^/]+'})", re.escape(path)
    )
    return re.compile(text, re.IGNORECASE)


@cache
def rows() -> tuple[Row, ...]:
    """The single requests, in the order of the file."""
    return tuple(Row(**_tuples(each)) for each in _content()["rows"])


@cache
def kinds() -> dict[str, Kind]:
    """The types of resources, by name in lower case."""
    return {each["type"].lower(): Kind(**_tuples(each)) for each in _content()["types"]}


@cache
def _content() -> dict[str, Any]:
    """All files together, each with the requests of one subject."""
    content: dict[str, Any] = {"rows": [], "types": []}
    for file in _FILES:
        for name, listed in json.loads(file.read_text()).items():
            content[name] += listed
    return content


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}


def row_of(asked: Asked) -> tuple[Row, dict[str, str]] | None:
    """The row of a single request with the parts of its path; the caller looks among the types if there is none."""
    others = []
    for row in rows():
        found = row.pattern.fullmatch(asked.path)
        if found is None:
            continue
        if row.method == asked.method:
            check(asked, row.api_versions, row.query, row.body)
            asked.row = row.source
            return row, found.groupdict()
        others.append(row.method)
    if others:
        raise NotInTableError(f"{asked.line}: the table has {', '.join(others)} there")
    return None


def kind_row(asked: Asked, kind: str, method: str) -> Kind:
    """The row of a type for one of its methods."""
    row = kinds().get(kind.lower())
    if row is None:
        raise NotInTableError(f"{asked.line}: the table has neither this path nor the type {kind}")
    if method not in row.methods:
        raise NotInTableError(f"{asked.line}: the table has {', '.join(row.methods)} for {kind}")
    check(asked, row.api_versions, row.query, row.body if method == "PUT" else ())
    asked.row = row.source
    return row


def check(asked: Asked, versions: tuple[str, ...], query: tuple[str, ...], body: tuple[str, ...]) -> None:
    """The api-version, the other options and the fields of the body."""
    options = {name: value for name, value in asked.query.items() if name.lower() != "$skiptoken"}
    version = options.pop("api-version", None)
    if version is None:
        raise NotInTableError(f"{asked.line}: there is no api-version")
    # What a release of `az` sends of itself is as public as a description; what we make it send is checked like ours.
    if versions != ("*",) and version not in versions and not asked.is_from_az:
        raise NotInTableError(f"{asked.line}: api-version {version} is not among {', '.join(versions)}")
    if "*" not in query and (unknown := {name.lower() for name in options} - {name.lower() for name in query}):
        raise NotInTableError(f"{asked.line}: the option {', '.join(sorted(unknown))} is not in the table")
    for field in body:
        if _missing(asked.body, field):
            raise NotInTableError(f"{asked.line}: the body has no {field}")


def _missing(body: Any, field: str) -> bool:
    for part in field.split("."):
        if not isinstance(body, dict) or body.get(part) is None:
            return True
        body = body[part]
    return False
