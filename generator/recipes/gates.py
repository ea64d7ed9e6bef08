"""The gates of `prove.sh`: which recipe each one runs, read from `recipes/prove/gates.json`."""

from __future__ import annotations

import json
from functools import cache
from typing import Literal

from msgspec import Struct

from ..files import assets

Level = Literal["quick", "standard", "burn", "finder"]


class Gate(Struct, frozen=True):
    """One line of `gates.json`; the order of the file is the order in which gates run."""

    name: str
    level: Level
    """The first level that has it; a level has the gates of those before. `finder`: no gate of its own, see there."""
    recipe: str
    """May be missing: then the gate is not proven, and says so."""
    what: str
    finder: str | None
    """The gate of level `finder` that looks for the bad node where this one fails and names none."""
    settings: tuple[tuple[str, str], ...]
    """Settings of the recipe for this gate. `%BURN_MINUTES%` and `%BURN_SECONDS%` are the time that is asked for."""


FOLDER = "prove"
"""The folder of `recipes/` with the program and its gates; it is no recipe."""


@cache
def gates() -> tuple[Gate, ...]:
    """Return the gates in the order in which they run."""
    rows = json.loads((assets.folder("recipes") / FOLDER / "gates.json").read_text(encoding="utf-8"))
    return tuple(
        Gate(name=row.pop("gate"), settings=tuple(row.pop("settings", {}).items()), **{"finder": None, **row})
        for row in rows
    )
