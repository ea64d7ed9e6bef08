"""Memory of nodes: what Slurm is told, and what the guest has."""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..catalog.sizes import VmSize
from ..definition.model.slurm import Partition, Slurm
from ..plan.real_memory import real_memory_mib, withheld_percent
from ..problems.problem import Problem
from .base import ClusterRule, Site
from .roles import RoleNode, partition_label, role_sizes
from .wording import first_given

_MEMORY = "https://slurm.schedmd.com/slurm.conf.html#OPT_node_reg_mem_percent=#"
_MIB_PER_GIB = 1024


class LessThanConfigured(ClusterRule):
    id = "W0431"
    summary = "A node has less memory than Slurm is told."
    why = (
        "Slurm refuses a node that registers with less than 90 % of RealMemory. A node that it takes nevertheless runs "
        "out of memory when jobs use what they were given."
    )
    fix = "Remove dampen_memory_percent, or set the percentage of the message."
    source = _MEMORY

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for node, partition in _of_partitions(site):
            size = site.vm_size(node.vm_size)
            told, guest = _told_mib(partition, size), _most_mib(size)
            if told is None or guest is None or told <= guest:
                continue
            then = "refuses them" if _refused(told, guest) else "gives jobs more than there is"
            has = f"{guest:,}" if size.lowest_guest_memory_mib is not None else f"less than {guest + 1:,}"
            yield self.problem(
                first_given(site, (*node.path, "dampen_memory_percent"), node.size_path),
                f"{partition_label(partition)}: Slurm is told that a node has {told:,} MiB, but guests of "
                f"{node.vm_size} have {has} MiB, and Slurm {then}",
                _hint(size),
            )


class UnknownGuestMemory(ClusterRule):
    id = "W0441"
    summary = "Nobody has published how much memory a node of a static pool has."
    why = (
        "azslurm takes RealMemory from the nominal memory of the VM size. Most guests have 98 % of it, some 93 %; the "
        "default withholds 5 %. Slurm takes a node that lacks up to a tenth, and gives its jobs memory that is not "
        "there; a node of a static pool runs on like that for weeks."
    )
    fix = (
        "Start one node, read RealMemory from `slurmd -C` on it, and set dampen_memory_percent so that at least as "
        "much is withheld as the guest lacks; for a custom VM size name guest_memory_mib. Silence this rule if the "
        "nodes are known to have as much."
    )
    source = _MEMORY

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if slurm.autoscale:
            return
        for node, partition in _of_partitions(site):
            size = site.vm_size(node.vm_size)
            told = _told_mib(partition, size)
            if told is None or partition.dampen_memory_percent is not None or _most_mib(size) is not None:
                continue
            yield self.problem(
                node.size_path,
                f"{partition_label(partition)} is a static pool, and no memory of a guest of {node.vm_size} is "
                f"published: Slurm gives jobs {told:,} MiB, also of nodes that have less",
                "dampen_memory_percent, as `slurmd -C` on a node shows",
            )


def _of_partitions(site: Site) -> Iterator[tuple[RoleNode, Partition]]:
    """The partitions, each as often as it has VM sizes."""
    for node in role_sizes(site):
        if node.partition is not None:
            yield node, node.partition


def _told_mib(partition: Partition, size: VmSize) -> int | None:
    """RealMemory of the partition's nodes; None where the nominal memory is not known."""
    own = partition.dampen_memory_percent
    return real_memory_mib(size.memory_gib, withheld_percent(size) if own is None else own) if size.memory_gib else None


def _most_mib(size: VmSize) -> int | None:
    """The published memory of a guest; where there is none, the nominal memory if even that is too little."""
    if size.lowest_guest_memory_mib is not None or size.memory_gib is None:
        return size.lowest_guest_memory_mib
    nominal = int(size.memory_gib * _MIB_PER_GIB)
    return nominal - 1 if real_memory_mib(size.memory_gib, None) >= nominal else None


def _refused(told: int, guest: int) -> bool:
    """Whether Slurm refuses a node with that much memory; those of a static pool are State=CLOUD too."""
    return guest < told * catalog.limits().cloud_node_memory_percent.value / 100


def _hint(size: VmSize) -> str | None:
    needed = withheld_percent(size) or catalog.limits().memory_withheld_percent.value
    fits = size.lowest_guest_memory_mib is not None and size.memory_gib is not None
    if not fits or real_memory_mib(size.memory_gib or 0, needed) > (size.lowest_guest_memory_mib or 0):
        return "choose a VM size with more memory"
    return f"dampen_memory_percent: {needed}"
