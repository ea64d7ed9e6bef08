"""Cores that a deployment needs, and the limits of the region that count them."""

from __future__ import annotations

from ...records import record


@record
class QuotaUse:
    """VMs of one kind that may run at once: the server, the jumpbox, or nodes of one role."""

    name: str
    """For people: `CycleCloud server`, `scheduler`, `partition hpc`."""
    vm_size: str
    vms: int
    vcpus: int | None
    """Of all these VMs together; None = the catalogue does not know the size."""
    family: str | None
    spot: bool


@record
class QuotaLimit:
    """A limit of the region that must leave room for `vcpus` beyond what already runs."""

    name: str
    """The family, or words that say what is counted."""
    usage: str | None
    """`name.value` of `az vm list-usage` without its blanks; None where the family is not known."""
    vcpus: int | None


@record
class QuotaPlan:
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
