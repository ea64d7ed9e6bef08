"""Answers of the price list, kept on this machine for a day; older ones are used only when nobody can be asked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from ..disk import file
from ..disk.user_cache import user_cache
from ..records import record

FOLDER = "prices"
_FORMAT = 1


@record
class Answer:
    """All items of the answer to one question, and the day (UTC, `2026-11-23`) on which it was given."""

    day: str
    items: tuple[Mapping[str, Any], ...]


class Kept:
    """A folder of answers; it need not exist, and what in it is damaged counts as missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, address: str) -> Answer | None:
        """What is kept of the answer to a question."""
        try:
            content = json.loads(self._path(address).read_text(encoding="utf-8"))
            if content["format"] != _FORMAT or content["address"] != address:
                return None
            items = tuple(item for item in content["items"] if isinstance(item, dict))
            return Answer(str(content["day"]), items)
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, address: str, answer: Answer) -> None:
        """Keep an answer. A folder that cannot be written costs the next run time, and nothing else."""
        content = {"format": _FORMAT, "address": address, "day": answer.day, "items": list(answer.items)}
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            file.write(self._path(address), json.dumps(content, sort_keys=True).encode())

    def _path(self, address: str) -> Path:
        return self._folder / f"{hashlib.sha256(address.encode()).hexdigest()[:32]}.json"


def kept_prices(environment: Mapping[str, str]) -> Kept:
    """The answers of this user, in its cache folder."""
    return Kept(user_cache(environment) / FOLDER)
