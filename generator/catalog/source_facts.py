"""Public sources."""

from __future__ import annotations

from .files import Fact, table


class Source(Fact, frozen=True, kw_only=True):
    title: str
    url: str | None
    commit: str | None
    date: str | None


sources = table("sources", dict[str, Source])
