"""The partitions together, login nodes, and attributes of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from .. import catalog
from ..definition.model.slurm import Slurm
from ..problems.problem import Problem, Related
from ..words.counts import listed
from .base import ClusterRule, DefinitionRule, Site
from .figures import figures
from .roles import gpus, partition_label, roles
from .wording import PARTITIONS, meant, partitions, quoted


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
            problem = self.problem(
                (*path, "default"), f"{partition_label(partition)} is a second default besides {quoted(first.name)}"
            )
            yield replace(problem, related=(Related("the first one", (*first_path, "default")),))


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
        owned = figures().owned_attributes.keys
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
        known, owned = figures().project_attributes.keys, figures().owned_attributes.keys
        patterns = [re.escape(key).replace("<name>", "[a-z0-9-]+").replace("<n>", "[0-9]+") for key in known]
        for node in roles(site):
            for key in node.settings.configuration:
                if not key.startswith("cycleforge.") or _owner(key, owned):
                    continue
                if not any(re.fullmatch(pattern, key) for pattern in patterns):
                    text = f"{node.label}: no shipped project reads the attribute {quoted(key)}"
                    path = (*node.path, "configuration", key)
                    yield self.problem(path, text, meant(key, known), on_key=True)
