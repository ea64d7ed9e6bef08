"""How a request to Azure is declared: once, with its source, and with the `az` line that does the same."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode

from msgspec import Struct

if TYPE_CHECKING:
    from .clients import Clients

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
_HOLE = re.compile(r"\{(\w+)\}")
_SAFE = "$'(),:/"
"""Characters that Azure takes unquoted in a query."""
_WHOLE_PATHS = frozenset({"scope", "id"})
"""Names that stand for a resource id, slashes included; any other stands for one segment."""


class Call(Struct, frozen=True):
    """One request, not written yet: which cloud and subscription it is for is known only to a session."""

    write: Callable[[Clients], object]
    """Has a client write it; `Clients.written` gives what it wrote."""
    az: str = ""
    """The command of the Azure command line, without `--subscription`; empty: `az rest` with the same address."""
    only_asks: bool = True
    """Whether nothing in Azure is changed by it; a Reader sends no other."""


class Request(Struct, frozen=True):
    """One kind of request. `path` has `{names}`, which a call fills; `az` has the same names, quoted for a shell."""

    method: Method
    path: str
    api_version: str
    source: str
    """Public address of what documents it."""
    query: tuple[tuple[str, str], ...] = ()
    az: str = ""
    changes_nothing: bool = False
    """A POST that only asks."""

    @property
    def only_asks(self) -> bool:
        """Whether nothing in Azure is changed by it."""
        return self.method == "GET" or (self.method == "POST" and self.changes_nothing)

    def __call__(self, *, body: object = None, **values: str) -> Call:
        path = _HOLE.sub(lambda found: _segment(found[1], values), self.path)
        query = (("api-version", self.api_version), *((name, _filled(text, values)) for name, text in self.query))
        az = _HOLE.sub(lambda found: shlex.quote(values[found[1]]), self.az)
        unknown = values.keys() - {
            name for text in (self.path, *dict(self.query).values()) for name in _HOLE.findall(text)
        }
        if unknown:
            raise TypeError(f"{self.path} has no {', '.join(sorted(unknown))}")
        address = f"{path}?{urlencode(query, quote_via=quote, safe=_SAFE)}"
        return Call(lambda clients: clients.write(self.method, address, body), az, self.only_asks)


def whole(resource_id: str) -> str:
    return quote(resource_id.strip("/"), safe="/{}")


def _segment(name: str, values: Mapping[str, str]) -> str:
    if name == "subscription" and name not in values:
        return "{subscription}"
    return whole(values[name]) if name in _WHOLE_PATHS else quote(values[name], safe="")


def _filled(text: str, values: Mapping[str, Any]) -> str:
    """Text of a query; what stands between quotes there must not end them."""
    return _HOLE.sub(lambda found: values[found[1]].replace("'", "''"), text)
