"""How many addresses of its subnet each part of a deployment takes."""

from __future__ import annotations

from collections.abc import Mapping

from .. import catalog
from ..definition.model.definition import Definition
from ..definition.model.slurm import Slurm
from .file_systems.registry import wanted_by
from .subnet_kinds import SubnetRole
from .subnets import compute_role, kind_of_role


def login_maximum(slurm: Slurm) -> int:
    """Most login nodes that may run."""
    login = slurm.login
    return login.max_count if login.max_count is not None else max(login.count, 1)


def compute_addresses(slurm: Slurm | None, subnet: str | None = None) -> int:
    """Network cards that may be in a compute subnet: of schedulers, login nodes and nodes of all partitions in it.

    `subnet` is the name of a further one; None: the one that every network has.
    """
    if slurm is None:
        return 0
    cards = (
        (slurm.scheduler, 2 if slurm.scheduler.high_availability else 1),
        (slurm.login, login_maximum(slurm)),
        *((partition, partition.most_nodes) for partition in slurm.partitions),
    )
    return sum(count for node, count in cards if node.subnet == subnet)


def needed_addresses(definition: Definition) -> Mapping[SubnetRole, int]:
    """Addresses by role, where their number follows from the definition and not from a service's own rule."""
    jumpbox = 1 if definition.server.jumpbox is not None else 0
    network = definition.network
    more = network.existing.compute_subnets if network.existing is not None else network.compute_subnets
    names = (None, *(each.name for each in more))
    nodes = {compute_role(name): compute_addresses(definition.slurm, name) for name in names}
    locker = 1 if definition.server.existing is None else 0
    return {"server": 1 + jumpbox, "endpoints": locker + len(endpoint_names(definition)), **nodes}


def endpoint_names(definition: Definition) -> frozenset[str]:
    """Private endpoints beside that of the locker."""
    return frozenset(name for each in wanted_by(definition) for name in each.file_system.endpoints)


def longest_prefix_for(addresses: int) -> int:
    """Prefix length of the smallest subnet with this many addresses, beside those that Azure keeps."""
    limits = catalog.limits()
    reserved: int = limits["reserved_addresses_per_subnet"]["value"]
    bits = (addresses + reserved - 1).bit_length()
    smallest: int = limits["smallest_subnet_prefix"]["value"]
    return min(32 - bits, smallest)


def smallest_subnet(definition: Definition, role: SubnetRole, length: int | None) -> int:
    """Prefix length of the smallest subnet that will do; `length` is what a file system in it asks for."""
    needed = needed_addresses(definition).get(role)
    own = int(catalog.limits()[kind_of_role(role).smallest]["value"])
    return min(own, length or own, longest_prefix_for(needed) if needed is not None else own)
