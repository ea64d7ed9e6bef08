"""MIG: partitions whose GPUs are divided into slices."""

from __future__ import annotations

from collections.abc import Iterator

from ..definition.model.slurm import Partition, Slurm
from ..plan.assignment import GPU_NODE
from ..plan.mig import profiles_of
from ..problems.problem import Problem
from ..words.suggestions import suggestion
from .base import ClusterRule, Path, Site
from .roles import partition_label
from .wording import partitions, quoted

_MIG = "https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html"


def _divided(site: Site) -> Iterator[tuple[Path, Partition, str]]:
    for path, partition in partitions(site):
        if partition.mig_profile is not None:
            yield path, partition, partition.mig_profile


class UnknownProfile(ClusterRule):
    id = "E0451"
    summary = "The GPUs of a partition do not have its MIG profile."
    why = "Its nodes would get no slices, slurmd would not start on them, and no job would ever run there."
    fix = "Choose a profile of the GPU model, or remove mig_profile."
    source = _MIG

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for path, partition, profile in _divided(site):
            if partition.vm_size is None:
                continue
            size, place, label = site.vm_size(partition.vm_size), (*path, "mig_profile"), partition_label(partition)
            profiles = profiles_of(size)
            if not size.known or profile in profiles:
                continue
            if profiles:
                offered = ", ".join(profiles)
                text = f"{label}: {size.gpu_model} GPUs have no MIG profile {quoted(profile)}, they have {offered}"
                yield self.problem(
                    place, text, suggestion(profile, profiles) or f"for example '{next(iter(profiles))}'"
                )
            else:
                has = f"{size.gpu_model} GPUs, whose MIG profiles are not known" if size.gpu_count else "no GPUs"
                yield self.problem(place, f"{label} has a mig_profile, and {partition.vm_size} has {has}")


class HealthagentOnSlices(ClusterRule):
    id = "E0461"
    summary = "healthagent runs in a cluster with MIG slices."
    why = (
        "Its prolog and epilog take the numbers of a job's slices for numbers of GPUs. What they find wrong with GPU 9 "
        "of 8 drains the node, and then the next one."
    )
    fix = "Set slurm.healthagent: false; the checks of slurm_nhc know slices and stay."
    source = "https://github.com/Azure/cyclecloud-healthagent"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for path, partition, _ in _divided(site):
            if slurm.runs_healthagent:
                text = f"{partition_label(partition)} has MIG slices, which healthagent takes for GPUs"
                yield self.problem((*path, "mig_profile"), text, "healthagent: false, below slurm")


class NobodyDivides(ClusterRule):
    id = "E0471"
    summary = "A partition with a MIG profile does not have the project that divides its GPUs."
    why = "Slurm would be told of slices that nobody makes, so slurmd would not start on its nodes."
    fix = "Add misc_ndv4 to the projects of the partition, or remove `projects`."
    source = _MIG

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for path, partition, _ in _divided(site):
            named = (*(partition.projects or ()), *partition.extra_projects)
            if partition.projects is not None and GPU_NODE not in {text.partition(":")[0] for text in named}:
                text = f"{partition_label(partition)} has a mig_profile, but not the project {quoted(GPU_NODE)}"
                yield self.problem((*path, "projects"), text, f"add {GPU_NODE}")


class SlicesOfSeveralSizes(ClusterRule):
    id = "E0481"
    summary = "A partition with a MIG profile has several VM sizes."
    why = "azslurm takes one number of slices for all nodes of a node array, and nodes of other sizes have other GPUs."
    fix = "Make a partition with vm_size for the slices."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm/slurmcc/partition.py"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        for path, partition, _ in _divided(site):
            if partition.vm_sizes is not None:
                text = f"{partition_label(partition)} has a mig_profile and vm_sizes, and slices need one size"
                yield self.problem((*path, "mig_profile"), text, "vm_size instead of vm_sizes")
