"""The ways in: what every kind of access declares, one class per kind, and the one that a definition chooses.

Consumers ask the kind or print the plan; none compares names.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from shlex import quote
from typing import TYPE_CHECKING, ClassVar, Literal

from msgspec import Struct

from ..definition.model.definition import Definition
from .abstract import AbstractStruct
from .flow import ENDPOINTS, JUMPBOX, NODES, SERVER, USERS, Demand, Flow
from .subnet_kinds import SubnetKind

if TYPE_CHECKING:
    from typing import Self

AccessKind = Literal["bastion", "hub", "private", "public"]


class TunnelPorts(Struct, frozen=True):
    """Ports of the user's machine at which tunnels through the Bastion end."""

    ssh: int
    portal: int
    remote_desktop: int


class Ends(Struct, frozen=True):
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
        return f"{self.username}@{self.scheduler}" if self.scheduler else None


class Access(Struct, metaclass=AbstractStruct, frozen=True, kw_only=True):
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
        return f"{self.ssh_options} {self.target}".lstrip()

    @classmethod
    def _by_address(cls, ends: Ends, description: str, field: Literal["privateIps", "publicIps"]) -> Self:
        host = f'{ends.username}@"${{server}}"'
        return cls(
            kind=cls.default("kind"),
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


_PORTS = TunnelPorts(ssh=50022, portal=8443, remote_desktop=Access.remote_desktop_port)
_PARTY = "bastion"
_CREATED = "Azure Bastion with tunnels; no public address on the server"
_OWN = "the existing network's own Azure Bastion, which must exist and open tunnels; no public address on the server"
_NET, _HOSTS = "VirtualNetwork", "Bastion hosts talk to each other"
# Azure refuses a Bastion whose security group lacks one of them; 443 among the targets is the portal.
# https://learn.microsoft.com/azure/bastion/bastion-nsg
_DEMANDS = (
    Demand("AllowHttpsInbound", "Inbound", "Tcp", "Internet", "*", ("443",), "clients of users"),
    Demand("AllowGatewayManagerInbound", "Inbound", "Tcp", "GatewayManager", "*", ("443",), "control plane"),
    Demand("AllowLoadBalancerInbound", "Inbound", "Tcp", "AzureLoadBalancer", "*", ("443",), "health probes"),
    Demand("AllowBastionHostsInbound", "Inbound", "*", _NET, _NET, ("8080", "5701"), _HOSTS),
    Demand("AllowTargetsOutbound", "Outbound", "*", "*", _NET, ("22", "443", "3389"), "SSH, portal, Remote Desktop"),
    Demand("AllowAzureCloudOutbound", "Outbound", "Tcp", "*", "AzureCloud", ("443",), "logs and certificates"),
    Demand("AllowBastionHostsOutbound", "Outbound", "*", _NET, _NET, ("8080", "5701"), _HOSTS),
    Demand("AllowSessionInformationOutbound", "Outbound", "*", "*", "Internet", ("80",), "sessions, certificates"),
)


class Bastion(Access, frozen=True, kw_only=True):
    """`bastion`: created with a new network; an existing network has its own."""

    kind: Literal["bastion"] = "bastion"
    subnet: ClassVar[SubnetKind | None] = SubnetKind(
        "bastion",
        "AzureBastionSubnet",
        "Azure Bastion",
        64,
        26,
        # https://learn.microsoft.com/azure/bastion/bastion-faq#udr
        may_be_routed=False,
        smallest="bastion_subnet_prefix",
        manages=True,
        demands=_DEMANDS,
    )

    @classmethod
    def planned(cls, ends: Ends) -> Bastion:
        """Tunnels that end at ports of the user's machine."""
        host = f"{ends.username}@127.0.0.1"
        # All hosts behind tunnels have the same address and port, so their keys are kept under their names.
        key = f"-o HostKeyAlias={quote(ends.server)}"
        jump = f"-o ProxyJump={host}:{_PORTS.ssh}"
        return cls(
            description=_CREATED if ends.network_is_new else _OWN,
            tunnel=_PORTS,
            creates_bastion=ends.network_is_new and ends.server_is_new,
            target=host,
            ssh_options=f"-p {_PORTS.ssh} {key}",
            scp_options=f"-P {_PORTS.ssh} {key}",
            server_arguments=ends.server_arguments,
            node_options=f"{jump} -o HostKeyAlias={quote(ends.scheduler)}" if ends.scheduler else None,
            scheduler_target=ends.scheduler_target,
            address_field="privateIps",
        )

    @property
    def slow_part(self) -> str | None:
        """The Bastion host, where this deployment creates it."""
        return "Azure Bastion" if self.creates_bastion else None

    @classmethod
    def flows(cls, *, has_jumpbox: bool) -> Iterator[Flow]:
        """Tunnels come from the subnet of the Bastion, in an existing network from that of its own Bastion."""
        yield Flow("bastion-ssh", _PARTY, SERVER, "Tcp", ("22",), "users log in to the server by SSH")
        yield Flow("bastion-portal", _PARTY, SERVER, "Tcp", ("443",), "users open the portal")
        if has_jumpbox:
            purpose = "users reach the jumpbox by Remote Desktop"
            yield Flow("bastion-jumpbox", _PARTY, JUMPBOX, "Tcp", ("3389",), purpose)
        yield Flow("bastion-nodes", _PARTY, NODES, "Tcp", ("22",), "tunnels to nodes")


class Hub(Access, frozen=True, kw_only=True):
    """`hub`: a new network is peered with the hub; the peerings of an existing one are its owner's."""

    kind: Literal["hub"] = "hub"
    own_key: ClassVar[str | None] = "hub"
    peers_with_hub: ClassVar[bool] = True
    way: ClassVar[str] = "private address, reached through the hub network and its VPN or ExpressRoute gateway"
    network: ClassVar[str] = "hub network"
    """What users connect to, for messages."""

    @classmethod
    def planned(cls, ends: Ends) -> Self:
        return cls._by_address(ends, cls.way, "privateIps")

    def when_silent(self, allowed_sources: tuple[str, ...]) -> str:
        """Nothing answers as long as the user is outside."""
        del allowed_sources
        return f"connect to the VPN or ExpressRoute of the {self.network} first; see also whether the server runs"

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


class Private(Hub, frozen=True, kw_only=True):
    """`private`: on a way into an existing network that its owner has, such as a VPN; the deployment peers nothing."""

    kind: Literal["private"] = "private"  # type: ignore[assignment]
    own_key: ClassVar[str | None] = None
    peers_with_hub: ClassVar[bool] = False
    needs_existing_network: ClassVar[bool] = True
    way: ClassVar[str] = "private address, on a way into the existing network that its owner has, such as a VPN"
    network: ClassVar[str] = "network"


class Public(Access, frozen=True, kw_only=True):
    """`public`: the firewall lets the definition's sources in, and nobody else."""

    kind: Literal["public"] = "public"
    own_key: ClassVar[str | None] = "allowed_sources"
    is_public: ClassVar[bool] = True
    jumpbox_through_server: ClassVar[bool] = True

    @classmethod
    def planned(cls, ends: Ends) -> Public:
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


KINDS: tuple[type[Access], ...] = (Bastion, Hub, Private, Public)
_BY_NAME = {kind.default("kind"): kind for kind in KINDS}


def kind_of(definition: Definition) -> type[Access]:
    return _BY_NAME[definition.network.access]
