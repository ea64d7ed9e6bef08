"""Access by private address, through a hub network and its gateway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from ...records import named_record
from ..flow import ENDPOINTS, JUMPBOX, NODES, SERVER, USERS, Flow
from .base import Access, Ends


@named_record
class Hub(Access):
    """`hub`: a new network is peered with the hub; the peerings of an existing one are its owner's."""

    kind: Literal["hub"] = "hub"
    own_key: ClassVar[str | None] = "hub"
    peers_with_hub: ClassVar[bool] = True

    @classmethod
    def planned(cls, ends: Ends) -> Hub:
        """The server's private address."""
        way = "private address, reached through the hub network and its VPN or ExpressRoute gateway"
        return cls._by_address(ends, way, "privateIps")

    def when_silent(self, allowed_sources: tuple[str, ...]) -> str:
        """Nothing answers as long as the user is outside."""
        del allowed_sources
        return "connect to the VPN or ExpressRoute of the hub network first; see also whether the server runs"

    @classmethod
    def user_sources(cls, hub_prefixes: tuple[str, ...]) -> tuple[str, ...]:
        """The declared prefixes of the hub; without any, the tag covers the peers and what is behind them."""
        return hub_prefixes or ("VirtualNetwork",)

    @classmethod
    def flows(cls, *, has_jumpbox: bool) -> Iterator[Flow]:
        """Users are in the private network, so they reach what they work with by its own address."""
        yield Flow("users-ssh", USERS, SERVER, "Tcp", ("22",), "users log in to the server by SSH")
        yield Flow("users-portal", USERS, SERVER, "Tcp", ("443",), "users open the portal")
        yield Flow("users-locker", USERS, ENDPOINTS, "Tcp", ("443",), "users upload projects to the locker")
        if has_jumpbox:
            yield Flow("users-jumpbox", USERS, JUMPBOX, "Tcp", ("3389",), "users reach the jumpbox by Remote Desktop")
        yield Flow("users-nodes", USERS, NODES, "Tcp", ("22",), "users log in to login nodes and scheduler by SSH")
