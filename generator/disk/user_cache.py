"""Where this user's programs keep what can be had again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ..errors import CannotRead


def user_cache(environment: Mapping[str, str], hint: str = "give one in HOME or XDG_CACHE_HOME") -> Path:
    """`$XDG_CACHE_HOME/cycleforge`, else `~/.cache/cycleforge`.

    Source: https://specifications.freedesktop.org/basedir-spec/latest (a relative XDG_CACHE_HOME is ignored)
    """
    cache = environment.get("XDG_CACHE_HOME", "")
    if os.path.isabs(cache):  # noqa: PTH117 - an empty one is relative
        return Path(cache) / "cycleforge"
    try:
        home = Path(environment["HOME"]) if environment.get("HOME") else Path.home()
    except RuntimeError as error:
        raise CannotRead("this user has no home folder to keep files in", hint) from error
    return home / ".cache/cycleforge"
