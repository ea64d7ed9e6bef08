"""Where the subnets of a new network lie.

Every role has a fixed place, so that adding one (a database, say) never moves another: Azure cannot move a subnet
that is in use.

    first half of the address space    compute
    second half, from its start        server /27, endpoints /28, database /28, bastion /26, netapp /26
    second half, from its end          lustre, as large as the capacity asks
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError

from .types import SubnetRole

# role → (offset in the second half, prefix length)
_PLACES: dict[SubnetRole, tuple[int, int]] = {
    "server": (0, 27),
    "endpoints": (32, 28),
    "database": (48, 28),
    "bastion": (64, 26),
    "netapp": (128, 26),
}
ROLES: tuple[SubnetRole, ...] = ("server", "endpoints", "database", "bastion", "netapp", "lustre", "compute")


@dataclass(frozen=True)
class Layout:
    """Subnets that fit, and the roles for which the address space has no room."""

    address_space: IPv4Network
    subnets: Mapping[SubnetRole, IPv4Network]
    without_room: tuple[SubnetRole, ...]


def parse_network(text: str) -> IPv4Network | None:
    """A CIDR with no host bits set; None when it is not one."""
    if "/" not in text:
        return None
    try:
        return IPv4Network(text)
    except (AddressValueError, NetmaskValueError, ValueError):
        return None


def place_subnets(
    address_space: IPv4Network,
    roles: tuple[SubnetRole, ...],
    given: Mapping[SubnetRole, IPv4Network],
    lustre_prefix_length: int,
) -> Layout:
    """Place the wanted roles; a given prefix is kept as it is, even where it collides (rules report that)."""
    subnets: dict[SubnetRole, IPv4Network] = {}
    without_room: list[SubnetRole] = []
    for role in (role for role in ROLES if role in roles):
        placed = given.get(role) or _place(address_space, role, lustre_prefix_length)
        if placed is None or (role not in given and any(placed.overlaps(other) for other in subnets.values())):
            without_room.append(role)
        else:
            subnets[role] = placed
    return Layout(address_space, subnets, tuple(without_room))


def _place(space: IPv4Network, role: SubnetRole, lustre_prefix_length: int) -> IPv4Network | None:
    if space.prefixlen > 28:
        return None
    lower, upper = space.subnets(prefixlen_diff=1)
    if role == "compute":
        return lower
    offset, length = _PLACES.get(role, (0, lustre_prefix_length))
    size = 2 ** (32 - length)
    if role == "lustre":
        offset = upper.num_addresses - size
    if offset < 0 or offset + size > upper.num_addresses:
        return None
    return IPv4Network((int(upper.network_address) + offset, length))
