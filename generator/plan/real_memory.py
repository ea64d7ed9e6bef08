"""RealMemory: what azslurm tells Slurm about the memory of a node, and how much of it must be withheld.

azslurm computes it from the nominal memory of the VM size, as Azure lists it, because no node runs yet. The guest has
less than that: firmware, hypervisor and kernel keep a part. Slurm refuses a node that registers with too little ("Low
RealMemory (reported:… < 90.00% of configured:…)"): 90 % of RealMemory is demanded of a node with State=CLOUD, all of it
of any other. A job that asks for all of RealMemory fails on a node that has less, also on one that was taken.
"""

from __future__ import annotations

from .. import catalog
from ..catalog.sizes import VmSize

_MIB_PER_GIB = 1024


def real_memory_mib(nominal_gib: float, withheld_percent: int | None) -> int:
    """RealMemory of a node (MiB), as azslurm 4.0.9 computes it: of `slurm.dampen_memory` or, with None, of its default.

    Source: Azure/cyclecloud-slurm 4.0.9, azure-slurm/slurmcc/partition.py (Partition, fetch_partitions) and cli.py
    (_partitions). It takes the size's memory in GiB of 1024 MiB, withholds the percentage but at least 1 GiB, cuts
    off the fraction and never writes less than 1 GiB.
    """
    least = catalog.limits().memory_withheld_mib.value
    nominal = nominal_gib * _MIB_PER_GIB
    share = (
        withheld_percent if withheld_percent is not None else catalog.limits().memory_withheld_percent.value
    ) / 100.0
    return max(int(least), int(nominal - max(least, nominal * share)))


def withheld_percent(size: VmSize) -> int | None:
    """The `slurm.dampen_memory` that the guest of a size needs; None where azslurm's default does, or is all there is.

    A little of the guest's memory stays free, because the lowest published figure is that of one node and one kernel.
    """
    guest, nominal = size.lowest_guest_memory_mib, size.memory_gib
    default = int(catalog.limits().memory_withheld_percent.value)
    if guest is None or nominal is None:
        return None
    wanted = guest * (1 - catalog.limits().guest_memory_spare_percent.value / 100)
    fitting = (percent for percent in range(default, 100) if real_memory_mib(nominal, percent) <= wanted)
    found = next(fitting, None)
    return None if found == default else found
