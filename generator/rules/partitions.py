"""The partitions together, login nodes, attributes of nodes, MIG slices of GPUs, and the memory that Slurm is told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .. import catalog
from ..catalog.sizes import VmSize
from ..definition.model.slurm import Partition, Slurm
from ..plan.assignment import GPU_NODE
from ..plan.mig import profiles_of
from ..plan.real_memory import real_memory_mib, withheld_percent
from ..problems.problem import Problem
from ..words.counts import listed
from ..words.suggestions import suggestion
from .base import PARTITIONS, ClusterRule, DefinitionRule, Path, Site, first_given, meant, partitions, quoted
from .roles import RoleNode, gpus, partition_label, role_sizes, roles


class DefaultPartition(DefinitionRule):
    id = "E0501"
    summary = "There is no default partition, or more than one."
    why = (
        "Slurm refuses jobs without a partition when none is the default; with two, azslurm writes both and the last "
        "line wins."
    )
    fix = "Set default: true on exactly one partition."
    source = "https://github.com/Azure/cyclecloud-slurm/issues/294"

    def check(self, site: Site) -> Iterator[Problem]:
        every = list(partitions(site))
        defaults = [(path, partition) for path, partition in every if partition.default]
        if not defaults and len(every) > 1:
            names = listed(quoted(partition.name) for _, partition in every[:5])
            yield self.problem(
                PARTITIONS,
                f"none of the {len(every)} partitions is the default",
                f"default: true for one of {names}",
                on_key=True,
            )
        for path, partition in defaults[1:]:
            first_path, first = defaults[0]
            text = f"{partition_label(partition)} is a second default besides {quoted(first.name)}"
            yield self.second((*path, "default"), text, (*first_path, "default"))


class CostlyDefault(DefinitionRule):
    id = "W0502"
    summary = "The default partition has GPUs although there is a CPU partition."
    why = (
        "Every job without --partition, even a hello world, starts a GPU node and pays for it until it is idle long "
        "enough."
    )
    fix = "Make the CPU partition the default, or silence this rule if all users come for GPUs."
    source = "https://slurm.schedmd.com/slurm.conf.html#OPT_Default"

    def check(self, site: Site) -> Iterator[Problem]:
        every = list(partitions(site))
        cheap = [partition.name for _, partition in every if not gpus(site, partition.first_size)]
        for path, partition in every:
            count = gpus(site, partition.first_size)
            if partition.default and count and cheap:
                text = (
                    f"{partition_label(partition)} is the default, so a job without --partition starts a node with "
                    f"{count} GPUs"
                )
                yield self.problem((*path, "default"), text, f"default: true for {quoted(cheap[0])}")


class TooManyNodes(DefinitionRule):
    id = "E0503"
    summary = "The partitions together have more nodes than Slurm is set up for."
    why = "cyclecloud-slurm writes MaxNodeCount=10000; slurmctld does not start with more nodes."
    fix = "Lower max_nodes of some partitions."
    source = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"

    def check(self, site: Site) -> Iterator[Problem]:
        total = sum(partition.most_nodes for _, partition in partitions(site))
        most = catalog.limits().slurm_max_node_count.value
        if total > most:
            yield self.problem(
                PARTITIONS, f"the partitions together may have {total} nodes, Slurm is set up for {most}", on_key=True
            )


class LoginCount(ClusterRule):
    id = "E0505"
    summary = "More login nodes start than are allowed."
    why = "CycleCloud starts no node beyond the upper limit."
    fix = "Raise login.max_count, or lower login.count."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/templates/slurm.txt"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        login = slurm.login
        if login.max_count is not None and login.count > login.max_count:
            text = f"login.count is {login.count}, but login.max_count allows {login.max_count}"
            yield self.problem(("slurm", "login", "max_count"), text, f"max_count: {login.count}")


class IdleGpus(ClusterRule):
    id = "W0506"
    summary = "GPU nodes run until someone stops them."
    why = (
        "Without autoscaling, a node that a job or an administrator has started is not stopped when it is idle: it is "
        "paid for until someone stops it."
    )
    fix = "Set slurm.autoscale: true, or silence this rule if the capacity is reserved and paid for anyway."
    source = "https://azure.microsoft.com/pricing/details/virtual-machines/linux/"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if slurm.autoscale:
            return
        pools = [
            f"{partition.max_nodes} × {size} in {partition_label(partition)}"
            for _, partition in partitions(site)
            for size in partition.sizes
            if gpus(site, size)
        ]
        if pools:
            more = f" and {len(pools) - 5} more" if len(pools) > 5 else ""
            yield self.problem(
                ("slurm", "autoscale"),
                f"autoscale is off, so these run and cost from their first job until someone stops them: "
                f"{', '.join(pools[:5])}{more}",
            )


class OwnedAttribute(DefinitionRule):
    id = "E0507"
    summary = "A node attribute is one that the cluster template sets itself."
    why = "The template would have the key twice, and what azslurm assumes about the cluster would no longer hold."
    fix = "Remove the attribute; the message names the key of the definition that does the same."
    source = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"

    def check(self, site: Site) -> Iterator[Problem]:
        owned = catalog.rule_figures().owned_attributes.keys
        for node in roles(site):
            for key in node.settings.configuration:
                if prefix := _owner(key, owned):
                    text = f"{node.label}: the attribute {quoted(key)} belongs to the cluster template"
                    yield self.problem((*node.path, "configuration", key), text, owned[prefix], on_key=True)


def _owner(key: str, owned: Iterable[str]) -> str | None:
    """The attribute of the cluster template that a key is, or stands below."""
    lower = key.lower()
    return next((name for name in owned if lower == name or lower.startswith(f"{name}.")), None)


_ATTRIBUTE = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_][\w-]*)*", re.ASCII)


class BadAttribute(DefinitionRule):
    id = "E0508"
    summary = "A node attribute does not fit into one line of the cluster template."
    why = "Keys are words joined by dots; a line break in a value would begin another key or section."
    fix = "Use letters, digits, _, - and dots in the key and one line in the value."
    source = "https://learn.microsoft.com/azure/cyclecloud/cluster-references/configuration-reference"

    def check(self, site: Site) -> Iterator[Problem]:
        for node in roles(site):
            for key, value in node.settings.configuration.items():
                path = (*node.path, "configuration", key)
                if len(key) > 256 or not _ATTRIBUTE.fullmatch(key):
                    yield self.problem(
                        path,
                        f"{node.label}: the attribute {quoted(key)} is not a key of words joined by dots",
                        on_key=True,
                    )
                elif isinstance(value, str) and not all(sign.isprintable() or sign == "\t" for sign in value):
                    yield self.problem(
                        path,
                        f"{node.label}: the value of the attribute {quoted(key)} has a line break or control character",
                    )


class MisspeltAttribute(DefinitionRule):
    id = "W0509"
    summary = "A node attribute begins with cycleforge. and no shipped project reads it."
    why = "It is ignored; most often it is misspelt."
    fix = "Correct the key; projects/README.md lists all attributes. Choose another prefix for your own scripts."
    source = "https://learn.microsoft.com/azure/cyclecloud/cluster-references/configuration-reference"

    def check(self, site: Site) -> Iterator[Problem]:
        known, owned = catalog.rule_figures().project_attributes.keys, catalog.rule_figures().owned_attributes.keys
        patterns = [re.escape(key).replace("<name>", "[a-z0-9-]+").replace("<n>", "[0-9]+") for key in known]
        for node in roles(site):
            for key in node.settings.configuration:
                if not key.startswith("cycleforge.") or _owner(key, owned):
                    continue
                if not any(re.fullmatch(pattern, key) for pattern in patterns):
                    text = f"{node.label}: no shipped project reads the attribute {quoted(key)}"
                    path = (*node.path, "configuration", key)
                    yield self.problem(path, text, meant(key, known), on_key=True)


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
