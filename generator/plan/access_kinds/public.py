"""Access by a public address that listed sources reach."""

from __future__ import annotations

from typing import ClassVar

from ...records import record
from .base import Access, AccessKind, Ends


@record
class Public(Access):
    """`public`: the firewall lets the definition's sources in, and nobody else."""

    name: ClassVar[AccessKind] = "public"
    own_key: ClassVar[str | None] = "allowed_sources"
    is_public: ClassVar[bool] = True

    @classmethod
    def planned(cls, ends: Ends) -> Public:
        """The server's public address."""
        way = f"public address, open for {', '.join(ends.allowed_sources)}" if ends.server_is_new else "public address"
        return cls._by_address(ends, way, "publicIps")
