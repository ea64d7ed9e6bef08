"""What every kind of file system declares; consumers iterate over file systems and print, none asks for the kind.

One module beside this one is one kind, and `registry` finds them; what rules say about one kind alone is in the
module of the same name in `rules`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from msgspec import Struct

from ... import catalog
from ...cctemplate.writing import Writable
from ..abstract import AbstractStruct
from ..bicep_modules import BicepModule
from ..billing import Billed
from ..flow import Flow
from ..subnet_kinds import SubnetKind

if TYPE_CHECKING:
    from typing import Self

    from ...definition.model.definition import Definition

Protocol = Literal["nfs", "lustre", "blobfuse"]
GIB_PER_TIB = 1024
MIB = 1024**2


class Place(Struct, frozen=True):
    """Where a file system stands: its name and mount point, and the definition that asks for it."""

    name: str
    path: str
    definition: Definition


class Tier(Struct, frozen=True):
    """One of the tiers in which the service sells a capacity; people compare them."""

    mb_per_s_per_tib: int
    step_tib: int
    size_tib: int | None
    """The smallest that holds what was asked for; None where the tier ends below it."""
    gb_per_s: float | None
    """Nominal bandwidth of that size in 10^9 bytes/s."""
    is_chosen: bool


class Grant(Struct, frozen=True):
    """A role that the nodes' identity needs on what someone else owns, so that the deployment does not assign it."""

    what: str
    """Plural, for sentences: `blob containers`."""
    role: str
    reader_role: str
    """What is enough for who only reads."""
    storage_account: str
    scope: str
    """Resource id below that of the account."""


class NodeSettings(Struct, frozen=True):
    """`[[[configuration]]]` keys of every node from which a project of ours mounts file systems."""

    comment: str
    entries: tuple[tuple[str, Writable], ...]


