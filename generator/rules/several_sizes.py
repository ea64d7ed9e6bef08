"""Partitions of several VM sizes, which azslurm knows as dynamic ones."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.sizes import VmSize
from ..definition.model.slurm import Partition, Slurm
from ..plan.names import size_part
from ..problems.problem import Problem, Related
from ..words.counts import listed
from .base import ClusterRule, DefinitionRule, Path, Site, choose_from, listed_jobs, partitions, quoted
from .roles import partition_label

_PARTITIONS = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm/slurmcc/partition.py"
_DYNAMIC = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9#dynamic-partitions"
_ARCHITECTURES = {"aarch64": "arm64", "x86_64": "x86-64"}


def _several(site: Site) -> Iterator[tuple[Path, Partition, tuple[VmSize, ...]]]:
    """The partitions with `vm_sizes`, their paths and what is known of the sizes."""
    for path, partition in partitions(site):
        if partition.vm_sizes is not None:
            yield path, partition, tuple(site.vm_size(size) for size in partition.vm_sizes)


class SizeOrSizes(DefinitionRule):
    id = "E3101"
    summary = "A partition has no VM size, or two keys for it."
    why = "Without a size there are no nodes, and `vm_size` beside `vm_sizes` leaves open which nodes are meant."
    fix = "Write vm_size with one VM size, or vm_sizes with a list of them."
    source = _DYNAMIC

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            label = partition_label(partition)
            if partition.vm_size is None and partition.vm_sizes is None:
                yield self.problem(path, f"{label} has no VM size", "vm_size: Standard_D4ads_v5")
            elif partition.vm_size is not None and partition.vm_sizes is not None:
                text = f"{label} has both vm_size and vm_sizes"
                yield self.problem((*path, "vm_size"), text, "leave vm_size out", on_key=True)


class FewSizes(DefinitionRule):
    id = "E3102"
    summary = "The list vm_sizes has fewer than two different VM sizes."
    why = (
        "Nodes of several sizes are created by hand and have no placement group; for one size a usual partition does "
        "all of it. Two entries of the same size would be the same nodes."
    )
    fix = "Write each size once, and a single one as vm_size."
    source = _PARTITIONS

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition, _ in _several(site):
            names, seen = partition.vm_sizes or [], dict[str, int]()
            if len(names) < 2:
                text = f"{partition_label(partition)} has {'no' if not names else 'only one'} VM size in vm_sizes"
                yield self.problem((*path, "vm_sizes"), text, f"vm_size: {names[0]}" if names else None, on_key=True)
            for index, name in enumerate(names):
                first = seen.setdefault(name.casefold(), index)
                if first != index:
                    text = f"{partition_label(partition)} has the VM size {quoted(name)} twice"
                    yield self.second((*path, "vm_sizes", index), text, (*path, "vm_sizes", first))


class PlacementGroupOfSeveral(DefinitionRule):
    id = "E3103"
    summary = "A partition of several VM sizes is marked hpc."
    why = (
        "A placement group holds VMs of one size, and azslurm finds no bucket for a node of a dynamic partition in it: "
        "no node of the partition would start."
    )
    fix = "Remove `hpc: true`, or give each size that runs tightly coupled jobs a partition of its own."
    source = _PARTITIONS

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition, _ in _several(site):
            if partition.hpc:
                text = f"{partition_label(partition)} has hpc: true and several VM sizes"
                yield self.problem((*path, "hpc"), text, "one partition for each size")


class UnlikeSizes(DefinitionRule):
    id = "E3104"
    summary = "The VM sizes of one partition need different images."
    why = (
        "All nodes of a partition have one image. It runs on one processor architecture and has the driver of one "
        "maker of GPUs; nodes of the other sizes would not boot, or would have no GPUs."
    )
    fix = "Write a partition for each kind of size."
    source = "https://github.com/Azure/azhpc-images"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition, sizes in _several(site):
            label, place = partition_label(partition), (*path, "vm_sizes")
            kinds = dict.fromkeys(_ARCHITECTURES.get(size.arch, size.arch) for size in sizes if size.known)
            if len(kinds) > 1:
                text = f"{label} has sizes for {listed(tuple(kinds))}, and one image for all of them"
                yield self.problem(place, text, on_key=True)
            vendors = dict.fromkeys(size.gpu_vendor for size in sizes if size.gpu_count and size.gpu_vendor)
            if len(vendors) > 1:
                text = f"{label} has sizes with GPUs of {listed(tuple(vendors))}, and one image for all of them"
                yield self.problem(place, text, on_key=True)


class InfiniBandOfSeveral(DefinitionRule):
    id = "W3105"
    summary = "A partition of several VM sizes has one with InfiniBand."
    why = (
        "Nodes of several sizes are in no placement group, and InfiniBand connects only nodes of one: jobs on several "
        "nodes would wait for each other over Ethernet, or fail."
    )
    fix = "Give the size a partition of its own, or silence this rule if every job runs on one node."
    source = "https://learn.microsoft.com/azure/cyclecloud/concepts/node-cluster"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition, sizes in _several(site):
            for index, size in enumerate(sizes):
                if size.infiniband:
                    text = (
                        f"{partition_label(partition)}: InfiniBand of {size.name} does not connect nodes of a "
                        "partition with several VM sizes"
                    )
                    yield self.problem((*path, "vm_sizes", index), text)


class PhysicalCpusOfSeveral(DefinitionRule):
    id = "E3106"
    summary = "A partition of several VM sizes counts physical cores."
    why = (
        "azslurm writes the threads of a core only for partitions of one size. Nodes of several sizes are created with "
        "the vCPUs that the catalogue knows, and a job would get hyperthreads all the same."
    )
    fix = "Remove use_physical_cpus, and submit jobs with --hint=nomultithread, or use one size."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm/slurmcc/cli.py"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition, _ in _several(site):
            if partition.use_physical_cpus:
                text = f"{partition_label(partition)} has use_physical_cpus: true and several VM sizes"
                yield self.problem((*path, "use_physical_cpus"), text)


class StaticPoolOfSeveral(ClusterRule):
    id = "E3107"
    summary = "A static pool has a partition of several VM sizes."
    why = (
        "Nodes of several sizes exist so that jobs choose among them. A static pool stops no node, so each size that a "
        "job got once runs and costs money until someone stops it."
    )
    fix = "Set slurm.autoscale: true, or write a partition for each size of the pool."
    source = _DYNAMIC

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if slurm.autoscale:
            return
        for path, partition, _ in _several(site):
            text = f"{partition_label(partition)} has several VM sizes, and slurm.autoscale is false"
            yield self.problem((*path, "vm_sizes"), text, on_key=True)


class SameNodeNames(DefinitionRule):
    id = "E3108"
    summary = "Nodes of two partitions have the same names."
    why = "The size is a part of the names in a partition of several sizes; Slurm takes each name once."
    fix = "Rename one of the partitions."
    source = "https://slurm.schedmd.com/slurm.conf.html#OPT_NodeName"

    def check(self, site: Site) -> Iterator[Problem]:
        usual = {partition.name: path for path, partition in partitions(site) if partition.vm_sizes is None}
        for path, partition, _ in _several(site):
            for index, size in enumerate(partition.vm_sizes or ()):
                stem = f"{partition.name}-{size_part(size)}"
                if stem in usual:
                    text = f"nodes of {partition_label(partition)} with {size} are named like those of {quoted(stem)}"
                    yield self.problem(
                        (*path, "vm_sizes", index),
                        text,
                        related=(Related("the other partition", (*usual[stem], "name")),),
                    )


class JobOnOtherSize(DefinitionRule):
    id = "E3109"
    summary = "A job asks for a VM size that its partition does not have."
    why = "Slurm refuses it: no node has the feature that the job demands."
    fix = "Name a VM size of the partition, or leave vm_size out."
    source = "https://slurm.schedmd.com/sbatch.html"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, job in listed_jobs(site):
            every = [partition for _, partition in partitions(site)]
            chosen = [partition for partition in every if job.partition in (None, partition.name)]
            sizes = tuple(dict.fromkeys(size for partition in chosen for size in partition.sizes))
            if job.vm_size is not None and chosen and job.vm_size not in sizes:
                where = f"partition {quoted(job.partition)} has no" if job.partition else "no partition has"
                text = f"job {quoted(job.name or job.recipe)}: {where} nodes of {quoted(job.vm_size)}"
                yield self.problem((*path, "vm_size"), text, choose_from(job.vm_size, sizes))
