"""Ask the public price list: no sign-in, a hundred items a page, and "too many requests" now and then.

Its answers are kept on this machine for a day; older ones are used only when the list is not reached.
Source: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ..blobs.download import DownloadFailed, Limits, download
from ..disk import file
from ..disk.user_cache import user_cache
from .price import Query

LIMITS = Limits(answer_s=20, total_s=60, tries=4, pause_s=1)
_PAGE_BYTES = 8 * 2**20
_PAGES = 50
_AT_ONCE = 4
"""More questions at a time are refused with 429 sooner."""


class Answered(Struct, frozen=True):
    """The answer to one question. It may be of an earlier day when `failure` says why none came now."""

    query: Query
    answer: Answer | None
    failure: str = ""


class PriceList:
    """The price list, with what is kept of it. `today` is for tests."""

    def __init__(self, kept: Kept, limits: Limits | None = None, today: Callable[[], str] | None = None) -> None:
        self._kept, self._limits = kept, limits or LIMITS
        self._today = today or (lambda: datetime.now(UTC).strftime("%Y-%m-%d"))

    def ask(self, queries: Iterable[Query], *, refresh: bool = False) -> dict[str, Answered]:
        """Answers by address. An answer of today is used again, without `refresh`."""
        wanted = {query.address: query for query in queries}
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return dict(zip(wanted, pool.map(lambda query: self._one(query, refresh), wanted.values()), strict=True))

    def _one(self, query: Query, refresh: bool) -> Answered:
        kept, today = self._kept.get(query.address), self._today()
        if kept is not None and kept.day == today and not refresh:
            return Answered(query, kept)
        try:
            answer = Answer(today, tuple(self._items(query.address)))
        except DownloadFailed as failed:
            return Answered(query, kept, failed.reason)
        self._kept.put(query.address, answer)
        return Answered(query, answer)

    def _items(self, address: str) -> Iterator[dict[str, Any]]:
        following = address
        for _ in range(_PAGES):
            page = _page(download(following, _PAGE_BYTES, self._limits))
            yield from page["Items"]
            following = str(page.get("NextPageLink") or "")
            if not following:
                return
            if urlsplit(following).hostname != urlsplit(address).hostname:
                raise DownloadFailed(f"the price list continues on a different host: {urlsplit(following).hostname}")
        raise DownloadFailed(f"the price list has more than {_PAGES} pages for one meter")


def _page(content: bytes) -> dict[str, Any]:
    """One page; what is none (a proxy's page, half an answer) raises DownloadFailed."""
    try:
        page = json.loads(content)
    except ValueError as error:
        raise DownloadFailed("the answer is not the price list: it is not JSON") from error
    items = page.get("Items") if isinstance(page, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise DownloadFailed("the answer is not the price list: it has no items")
    return dict(page)


FOLDER = "prices"
_FORMAT = 1


class Answer(Struct, frozen=True):
    """All items of the answer to one question, and the day (UTC, `2026-11-23`) on which it was given."""

    day: str
    items: tuple[Mapping[str, Any], ...]


class Kept:
    """A folder of answers; it need not exist, and what in it is damaged counts as missing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, address: str) -> Answer | None:
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
