"""The fleet: every VM that a deployment may have. Whatever counts VMs or shows them takes them from here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from msgspec import Struct

from ..catalog.sizes import VmSize
from ..definition.model.definition import Definition
from ..definition.model.slurm import Login, Partition, Scheduler
from ..problems.problem import KeyPath
from .computed import computed_once
from .custom_sizes import size_of

Since = Literal["deployed", "started", "full"]
"""From when on it is billed: as long as the deployment exists, as long as the cluster runs, while all nodes do."""
_TITLES = {"server": "CycleCloud server", "jumpbox": "jumpbox", "scheduler": "scheduler", "login": "login nodes"}


class Machines(Struct, frozen=True):
    """VMs of one role and one VM size."""

    role: Literal["server", "jumpbox", "scheduler", "login", "partition"]
    place: KeyPath
    """The section of the definition that asks for them."""
    size_key: KeyPath
    """Where in that section the VM size is."""
    hardware: VmSize
    count: int
    """That run all the time; the others come and go with jobs."""
    most: int
    since: Since
    """From when on the first of them run."""
    partition: str | None = None
    subnet: str | None = None
    """Name of a further compute subnet; None: the subnet that every network has for them."""
    spot: bool = False
    zones: tuple[tuple[str, KeyPath], ...] = ()
    """Zones that the definition names, with their places."""

    @property
    def is_node(self) -> bool:
        return self.place[0] == "slurm"

    @property
    def name(self) -> str:
        return self.role if self.partition is None else self.partition

    @property
    def title(self) -> str:
        """For people: `CycleCloud server`, `login nodes`, `partition hpc`."""
        return _TITLES[self.role] if self.partition is None else partition_title(self.partition)

    @property
    def label(self) -> str:
        """The title in a sentence."""
        return f"the {self.title}" if self.partition is None else self.title

    @property
    def vm_size(self) -> str:
        return self.hardware.name

    @property
    def path(self) -> KeyPath:
        """Of the VM size."""
        return (*self.place, *self.size_key)


def partition_title(name: str) -> str:
    return f"partition {name}"


@computed_once
def fleet(definition: Definition) -> tuple[Machines, ...]:
    """In the order in which they come up; a definition with errors may lack sizes, and roles may have no VMs."""
    return tuple(_machines(definition))


def _machines(definition: Definition) -> Iterator[Machines]:
    server, slurm = definition.server, definition.slurm
    if server.existing is None:
        yield Machines("server", ("server",), ("vm_size",), size_of(definition, server.vm_size), 1, 1, "deployed")
    if server.jumpbox is not None:
        size = size_of(definition, server.jumpbox.vm_size)
        yield Machines("jumpbox", ("server", "jumpbox"), ("vm_size",), size, 1, 1, "deployed")
    if slurm is not None:
        yield _scheduler(definition, slurm.scheduler)
        yield _login(definition, slurm.login)
        for index, partition in enumerate(slurm.partitions):
            yield from _nodes(definition, partition, ("slurm", "partitions", index))


def _scheduler(definition: Definition, scheduler: Scheduler) -> Machines:
    place: KeyPath = ("slurm", "scheduler")
    count = 2 if scheduler.high_availability else 1
    named = (("zone", scheduler.zone), ("backup_zone", scheduler.backup_zone))
    zones = tuple((zone, (*place, key)) for key, zone in named if zone is not None)
    size = size_of(definition, scheduler.vm_size)
    return Machines(
        "scheduler", place, ("vm_size",), size, count, count, "started", subnet=scheduler.subnet, zones=zones
    )


def _login(definition: Definition, login: Login) -> Machines:
    size = size_of(definition, login.vm_size)
    return Machines(
        "login", ("slurm", "login"), ("vm_size",), size, login.count, login.most, "started", subnet=login.subnet
    )


def _nodes(definition: Definition, partition: Partition, place: KeyPath) -> Iterator[Machines]:
    """One for each VM size; a partition that names none has nodes of an unknown one."""
    for index, name in enumerate(partition.sizes or ("",)):
        yield Machines(
            "partition",
            place,
            ("vm_sizes", index) if partition.vm_sizes else ("vm_size",),
            size_of(definition, name),
            0,
            partition.max_nodes,
            "full",
            partition.name,
            partition.subnet,
            partition.spot,
            ((partition.zone, (*place, "zone")),) if partition.zone else (),
        )
