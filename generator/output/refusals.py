"""Changes that Azure refuses as a deployment makes them: whether it does depends on both values, not on the key alone.

What is known of a key by itself is declared in the model; `refine` gives a change the cost that it has in truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ..catalog import is_newer
from .diff import ABSENT, BY_HAND, Change

WAY_IN = "Another way in"
DNS_ZONE = "Another DNS zone"
SMALLER_VOLUME = "A smaller volume"
REDUNDANCY = "Another redundancy of the locker"
NEW_DATABASE = "A new accounting database"
UPGRADE = "Upgrade CycleCloud"
NO_LONGER = "What the definition no longer names"
Effective = Mapping[str, Any]


class Judgement(Struct, frozen=True):
    """What a change costs in truth, and the section of operations.md that it needs; None: building is all."""

    cost: str
    title: str | None


def _network(effective: Effective) -> Mapping[str, Any]:
    """The network of a plan; empty where there is no plan."""
    network: Mapping[str, Any] = effective.get("derived", {}).get("network", {})
    return network


def _subnets(effective: Effective) -> dict[str, str]:
    """Name → role of the subnets that the deployment itself creates."""
    return {each["name"]: each["role"] for each in _network(effective).get("subnets", []) if each["prefix"]}


def _subnet_goes(change: Change, old: Effective, new: Effective) -> Judgement | None:
    """InUseSubnetCannotBeDeleted: https://learn.microsoft.com/azure/virtual-network/virtual-network-manage-subnet"""
    if change.path[:3] != ("derived", "network", "subnets") or change.new is not ABSENT:
        return None
    role = _subnets(old).get(str(change.path[3])) if len(change.path) == 4 and _subnets(new) else None
    return Judgement(BY_HAND, WAY_IN if role == "bastion" else NO_LONGER) if role else None


def _way_in(change: Change, old: Effective, new: Effective) -> Judgement | None:
    """The Bastion is in a subnet that no other way in has; peerings and addresses stay where they are."""
    if change.path != ("definition", "network", "access"):
        return None
    roles = [set(_subnets(each).values()) for each in (old, new)]
    if "bastion" in roles[0] and roles[1] and "bastion" not in roles[1]:
        return Judgement(BY_HAND, WAY_IN)
    return Judgement("in place", None if change.old == "bastion" else NO_LONGER)


def _nat_gateway(change: Change, old: Effective, new: Effective) -> Judgement | None:
    """Its subnets leave it, and it stays."""
    is_off = change.path == ("definition", "network", "nat_gateway") and change.new is False
    return Judgement("in place", NO_LONGER) if is_off else None


def _dns_zone(change: Change, old: Effective, new: Effective) -> Judgement | None:
    """A network links to one zone of a name: https://learn.microsoft.com/azure/dns/private-dns-virtual-network-links"""
    if change.path != ("definition", "network", "blob_dns_zone"):
        return None
    zones = [_network(each).get("blob_dns_zone") for each in (old, new)]
    if zones[0] == "none":
        return None
    return Judgement("in place", NO_LONGER) if zones[1] == "none" else Judgement(BY_HAND, DNS_ZONE)


def _volume(change: Change, old: Effective, new: Effective) -> Judgement | None:
    """The pool comes before its volume, and Azure keeps it as large as that:
    https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-resize-capacity-pools-or-volumes
    """
    if change.path[:2] != ("definition", "storage") or change.path[-1] != "size_tib" or not _is_smaller(change):
        return None
    return Judgement(BY_HAND, SMALLER_VOLUME) if _section(new, change).get("type") == "anf" else None


def _section(effective: Effective, change: Change) -> Mapping[str, Any]:
    """The section of the definition in which a key is; mounts are told apart by their path."""
    value: Any = effective
    for step in change.path[:-1]:
        if isinstance(value, list):
            value = next((item for item in value if item.get("path") == step), {})
        else:
            value = value.get(step) or {}
    return value if isinstance(value, Mapping) else {}


def _database(change: Change, old: Effective, new: Effective) -> Judgement | None:
    """Storage of MySQL never shrinks: https://github.com/hashicorp/terraform-provider-azurerm/issues/10360"""
    is_storage = change.path == ("definition", "slurm", "accounting", "storage_gib")
    return Judgement("recreate", NEW_DATABASE) if is_storage and _is_smaller(change) else None


def _server_image(change: Change, old: Effective, new: Effective) -> Judgement | None:
    """`image_version` says which image a VM was created from; to write down what it was changes nothing."""
    if change.path != ("definition", "server", "image_version"):
        return None
    images = [((each.get("derived", {}).get("server") or {}).get("image") or {}).get("version") for each in (old, new)]
    return Judgement("in place", None) if images[0] is not None and images[0] == images[1] else None


def _upgrade(change: Change, old: Effective, new: Effective) -> Judgement | None:
    """A cluster keeps its cyclecloud-slurm, and with it its Slurm, until it is upgraded on the server that was."""
    follows = change.path in (("derived", "slurm", "version"), ("derived", "slurm", "project_version"))
    keys = ("version", "project_version")
    given = [[(each.get("definition", {}).get("slurm") or {}).get(key) for key in keys] for each in (old, new)]
    is_upgrade = is_newer(_release(new), _release(old))
    return Judgement(BY_HAND, UPGRADE) if follows and given[0] == given[1] and is_upgrade else None


def _release(effective: Effective) -> str:
    """The CycleCloud that the server runs, a new or an existing one; empty where there is no plan."""
    derived = effective.get("derived", {})
    return str((derived.get("server") or derived.get("existing_server") or {}).get("release", ""))


def _redundancy(change: Change, old: Effective, new: Effective) -> Judgement | None:
    """A change of zones is a conversion: https://learn.microsoft.com/azure/storage/common/redundancy-migration"""
    if change.path != ("definition", "storage", "locker", "redundancy"):
        return None
    zones = {str(value).endswith("ZRS") for value in (change.old, change.new)}
    return Judgement("in place", None) if len(zones) == 1 else Judgement(BY_HAND, REDUNDANCY)


def _is_smaller(change: Change) -> bool:
    numbers = isinstance(change.old, int) and isinstance(change.new, int)
    return numbers and change.new < change.old


CASES: tuple[Callable[[Change, Effective, Effective], Judgement | None], ...] = (
    _subnet_goes,
    _way_in,
    _nat_gateway,
    _dns_zone,
    _volume,
    _database,
    _redundancy,
    _server_image,
    _upgrade,
)


def judge(change: Change, old: Effective, new: Effective) -> Judgement | None:
    """What holds for this change beside what its key says; None where the key says all."""
    return next((found for case in CASES if (found := case(change, old, new)) is not None), None)


def refine(changes: tuple[Change, ...], old: Effective, new: Effective) -> tuple[Change, ...]:
    judged = ((each, judge(each, old, new)) for each in changes)
    return tuple(replace(each, cost=found.cost) if found else each for each, found in judged)
