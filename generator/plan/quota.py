"""Quota: the one computation that `cycleforge plan`, `effective.yaml`, the README and preflight print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from .fleet import Machines
from .types import QuotaLimit, QuotaPlan, QuotaUse

ALL, SPOT = "cores", "lowPriorityCores"
"""Azure's names of the limits that count the vCPUs of all families."""
_TITLES = {ALL: f"all vCPUs of the region ({ALL})", SPOT: f"spot vCPUs of the region ({SPOT})"}


def quota_plan(fleet: Iterable[Machines]) -> QuotaPlan:
    """With every partition at its limit; the jumpbox comes last."""
    machines = sorted(fleet, key=lambda each: each.role == "jumpbox")
    sizes = {each.vm_size: each.hardware for each in machines}
    limits = by_limit(machines, lambda each: each.hardware.quota_family or f"family of {each.vm_size}")
    return QuotaPlan(
        tuple(
            QuotaUse(
                each.title if each.role != "login" else "login",
                each.vm_size,
                each.most,
                _vcpus([each]),
                each.hardware.quota_family,
                each.spot,
            )
            for each in machines
        ),
        tuple(
            QuotaLimit(_TITLES.get(name, name), _usage(name, using), _vcpus(using)) for name, using in limits.items()
        ),
        tuple(sorted(sizes)),
        tuple(name for name in sorted(sizes) if sizes[name].custom),
    )


def by_limit(fleet: Iterable[Machines], family: Callable[[Machines], str]) -> Mapping[str, Sequence[Machines]]:
    """Which machines count against each limit of the region: of their families, of spot VMs, last of all others."""
    limits: dict[str, list[Machines]] = {}
    everything: list[Machines] = []
    for each in fleet:
        limits.setdefault(SPOT if each.spot else family(each), []).append(each)
        everything += [] if each.spot else [each]
    return limits | {ALL: everything} if limits else limits


def _usage(name: str, using: Sequence[Machines]) -> str | None:
    if name in _TITLES:
        return name
    return name.replace(" ", "") if using[0].hardware.quota_family else None


def _vcpus(machines: Iterable[Machines]) -> int | None:
    """vCPUs together; None as soon as one size is unknown."""
    total = 0
    for each in machines:
        if not each.hardware.vcpus:
            return None
        total += each.hardware.vcpus * each.most
    return total
