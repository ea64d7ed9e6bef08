"""The checks of preflight: one class per finding, one module per subject; a module here is found by itself."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from ...problems.rule import instances, registered
from ..check import Check


@cache
def checks() -> tuple[Check, ...]:
    """One of each check, by number."""
    for module in iter_modules(__path__):
        import_module(f".{module.name}", __name__)
    return instances(Check)


@cache
def all_checks() -> tuple[type[Check], ...]:
    """Every check by number: what `explain`, `list rules` and docs/rules.md print."""
    checks()
    return tuple(each for each in registered(("azure",)) if issubclass(each, Check))
