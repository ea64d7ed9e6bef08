"""Ask the public price list: no sign-in, a hundred items a page, and "too many requests" now and then.

Source: https://learn.microsoft.com/rest/api/cost-management/retail-prices/azure-retail-prices
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from ..blobs.download import DownloadFailed, Limits, download
from ..records import record
from .kept import Answer, Kept
from .query import Query

LIMITS = Limits(answer_s=20, total_s=60, tries=4, pause_s=1)
_PAGE_BYTES = 8 * 2**20
_PAGES = 50
_AT_ONCE = 4
"""More questions at a time are refused with 429 sooner."""


@record
class Answered:
    """What became of one question. `answer` may be of an earlier day when `failure` says why nobody answered now."""

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
        """The items of all pages."""
        following = address
        for _ in range(_PAGES):
            page = _page(download(following, _PAGE_BYTES, self._limits))
            yield from page["Items"]
            following = str(page.get("NextPageLink") or "")
            if not following:
                return
            if urlsplit(following).hostname != urlsplit(address).hostname:
                raise DownloadFailed(f"the price list goes on at another host: {urlsplit(following).hostname}")
        raise DownloadFailed(f"the price list has more than {_PAGES} pages for one meter")


def _page(content: bytes) -> dict[str, Any]:
    """One page; what is none (a proxy's page, half an answer) raises DownloadFailed."""
    try:
        page = json.loads(content)
    except ValueError as error:
        raise DownloadFailed("what answered is not the price list: it is no JSON") from error
    items = page.get("Items") if isinstance(page, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise DownloadFailed("what answered is not the price list: it has no items")
    return dict(page)
