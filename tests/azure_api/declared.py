"""The requests that the package declares."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import iter_modules

from generator.azure import requests
from generator.azure.request import Request


def declared() -> Iterator[tuple[str, Request]]:
    """Every request by `module.NAME`."""
    for found in iter_modules(requests.__path__):
        module = import_module(f".{found.name}", requests.__name__)
        for name, value in vars(module).items():
            if isinstance(value, Request) and name.isupper():
                yield f"{found.name}.{name}", value
