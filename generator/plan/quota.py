"""Quota: the one computation that `cycleforge plan`, `effective.yaml`, the README and preflight print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from .fleet import Machines

ALL, SPOT = "cores", "lowPriorityCores"
"""Azure's names of the limits that count the vCPUs of all families."""
_TITLES = {ALL: f"all vCPUs of the region ({ALL})", SPOT: f"spot vCPUs of the region ({SPOT})"}


class QuotaUse(Struct, frozen=True):
    """VMs of one kind that may run at once: the server, the jumpbox, or nodes of one role."""

    name: str
    """For people: `CycleCloud server`, `scheduler`, `partition hpc`."""
    vm_size: str
    vms: int
    vcpus: int | None
    """Of all these VMs together; None = the catalogue does not know the size."""
    family: str | None
    spot: bool


class QuotaLimit(Struct, frozen=True):
    """A limit of the region that must leave room for `vcpus` beyond what already runs."""

    name: str
    """The family, or words that say what is counted."""
    usage: str | None
    """`name.value` of `az vm list-usage` without its spaces; None where the family is not known."""
    vcpus: int | None


class QuotaPlan(Struct, frozen=True):
    """What the deployment uses with every partition at its limit."""

    uses: tuple[QuotaUse, ...]
    limits: tuple[QuotaLimit, ...]
    """Families in the order of `uses`, then all cores of the region. Spot VMs count against a limit of their own."""
    vm_sizes: tuple[str, ...]
    """Sizes that the subscription must be offered, sorted."""
    custom_vm_sizes: tuple[str, ...]
    """Those of them whose figures the definition gives."""

    @property
    def usages(self) -> tuple[str, ...]:
        """Names of the limits as `az vm list-usage` writes them without spaces, sorted."""
        return tuple(sorted({limit.usage for limit in self.limits if limit.usage}))


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
