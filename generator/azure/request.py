"""How a request to Azure is declared: once, with its source, and with the `az` line that does the same."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import quote, urlencode

from ..records import record

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
_HOLE = re.compile(r"\{(\w+)\}")
_SAFE = "$'(),:/"
"""Characters that Azure takes unquoted in a query."""
_WHOLE_PATHS = frozenset({"scope", "id"})
"""Names that stand for a resource id, slashes included; any other stands for one segment."""


@record
class Call:
    """One request, ready but for the subscription: `{subscription}` is known only to the session."""

    request: Request
    path: str
    query: tuple[tuple[str, str], ...] = ()
    body: object = None
    az: str = ""

    @property
    def key(self) -> tuple[str, str, tuple[tuple[str, str], ...], str]:
        """What makes two calls the same question."""
        return self.request.method, self.path.casefold(), self.query, json.dumps(self.body, sort_keys=True)

    def address(self, subscription: str, resource_manager: str) -> str:
        """Where it goes."""
        path = self.path.replace("{subscription}", subscription)
        return f"{resource_manager}{path}?{urlencode(self.query, quote_via=quote, safe=_SAFE)}"

    def line(self, subscription: str, resource_manager: str) -> str:
        """The `az` line that asks, or does, the same."""
        if self.az:
            return f"{self.az} --subscription {shlex.quote(subscription)}"
        words = ["az", "rest", "--method", self.request.method.lower()]
        words += ["--url", self.address(subscription, resource_manager)]
        if self.body is not None:
            words += ["--body", json.dumps(self.body)]
        return " ".join(shlex.quote(word) for word in words)


@record
class Request:
    """One kind of request. `path` has `{names}`, which a call fills; `az` has the same names, quoted for a shell."""

    method: Method
    path: str
    api_version: str
    source: str
    """Public address of what documents it."""
    query: tuple[tuple[str, str], ...] = ()
    az: str = ""
    """The command of the Azure command line, without `--subscription`; empty: `az rest` with the same address."""
    changes_nothing: bool = False
    """A POST that only asks; a Reader sends no other."""

    @property
    def only_asks(self) -> bool:
        """Whether nothing in Azure is changed by it."""
        return self.method == "GET" or (self.method == "POST" and self.changes_nothing)

    def __call__(self, *, body: object = None, **values: str) -> Call:
        """The request with its names filled in."""
        path = _HOLE.sub(lambda found: _segment(found[1], values), self.path)
        query = (("api-version", self.api_version), *((name, _filled(text, values)) for name, text in self.query))
        az = _HOLE.sub(lambda found: shlex.quote(values[found[1]]), self.az)
        unknown = values.keys() - {
            name for text in (self.path, *dict(self.query).values()) for name in _HOLE.findall(text)
        }
        if unknown:
            raise TypeError(f"{self.path} has no {', '.join(sorted(unknown))}")
        return Call(self, path, query, body, az)


def _segment(name: str, values: Mapping[str, str]) -> str:
    if name == "subscription" and name not in values:
        return "{subscription}"
    value = values[name]
    whole = name in _WHOLE_PATHS
    text = quote(value.strip("/") if whole else value, safe="/{}" if whole else "")
    if not text or any(part in ("", ".", "..") for part in text.split("/")):
        raise ValueError(f"not a part of a path: {value!r}")
    return text


def _filled(text: str, values: Mapping[str, Any]) -> str:
    """Text of a query; what stands between quotes there must not end them."""
    return _HOLE.sub(lambda found: values[found[1]].replace("'", "''"), text)
