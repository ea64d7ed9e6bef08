"""Names of the deployment, the cluster and its partitions, names that CycleForge makes up, and tags, against limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal

from .. import catalog
from ..catalog.rule_facts import Length
from ..definition.model.slurm import Slurm
from ..plan.created_types import created_types
from ..plan.deployment import Plan
from ..plan.derived_names import derived_names
from ..plan.names import OWNER_TAG, node_stem, size_part, tags_of
from ..plan.network import writes_dns_zone
from ..problems.problem import Problem
from ..words.counts import counted
from .base import ClusterRule, DefinitionRule, Path, PlanRule, Site, partitions, quoted

_NAME = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?")


def _cleaned(name: str, longest: int) -> str | None:
    """The nearest legal name; None when nothing of the name is left."""
    legal = re.sub(r"[^a-z0-9]+", "-", name[:200].lower()).lstrip("-0123456789")[:longest].strip("-")
    return legal if _NAME.fullmatch(legal) and legal != name else None


def _fault(name: str) -> str | None:
    """Why a name is not made of a-z, 0-9 and -, beginning with a letter; None when it is."""
    wrong = next((sign for sign in name if not re.fullmatch("[a-z0-9-]", sign)), None)
    if _NAME.fullmatch(name):
        return None
    if not name:
        return "is empty"
    if wrong is not None and wrong.isupper():
        return f"has the upper-case letter {quoted(wrong)}"
    if wrong is not None:
        return {"_": "has an underscore", " ": "has a space"}.get(wrong, f"has the character {quoted(wrong)}")
    return "ends with a hyphen" if name[0].isalpha() else f"begins with {quoted(name[0])} instead of a letter"


def _hint(name: str, longest: int) -> str:
    legal = _cleaned(name, longest)
    return f"for example '{legal}'" if legal else "use a-z, 0-9 and -, beginning with a letter"


def _misfits(rule: DefinitionRule, path: Path, noun: str, name: str | None, bounds: Length) -> Iterator[Problem]:
    """The problem of a name whose length or characters do not fit."""
    if name is None:
        return
    if not bounds.min <= len(name) <= bounds.max:
        text = f"has {counted(len(name), 'character')}; {bounds.min} to {bounds.max} are allowed"
        yield rule.problem(path, f"{noun} {quoted(name)} {text}")
    elif fault := _fault(name):
        yield rule.problem(path, f"{noun} {quoted(name)} {fault}", _hint(name, bounds.max))


class DeploymentName(DefinitionRule):
    id = "E0201"
    summary = "The name of the deployment is not valid in all names that are made from it."
    why = (
        "Resource group, network, server VM, tags and (by default) the cluster take their names from it, so it has to "
        "keep the strictest of their rules: 3 to 40 characters a-z, 0-9 and -, beginning with a letter."
    )
    fix = "Choose a name of 3 to 40 characters a-z, 0-9 and -, that begins with a letter and does not end with -."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"

    def check(self, site: Site) -> Iterator[Problem]:
        bounds = catalog.rule_figures().deployment_name
        yield from _misfits(self, ("name",), "the deployment name", site.definition.name, bounds)


class ResourceGroupName(DefinitionRule):
    id = "E0202"
    summary = "The name of the resource group is not valid in Azure."
    why = (
        "Azure accepts letters, digits, underscores, hyphens, periods and parentheses, at most 90, not ending in a "
        "period."
    )
    fix = "Choose another name, leave the key out (<name>-rg), or name a group that exists: {existing: NAME}."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"

    def check(self, site: Site) -> Iterator[Problem]:
        wanted, longest = site.definition.azure.resource_group, catalog.limits().names.resource_group.value
        if wanted is None:
            return
        name, path = (wanted, ()) if isinstance(wanted, str) else (wanted.existing, ("existing",))
        if not 1 <= len(name) <= longest:
            fault = f"has {counted(len(name), 'character')}; 1 to {longest} are allowed"
        elif not re.fullmatch(r"[\w().-]+", name):
            fault = "has characters other than letters, digits, _, -, . and parentheses"
        elif name.endswith("."):
            fault = "ends with a period"
        else:
            return
        yield self.problem(("azure", "resource_group", *path), f"the resource group name {quoted(name)} {fault}")


class ResourcePrefix(DefinitionRule):
    id = "E0220"
    summary = "The prefix of resource names is not valid in all names that are made from it."
    why = (
        "Resource group, network, server and jumpbox take their names from it, so it must follow the strictest of "
        "their rules: 3 to 40 characters a-z, 0-9 and -, beginning with a letter."
    )
    fix = "Use 3 to 40 characters a-z, 0-9 and -, beginning with a letter, or leave the key out: the deployment's name."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"

    def check(self, site: Site) -> Iterator[Problem]:
        bounds = catalog.rule_figures().deployment_name
        yield from _misfits(self, ("azure", "prefix"), "the prefix", site.definition.azure.prefix, bounds)


class ClusterName(ClusterRule):
    id = "E0203"
    summary = "The cluster name is not the same in CycleCloud, Slurm and host names."
    why = (
        "cyclecloud-slurm turns every character outside a-z, 0-9 and - into -, so that the folder below /sched, "
        "Slurm's ClusterName and the host names would differ from what was written; Slurm allows 40 characters, "
        "CycleCloud asks for 3."
    )
    fix = "Use 3 to 40 characters a-z, 0-9 and -, beginning with a letter."
    source = "https://slurm.schedmd.com/slurm.conf.html#OPT_ClusterName"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        bounds = catalog.rule_figures().cluster_name
        yield from _misfits(self, ("slurm", "cluster_name"), "the cluster name", slurm.cluster_name, bounds)


class PartitionName(DefinitionRule):
    id = "E0204"
    summary = "A partition name has characters that host names cannot contain."
    why = (
        "The name becomes the node array and part of every host name; an underscore there breaks name resolution, and "
        "nodes never join."
    )
    fix = "Use a-z, 0-9 and -, beginning with a letter and not ending with -."
    source = "https://github.com/Azure/cyclecloud-slurm/issues/514"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            fault = _fault(partition.name)
            if fault:
                text = f"the partition name {quoted(partition.name)} {fault}"
                yield self.problem((*path, "name"), text, _hint(partition.name, 30))


class PartitionTwice(DefinitionRule):
    id = "E0205"
    summary = "Two partitions have the same name."
    why = "azslurm disables node arrays that share a static partition and reports it only in its log."
    fix = "Rename one of them."
    source = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"

    def check(self, site: Site) -> Iterator[Problem]:
        seen: dict[str, tuple[str | int, ...]] = {}
        for path, partition in partitions(site):
            key = partition.name.lower()
            if key in seen:
                text = f"a second partition has the name {quoted(partition.name)}"
                yield self.second((*path, "name"), text, seen[key])
            seen.setdefault(key, (*path, "name"))


class PartitionReserved(DefinitionRule):
    id = "E0206"
    summary = "A partition has a name that the cluster template or Slurm uses for something else."
    why = "The template would have two sections of one name, or Slurm would read the name as a keyword."
    fix = "Choose another name."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/templates/slurm.txt"

    def check(self, site: Site) -> Iterator[Problem]:
        reserved = catalog.rule_figures().reserved_partition_names.values
        for path, partition in partitions(site):
            reason = reserved.get(partition.name.lower())
            if reason:
                yield self.problem(
                    (*path, "name"), f"the partition name {quoted(partition.name)} is reserved: {reason}"
                )


class HostNameTooLong(ClusterRule):
    id = "E0207"
    summary = "Cluster name, partition name and node number together are too long for a host name."
    why = (
        "Nodes are called <cluster>-<partition>-<number>, with vm_sizes <cluster>-<partition>-<size>-<number>; a label "
        "of a host name has at most 63 characters."
    )
    fix = "Shorten the partition's name, slurm.cluster_name or slurm.host_names.node_prefix."
    source = "https://man7.org/linux/man-pages/man7/hostname.7.html"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        cluster = slurm.cluster_name or site.definition.name
        longest = catalog.limits().names.host_name_label.value
        for path, partition in partitions(site):
            stem = node_stem(cluster, slurm.host_names.node_prefix, partition.name)
            parts = [f"-{size_part(size)}" for size in partition.vm_sizes or ()]
            host = f"{stem}{max(parts, key=len, default='')}-{partition.max_nodes}"
            if len(host) > longest:
                text = (
                    f"partition {quoted(partition.name)}: its host name {quoted(host)} has {len(host)} characters, at "
                    f"most {longest} are possible"
                )
                yield self.problem((*path, "name"), text, f"shorten the names by {len(host) - longest} characters")


_HOST_NAMES: Path = ("slurm", "host_names")
_INSTALLER = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm-install/installlib.py"


class BadHostName(ClusterRule):
    id = "E0235"
    summary = "A host name option is not valid in host names."
    why = (
        "cyclecloud-slurm replaces other characters and compares in lower case, so a node would wait for a name that "
        "it never gets."
    )
    fix = "Use a-z, 0-9 and hyphens; a letter first, and in the scheduler's name no hyphen at the end."
    source = _INSTALLER

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        prefix, name = slurm.host_names.node_prefix, slurm.host_names.scheduler
        longest = catalog.limits().names.host_name_label.value
        if prefix and not re.fullmatch(r"[a-z][a-z0-9-]*", prefix):
            text = f"the node prefix {quoted(prefix)} is not of a-z, 0-9 and hyphens, a letter first"
            yield self.problem((*_HOST_NAMES, "node_prefix"), text, "for example node_prefix: lab-")
        if name is not None and not (len(name) <= longest and re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name)):
            text = f"the scheduler's name {quoted(name)} is not 1 to {longest} of a-z, 0-9 and hyphens, a letter first"
            yield self.problem((*_HOST_NAMES, "scheduler"), text, "for example scheduler: lab-head")


class SameHostName(ClusterRule):
    id = "E0245"
    summary = "The scheduler has the name of a node or of the machine itself."
    why = "A name leads to one address: nodes would look for slurmctld on the wrong machine."
    fix = "Choose another name in slurm.host_names."
    source = "https://slurm.schedmd.com/slurm.conf.html#OPT_SlurmctldHost"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        cluster = slurm.cluster_name or site.definition.name
        name = slurm.host_names.scheduler
        if name is None:
            return
        stems = [node_stem(cluster, slurm.host_names.node_prefix, each.name) for _, each in partitions(site)]
        stems += [node_stem(cluster, slurm.host_names.node_prefix, each) for each in ("login", "scheduler-ha")]
        is_node = any(name.startswith(f"{stem}-") and name[len(stem) + 1 :].isdecimal() for stem in stems)
        if is_node or name == "localhost":
            what = "is one of the nodes" if is_node else "is every machine's own name"
            yield self.problem((*_HOST_NAMES, "scheduler"), f"the scheduler's name {quoted(name)} {what}")


class NoNodePrefix(ClusterRule):
    id = "W0244"
    summary = "Names of nodes do not say which cluster they belong to, in a network that may have another one."
    why = "Two clusters with a partition of the same name would have two nodes of one name in the network's DNS."
    fix = "Leave slurm.host_names.node_prefix out, or silence this rule if no other cluster is in the network."
    source = (
        "https://learn.microsoft.com/azure/virtual-network/virtual-networks-name-resolution-for-vms-and-role-instances"
    )

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        shared = site.definition.network.existing is not None
        if slurm.host_names.node_prefix == "" and shared:
            name = site.definition.slurm.partitions[0].name if site.definition.slurm else ""
            text = f"nodes are called {name}-1 and so on, and so may those of another cluster in this network"
            yield self.problem((*_HOST_NAMES, "node_prefix"), text)


class DerivedNameDoesNotFit(PlanRule):
    id = "E0256"
    summary = "A name that is made from the definition is not one that Azure accepts."
    why = (
        "Names of resources are put together from names of the definition, each of which may be valid by itself while "
        "the whole is too long. Azure refuses it when a part of the deployment already exists."
    )
    fix = "Shorten the name at which the message points, or azure.prefix, with which most names begin."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules"

    def check(self, plan: Plan) -> Iterator[Problem]:
        for each in dict.fromkeys(derived_names(plan)):
            rule = catalog.resource_names().names[each.type]
            named = f"{rule.words} would be called '{each.name}'"
            over = len(each.name) - rule.max
            if over > 0:
                text = f"{named}, which has {len(each.name)} characters; Azure allows {rule.max}"
                yield self.problem(each.path, text, f"shorten it, or azure.prefix, by {over}")
            elif len(each.name) < rule.min or not re.fullmatch(rule.pattern, each.name):
                yield self.problem(each.path, f"{named}, which Azure does not accept")


class Tags(DefinitionRule):
    id = "E0212"
    summary = "A tag is not valid in Azure."
    why = (
        "Azure limits the number, length and characters of tags; an invalid tag stops the deployment. A resource takes "
        "50, a private DNS zone and its link take 15; a storage account takes shorter names than others, and Bicep no "
        "longer ones than its identifiers are. All resources get the same tags."
    )
    fix = "Shorten or rename the tag, or leave out some."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources"

    def check(self, site: Site) -> Iterator[Problem]:
        tags = site.definition.tags
        has_account = any(each.type == "Microsoft.Storage/storageAccounts" for each in created_types(site.definition))
        yield from self._too_many(site)
        seen: dict[str, str] = {}
        for name, value in tags.items():
            fault = tag_fault(name, value, "tag_name_of_storage_account" if has_account else "tag_name_in_bicep")
            if fault is None and name.lower() in seen:
                fault = f"differs from {quoted(seen[name.lower()])} only in case, which Azure does not tell apart"
            if fault:
                yield self.problem(("tags", name), f"the tag {quoted(name)} {fault}", on_key=True)
            seen.setdefault(name.lower(), name)

    def _too_many(self, site: Site) -> Iterator[Problem]:
        given, names = len(site.definition.tags), catalog.limits().names
        with_zone = writes_dns_zone(site.definition, site.layout)
        own = len(tags_of(site.definition)) - given
        most = (names.tags_per_dns_zone if with_zone else names.tags_per_resource).value - own
        if given > most:
            text = f"{given} tags are given; with the {own} that CycleForge adds, {most} are possible"
            why = f": a private DNS zone or its link, which this deployment creates, takes {most + own}"
            yield self.problem(("tags",), text + why * with_zone, on_key=True)


_Longest = Literal["tag_name", "tag_name_of_storage_account", "tag_name_in_bicep"]


def tag_fault(name: str, value: str, limit: _Longest = "tag_name") -> str | None:
    """Why Azure or CycleForge refuses a tag; None for one that is fine. `limit` names the one of its length."""
    rule, names = catalog.rule_figures().tag_names, catalog.limits().names
    longest_name = getattr(names, limit).value
    longest_value = names.tag_value.value
    if name.lower() == OWNER_TAG:
        return "is the one by which CycleForge finds what belongs to a deployment"
    forbidden = [sign for sign in rule.forbidden_characters if sign in name]
    if not name.strip():
        return "has no name"
    if len(name) > longest_name:
        where = {"tag_name_of_storage_account": " on a storage account", "tag_name_in_bicep": " in Bicep"}.get(
            limit, ""
        )
        return f"has a name of {len(name)} characters; at most {longest_name} are allowed{where}"
    if forbidden:
        return f"has the character {forbidden[0]}, which is not allowed in tag names"
    if name.lower().startswith(tuple(rule.reserved_prefixes)):
        return "begins with a word that Azure reserves: azure, microsoft or windows"
    if len(value) > longest_value:
        return f"has a value of {len(value)} characters; at most {longest_value} are allowed"
    if not all(sign.isprintable() for sign in name + value):
        return "has a control character"
    return None
