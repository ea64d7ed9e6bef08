"""Access by private address, on a way into an existing network that its owner has: a VPN, ExpressRoute or a peering."""

from __future__ import annotations

from typing import ClassVar, Literal

from ...records import named_record
from .base import Ends
from .hub import Hub


@named_record
class Private(Hub):
    """`private`: as through a hub, but nothing is peered."""

    kind: Literal["private"] = "private"  # type: ignore[assignment]
    own_key: ClassVar[str | None] = None
    peers_with_hub: ClassVar[bool] = False
    needs_existing_network: ClassVar[bool] = True

    @classmethod
    def planned(cls, ends: Ends) -> Private:
        """The server's private address."""
        way = "private address, on a way into the existing network that its owner has, such as a VPN"
        return cls._by_address(ends, way, "privateIps")

    def when_silent(self, allowed_sources: tuple[str, ...]) -> str:
        """Nothing answers as long as the user is outside."""
        del allowed_sources
        return "connect to the VPN or ExpressRoute of the network first; see also whether the server runs"
