"""Access by a public address that listed sources reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from ...records import named_record
from ..flow import JUMPBOX, SERVER, USERS, Flow
from .base import Access, Ends


@named_record
class Public(Access):
    """`public`: the firewall lets the definition's sources in, and nobody else."""

    kind: Literal["public"] = "public"
    own_key: ClassVar[str | None] = "allowed_sources"
    is_public: ClassVar[bool] = True
    jumpbox_through_server: ClassVar[bool] = True

    @classmethod
    def planned(cls, ends: Ends) -> Public:
        """The server's public address."""
        way = f"public address, open for {', '.join(ends.allowed_sources)}" if ends.server_is_new else "public address"
        return cls._by_address(ends, way, "publicIps")

    def when_silent(self, allowed_sources: tuple[str, ...]) -> str:
        """The firewall drops what comes from elsewhere."""
        sources = ", ".join(allowed_sources) or "that its firewall lets in"
        return f"your own address must be among those of `network.allowed_sources` ({sources}); does the server run?"

    @classmethod
    def flows(cls, *, has_jumpbox: bool) -> Iterator[Flow]:
        """Only the server has a public address; everything else is reached through it."""
        yield Flow("users-ssh", USERS, SERVER, "Tcp", ("22",), "users log in to the server by SSH")
        yield Flow("users-portal", USERS, SERVER, "Tcp", ("443",), "users open the portal")
        if has_jumpbox:
            purpose = "users reach the jumpbox by Remote Desktop through SSH to the server"
            yield Flow("server-jumpbox", SERVER, JUMPBOX, "Tcp", ("3389",), purpose)
