"""The catalogue's data files; nothing outside this package opens them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent


def read(name: str) -> Any:
    """The content of one file, for example `limits.json`."""
    return json.loads((FOLDER / name).read_text(encoding="utf-8"))


@cache
def table(name: str) -> Mapping[str, Any]:
    """The content of `<name>.json`, read once."""
    content: Mapping[str, Any] = read(f"{name}.json")
    return content
