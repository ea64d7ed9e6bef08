"""Access by private address, through a hub network and its gateway."""

from __future__ import annotations

from typing import ClassVar

from ...records import record
from .base import Access, AccessKind, Ends


@record
class Hub(Access):
    """`hub`: a new network is peered with the hub; the peerings of an existing one are its owner's."""

    name: ClassVar[AccessKind] = "hub"
    own_key: ClassVar[str | None] = "hub"
    peers_with_hub: ClassVar[bool] = True

    @classmethod
    def planned(cls, ends: Ends) -> Hub:
        """The server's private address."""
        way = "private address, reached through the hub network and its VPN or ExpressRoute gateway"
        return cls._by_address(ends, way, "privateIps")

    @classmethod
    def user_sources(cls, hub_prefixes: tuple[str, ...]) -> tuple[str, ...]:
        """The declared prefixes of the hub; without any, the tag covers the peers and what is behind them."""
        return hub_prefixes or ("VirtualNetwork",)
