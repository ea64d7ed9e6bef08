"""How many addresses of its subnet each part of a deployment takes."""

from __future__ import annotations

from collections.abc import Mapping

from .. import catalog
from ..definition.model.definition import Definition
from .file_systems.registry import wanted_by
from .fleet import fleet
from .subnet_kinds import SubnetRole
from .subnets import compute_role, kind_of_role


def compute_addresses(definition: Definition, subnet: str | None = None) -> int:
    """Network cards that may be in a compute subnet: of schedulers, login nodes and nodes of all partitions in it.

    `subnet` is the name of a further one; None: the one that every network has.
    """
    return sum(each.most for each in fleet(definition) if each.is_node and each.subnet == subnet)


def needed_addresses(definition: Definition) -> Mapping[SubnetRole, int]:
    """Addresses by role, where their number follows from the definition and not from a service's own rule."""
    network = definition.network
    more = network.existing.compute_subnets if network.existing is not None else network.compute_subnets
    names = (None, *(each.name for each in more))
    nodes = {compute_role(name): compute_addresses(definition, name) for name in names}
    servers = sum(each.most for each in fleet(definition) if not each.is_node)
    locker = 1 if definition.server.existing is None else 0
    return {"server": servers, "endpoints": locker + len(endpoint_names(definition)), **nodes}


def endpoint_names(definition: Definition) -> frozenset[str]:
    """Private endpoints beside that of the locker."""
    return frozenset(name for each in wanted_by(definition) for name in each.file_system.endpoints)


def longest_prefix_for(addresses: int) -> int:
    """Prefix length of the smallest subnet with this many addresses, beside those that Azure keeps."""
    limits = catalog.limits()
    reserved: int = limits.reserved_addresses_per_subnet.value
    bits = (addresses + reserved - 1).bit_length()
    smallest: int = limits.smallest_subnet_prefix.value
    return min(32 - bits, smallest)


def smallest_subnet(definition: Definition, role: SubnetRole, length: int | None) -> int:
    """Prefix length of the smallest subnet that will do; `length` is what a file system in it asks for."""
    needed = needed_addresses(definition).get(role)
    own = kind_of_role(role).longest_prefix
    return min(own, length or own, longest_prefix_for(needed) if needed is not None else own)
