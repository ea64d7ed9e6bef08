"""Every request that is sent, one module per service: path, api-version and source stand nowhere else."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from ..request import Request


def declared() -> Iterator[tuple[str, Request]]:
    """Every request by `module.NAME`."""
    for found in iter_modules(__path__):
        module = import_module(f".{found.name}", __name__)
        for name, value in vars(module).items():
            if isinstance(value, Request) and name.isupper():
                yield f"{found.name}.{name}", value
