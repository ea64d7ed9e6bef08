"""Modules of `main.bicep` that the parts of a plan ask for; the template writes them in this form."""

from __future__ import annotations

from msgspec import Struct


class Expression(Struct, frozen=True):
    """A Bicep expression, printed as it stands."""

    text: str


BicepValue = str | int | Expression


class BicepModule(Struct, frozen=True):
    """A module in the resource group. `parameters` are in the order in which they are printed."""

    symbol: str
    source: str
    """Path relative to the deployment folder, for example `modules/lustre.bicep`."""
    parameters: tuple[tuple[str, BicepValue], ...]
    after: tuple[str, ...] = ()
    """Symbols of modules that must be finished before, although no parameter names them."""
    has_place: bool = True
    """Whether it also gets `location` and `tags`: all that create something of their own."""


def given(**parameters: BicepValue | None) -> tuple[tuple[str, BicepValue], ...]:
    """The parameters that have a value; the others keep the default of the module."""
    return tuple((name, value) for name, value in parameters.items() if value is not None)
