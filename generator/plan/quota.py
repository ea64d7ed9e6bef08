"""Quota: the one computation that `cycleforge plan`, `effective.yaml` and the README print."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..catalog.sizes import VmSize
from .types import QuotaLimit, QuotaPlan, QuotaUse, ServerPlan, SlurmPlan

_ALL_CORES = "cores"
_SPOT_CORES = "lowPriorityCores"


SizeOf = Callable[[str], VmSize]
"""The VM size of a name: the catalogue's, or the definition's own."""


def quota_plan(server: ServerPlan | None, slurm: SlurmPlan | None, size_of: SizeOf) -> QuotaPlan:
    """Everything that may run at once: a new server, its jumpbox, schedulers, and every node of every role."""
    uses = tuple(use for use in _uses(server, slurm, size_of) if use.vms)
    sizes = tuple(sorted({use.vm_size for use in uses}))
    return QuotaPlan(uses, _limits(uses), sizes, tuple(size for size in sizes if size_of(size).custom))


def _uses(server: ServerPlan | None, slurm: SlurmPlan | None, size_of: SizeOf) -> Iterator[QuotaUse]:
    if server is not None:
        yield _use("CycleCloud server", size_of(server.vm_size), 1)
    if slurm is not None:
        yield _use("scheduler", slurm.scheduler.hardware, 2 if slurm.scheduler.high_availability else 1)
        yield _use("login", slurm.login.hardware, max(slurm.login.count, slurm.login.max_count))
        for array in slurm.node_arrays:
            for each in array.of_each_size:
                yield _use(f"partition {array.partition}", each.hardware, each.max_nodes, spot=array.spot)
    if server is not None and server.jumpbox is not None:
        yield _use("jumpbox", size_of(server.jumpbox.vm_size), 1)


def _use(name: str, size: VmSize, vms: int, *, spot: bool = False) -> QuotaUse:
    vcpus = size.vcpus * vms if size.vcpus else None
    return QuotaUse(name, size.name, vms, vcpus, size.quota_family, spot)


def _limits(uses: tuple[QuotaUse, ...]) -> tuple[QuotaLimit, ...]:
    usages = {_limit_name(use): _usage(use) for use in uses}
    families = (
        QuotaLimit(name, usage, _sum(use for use in uses if _limit_name(use) == name)) for name, usage in usages.items()
    )
    regular = (use for use in uses if not use.spot)
    if not uses:
        return ()
    return (*families, QuotaLimit("all vCPUs of the region (cores)", _ALL_CORES, _sum(regular)))


def _limit_name(use: QuotaUse) -> str:
    if use.spot:
        return f"spot vCPUs of the region ({_SPOT_CORES})"
    return use.family or f"family of {use.vm_size}"


def _usage(use: QuotaUse) -> str | None:
    if use.spot:
        return _SPOT_CORES
    return use.family.replace(" ", "") if use.family else None


def _sum(uses: Iterator[QuotaUse]) -> int | None:
    """vCPUs together; None as soon as one size is unknown."""
    total = 0
    for use in uses:
        if use.vcpus is None:
            return None
        total += use.vcpus
    return total
