"""Where the subnets of a new network are.

Every role has a fixed place, so that adding one (a database, say) never moves another: Azure cannot move a subnet
that is in use.

    first half of the address space    compute
    second half, from its start        server /27, endpoints /28, database /28, bastion /26, netapp /26
    second half, from its end          lustre, as large as the capacity asks
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from ipaddress import AddressValueError, IPv4Network, NetmaskValueError

from msgspec import Struct
from msgspec.structs import replace

from .access import KINDS as ACCESS_KINDS
from .file_systems.registry import KINDS as FILE_SYSTEM_KINDS
from .subnet_kinds import SubnetKind, SubnetRole

SUBNETS: dict[SubnetRole, SubnetKind] = {
    kind.role: kind
    for kind in (
        SubnetKind("server", "server", "the CycleCloud server", 0, 27, uses_nat=True, manages=True),
        SubnetKind("endpoints", "endpoints", "the locker", 32, 28),
        SubnetKind(
            "database",
            "database",
            "the accounting database",
            48,
            28,
            delegation="Microsoft.DBforMySQL/flexibleServers",
            smallest="database_subnet_prefix",
        ),
        *(kind.subnet for kind in ACCESS_KINDS if kind.subnet is not None),
        *(kind.subnet for kind in FILE_SYSTEM_KINDS if kind.subnet is not None),
        SubnetKind("compute", "compute", "the nodes", uses_nat=True),
    )
}
"""What is known of the subnets of each role, in the order in which they are placed."""
ROLES: tuple[SubnetRole, ...] = tuple(SUBNETS)

_MORE = "compute-"
"""What the role of a further compute subnet begins with; the rest is its name in the definition."""


def without_overlaps(prefixes: Iterable[str]) -> tuple[str, ...]:
    """The prefixes without those that lie within another one, in their order.

    Azure refuses a rule with both: OverlappingSubnetsNotPermittedInSecurityRule.
    https://github.com/kubernetes-sigs/cloud-provider-azure/issues/6775
    """
    given = tuple(dict.fromkeys(prefixes))
    parsed = {text: network for text in given if (network := parse_network(text)) is not None}
    return tuple(text for text in given if not (text in parsed and _is_within_another(text, parsed)))


def _is_within_another(text: str, parsed: dict[str, IPv4Network]) -> bool:
    return any(parsed[text].subnet_of(other) for name, other in parsed.items() if name != text)


def compute_role(name: str | None) -> SubnetRole:
    """The role of the subnet that nodes are in; None: the one that every network has."""
    return "compute" if name is None else f"{_MORE}{name}"


def compute_name(role: SubnetRole) -> str | None:
    """The definition's name of a further compute subnet; None for any other role."""
    return role.removeprefix(_MORE) if role.startswith(_MORE) else None


def kind_of_role(role: SubnetRole) -> SubnetKind:
    """What is known of a role; a further compute subnet is like the first one, and its role is its name in Azure."""
    found = SUBNETS.get(role)
    return replace(SUBNETS["compute"], role=role, name=role) if found is None and compute_name(role) else SUBNETS[role]


def in_order(roles: Iterable[SubnetRole]) -> tuple[SubnetRole, ...]:
    """Roles in the order in which they are placed: the fixed ones, then the further compute subnets as they come."""
    wanted = tuple(dict.fromkeys(roles))
    return (*(role for role in ROLES if role in wanted), *(role for role in wanted if role not in SUBNETS))


class Layout(Struct, frozen=True):
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
    lengths: Mapping[SubnetRole, int],
) -> Layout:
    """Place the wanted roles; a given prefix is kept as it is, even where it collides (rules report that).

    `lengths` are the prefix lengths of subnets whose size follows from what they hold.
    """
    subnets: dict[SubnetRole, IPv4Network] = {}
    without_room: list[SubnetRole] = []
    for role in in_order(roles):
        placed = given.get(role) or _place(address_space, role, lengths.get(role))
        if placed is None or (role not in given and any(placed.overlaps(other) for other in subnets.values())):
            without_room.append(role)
        else:
            subnets[role] = placed
    return Layout(address_space, subnets, tuple(without_room))


def _place(space: IPv4Network, role: SubnetRole, length: int | None) -> IPv4Network | None:
    if space.prefixlen > 28:
        return None
    lower, upper = space.subnets(prefixlen_diff=1)
    if role == "compute":
        return lower
    if role not in SUBNETS:
        return None
    kind = SUBNETS[role]
    length = kind.prefix_length or length
    if length is None:
        return None
    size = 2 ** (32 - length)
    offset = upper.num_addresses - size if kind.offset is None else kind.offset
    if offset < 0 or offset + size > upper.num_addresses:
        return None
    return IPv4Network((int(upper.network_address) + offset, length))