class FileSystem(Struct, metaclass=AbstractStruct, frozen=True, kw_only=True):
    """One shared file system as every node sees it. None in a field means "does not apply"."""

    name: str
    """`home` (/shared), `sched` (/sched) or a name derived from the mount point, unique, [a-z0-9-]."""
    path: str
    kind: str = ""
    """The value of `type` in the definition; each class has its own."""
    protocol: Protocol
    size_gib: int | None = None
    address: str | None = None
    """None for a disk of the scheduler and where the address is an output of the deployment (`address_fact`)."""
    address_fact: str | None = None
    """Key in the server's `facts.json` that holds the address, for example `homeAddress`."""
    export_path: str | None = None
    mount_options: str | None = None
    mount_order: int | None = None
    """Set where it is below another one, which CycleCloud has to mount first; it takes 1000 where nothing is said."""

    # ------------------------------------------------------------ from the definition

    azure_names: ClassVar[Mapping[str, str]] = {}
    """Keys of the section whose values Azure checks, with the entry of the catalogue's `limits.names` for each."""

    @classmethod
    @abstractmethod
    def planned(cls, place: Place, section: Any) -> Self:
        """The file system that a section of the definition asks for; total, also where rules find faults in it."""

    # ------------------------------------------------------------ in words

    @property
    @abstractmethod
    def label(self) -> str:
        """Kind and level in a few words, for a column of `cycleforge plan`."""

    @property
    @abstractmethod
    def description(self) -> str:
        """What it is, with its size, for the README of the deployment."""

    @property
    @abstractmethod
    def origin(self) -> str:
        """Where it comes from, for a column of `cycleforge plan`."""

    @property
    def left_behind(self) -> str | None:
        """What is still there when the resource group is deleted."""
        return None

    troubles: ClassVar[tuple[tuple[str, str], ...]] = ()
    """(what a user sees, what to do) for the README's troubleshooting."""

    # ------------------------------------------------------------ in Azure

    @classmethod
    def is_created(cls, section: Any) -> bool:
        """Whether the deployment creates what a section of the definition asks for."""
        del section
        return cls.service is not None

    service: ClassVar[str | None] = None
    """Azure service that the deployment creates it in, as messages name it."""
    slow_part: ClassVar[str | None] = None
    """What takes longer to create than the rest of a deployment."""
    one_by_one: ClassVar[bool] = False
    """Whether the service refuses to create one while it creates another."""
    resource_types: ClassVar[tuple[str, ...]] = ()
    """Types of the resources that the deployment creates for it."""
    assigned_roles: ClassVar[tuple[str, ...]] = ()
    """Names of the roles that its role assignment gives, where one of these is that."""
    subnet: ClassVar[SubnetKind | None] = None
    """The subnet that it needs to itself."""

    @classmethod
    def requirements(cls, mounts: Sequence[Any]) -> tuple[str, ...]:
        """What the subscription must have before file systems of this kind can be created; sentences for the README."""
        del mounts
        return ()

    @property
    def subnet_prefix_length(self) -> int | None:
        """Prefix length of the subnet that its capacity asks for; None: that of the kind of subnet."""
        return None

    @property
    def flows(self) -> tuple[Flow, ...]:
        """Who talks to whom so that it works; what is the same for all file systems of a kind is equal."""
        return ()

    @classmethod
    def shared_modules(cls, mounts: Sequence[Any]) -> tuple[BicepModule, ...]:
        """Modules that all file systems of this kind need once."""
        del mounts
        return ()

    @property
    def created_accounts(self) -> tuple[tuple[str, str], ...]:
        """(name, redundancy) of the storage accounts that the deployment creates for it; several may share one."""
        return ()

    @property
    def endpoints(self) -> tuple[str, ...]:
        """Private endpoints that it needs in the subnet of the locker's, by name; what several share is equal."""
        return ()

    def module(self, index: int) -> BicepModule | None:
        """The module that creates it, with the output `address`; `index` counts the file systems of this kind."""
        del index
        return None

    can_shrink: ClassVar[bool] = False
    """Whether Azure makes it smaller in place, though not by a deployment."""

    @property
    def billed(self) -> tuple[Billed, ...]:
        """What Azure bills for it by the hour; nothing for what belongs to someone else or is billed by its content."""
        return ()

    @property
    def created_names(self) -> tuple[tuple[str, str], ...]:
        """(type, name) of what the deployment creates for it under names that it makes up, endpoints apart."""
        return ()

    @property
    def own_names(self) -> tuple[str, ...]:
        """Names in Azure, as short as they are there, that nothing else of the deployment may have."""
        return ()

    @property
    def grants(self) -> tuple[Grant, ...]:
        """Roles that the nodes need on what the deployment does not own."""
        return ()

    # ------------------------------------------------------------ on the nodes

    is_scheduler_disk: ClassVar[bool] = False
    """Whether it is a disk of the scheduler that CycleCloud exports; only /sched and /shared may be."""
    mounted_by: ClassVar[str | None] = None
    """The project of ours that mounts it; None: CycleCloud does."""

    @property
    def is_read_only(self) -> bool:
        """Whether its mount options let nodes only read."""
        return "ro" in (self.mount_options or "").replace(" ", "").split(",")

    @property
    def is_health_checked(self) -> bool:
        """Whether the nodes' health checks expect it mounted and writable; read-only mounts would drain all nodes."""
        return not self.is_read_only

    @classmethod
    def node_settings(cls, mounts: Sequence[Any]) -> NodeSettings | None:
        """What the project that mounts them reads on the nodes."""
        del mounts
        return None

    @property
    def tiers(self) -> tuple[Tier, ...]:
        """The tiers of its service with the size and bandwidth that each would have, the slowest first."""
        return ()

    # ------------------------------------------------------------ for jobs

    @property
    def data_rank(self) -> int:
        """Lower is better for images, data and checkpoints of jobs."""
        return 0 if self.protocol == "lustre" else 1

    @property
    def tier_arithmetic(self) -> tuple[float, str] | None:
        """MB/s (10^6 bytes) that its tier promises for its size, and how that was calculated; None: nothing is.

        What storage tests are judged by.
        """
        return None

    @property
    def bandwidth_gb_per_s(self) -> float | None:
        """Nominal bandwidth in 10^9 bytes/s; None if it is not published."""
        return None

    @property
    def file_gb_per_s(self) -> float | None:
        """What one file that one process writes reaches, in 10^9 bytes/s; None if nobody published it."""
        row = catalog.training().storage.get(self.protocol)
        return row.file_gb_per_s if row else None


def default_mount_options(protocol: Protocol) -> str | None:
    row = catalog.mount_options().get(protocol)
    return row.value if row else None


def azure_resource_name(name: str) -> str:
    """The name as one of a resource: Azure wants a letter first; 64 characters are the least that a service takes."""
    return (name if name[0].isalpha() else f"m-{name}")[:64]
