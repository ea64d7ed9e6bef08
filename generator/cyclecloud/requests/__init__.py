"""Every request to CycleCloud, declared: what Microsoft documents, and beside it what only its programs show."""

from __future__ import annotations

from collections.abc import Iterator

from ..request import Request
from . import documented, undocumented


def declared() -> Iterator[tuple[str, Request]]:
    """(module and name, request) of all of them."""
    for module in (documented, undocumented):
        for name, value in vars(module).items():
            if isinstance(value, Request):
                yield f"{module.__name__.rpartition('.')[2]}.{name}", value
