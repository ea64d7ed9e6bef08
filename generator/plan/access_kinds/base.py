"""What every kind of access declares; consumers ask the kind or print the plan, none compares names.

One module beside this one is one kind, and `registry` knows them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Literal

from ...records import named_record, record
from ..flow import Flow
from ..subnet_kinds import SubnetKind

if TYPE_CHECKING:
    from typing import Self

AccessKind = Literal["bastion", "hub", "private", "public"]


@record
class TunnelPorts:
    """Ports of the user's machine at which tunnels through the Bastion end."""

    ssh: int
    portal: int
    remote_desktop: int


@record
class Ends:
    """What a way in leads to, and from where it begins."""

    username: str
    """The administrator."""
    server: str
    """Name of the server's VM."""
    server_arguments: str
    """Arguments of `az vm` that name it, quoted."""
    scheduler: str | None
    """Host name of the scheduler, which resolves inside the network; None without a cluster."""
    network_is_new: bool
    server_is_new: bool
    allowed_sources: tuple[str, ...]
    """CIDRs that may reach the public address of a new server."""

    @property
    def scheduler_target(self) -> str | None:
        """`user@host` of the scheduler."""
        return f"{self.username}@{self.scheduler}" if self.scheduler else None


@named_record
class Access(ABC):
    """How users come in. The arguments are text for a shell, quoted; `${server}` is the variable with the address."""

    kind: AccessKind
    """The value of `network.access`; each class has its own."""
    description: str
    tunnel: TunnelPorts | None
    """Set where commands of the user's machine go through a Bastion; else the server's address is reached."""
    creates_bastion: bool
    target: str
    """`user@address` of the server."""
    ssh_options: str
    """Options of ssh that reach the server; may be empty."""
    scp_options: str
    """The same for scp, which spells the port in another way."""
    server_arguments: str
    """Arguments of `az vm` that name the server's VM."""
    node_options: str | None
    """Options of ssh and scp that reach a node through the server; None without a cluster."""
    scheduler_target: str | None
    """`user@host` of the scheduler, whose name resolves inside the network; None without a cluster."""
    address_field: Literal["privateIps", "publicIps"]
    """Field of `az vm show --show-details` with the address that users reach."""

    # ------------------------------------------------------------ from the definition

    own_key: ClassVar[str | None] = None
    """The key of `network` that this kind alone reads."""

    @classmethod
    @abstractmethod
    def planned(cls, ends: Ends) -> Self:
        """The way in between these ends."""

    # ------------------------------------------------------------ in Azure

    subnet: ClassVar[SubnetKind | None] = None
    """The subnet that it needs to itself in a new network."""
    is_public: ClassVar[bool] = False
    """Whether the server gets a public address, which the definition's sources may reach."""
    jumpbox_through_server: ClassVar[bool] = False
    """Whether Remote Desktop comes through SSH to the server, because only that has an address that users reach."""
    remote_desktop_port: ClassVar[int] = 53389
    """Port of the user's machine at which a tunnel to the jumpbox ends."""
    peers_with_hub: ClassVar[bool] = False
    """Whether a new network is peered with the definition's hub."""
    needs_existing_network: ClassVar[bool] = False
    """Whether the way in is one that only a network of someone else can have."""

    @classmethod
    def user_sources(cls, hub_prefixes: tuple[str, ...]) -> tuple[str, ...]:
        """From where users reach the private addresses of server and nodes: prefixes, or a tag of Azure."""
        del hub_prefixes
        return ()

    @classmethod
    @abstractmethod
    def flows(cls, *, has_jumpbox: bool) -> Iterator[Flow]:
        """What users open to server, nodes and locker, whoever created them."""

    @property
    def slow_part(self) -> str | None:
        """What takes longer to create than the rest of a deployment."""
        return None

    # ------------------------------------------------------------ on the user's machine

    def when_silent(self, allowed_sources: tuple[str, ...]) -> str:
        """What to look at when the server does not answer; the CIDRs are those that the definition lets in."""
        del allowed_sources
        return "see whether the server runs"

    @property
    def ssh(self) -> str:
        """Arguments of ssh up to the server."""
        return f"{self.ssh_options} {self.target}".lstrip()

    @classmethod
    def _by_address(cls, ends: Ends, description: str, field: Literal["privateIps", "publicIps"]) -> Self:
        host = f'{ends.username}@"${{server}}"'
        return cls(
            kind=cls.kind,
            description=description,
            tunnel=None,
            creates_bastion=False,
            target=host,
            ssh_options="",
            scp_options="",
            server_arguments=ends.server_arguments,
            node_options=f"-o ProxyJump={host}" if ends.scheduler else None,
            scheduler_target=ends.scheduler_target,
            address_field=field,
        )
