"""A CycleCloud server that exists already: what cannot be said beside it, and what can be known of it offline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..definition.model.server import ExistingServer
from ..plan import names
from ..plan.access import kind_of
from ..plan.file_systems.registry import is_created
from ..problems.problem import Problem
from .azure_names import GUID
from .base import DefinitionRule, Path, Site, first_given, given, quoted

_EXISTING: Path = ("server", "existing")
_OF_A_NEW_SERVER: tuple[Path, ...] = (
    ("admin", "ssh_public_key"),
    ("network", "allowed_sources"),
    ("network", "subnets", "server"),
    ("network", "subnets", "endpoints"),
    ("network", "subnets", "bastion"),
    ("storage", "locker"),
)
_ACCOUNT = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)


class _ExistingServerRule(DefinitionRule):
    """A rule about `server.existing`; without that section there is nothing to check."""

    def check(self, site: Site) -> Iterator[Problem]:
        if site.definition.server.existing is not None:
            yield from self.check_existing(site, site.definition.server.existing)

    def check_existing(self, site: Site, existing: ExistingServer) -> Iterator[Problem]:
        raise NotImplementedError


class ServerExistingAndNew(_ExistingServerRule):
    id = "E1901"
    summary = "An existing server is named together with settings of a new one."
    why = "Nothing is created or changed on an existing server, so the setting would be ignored."
    fix = "Remove server.existing, or remove the settings of the new server."
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/projects"

    def check_existing(self, site: Site, existing: ExistingServer) -> Iterator[Problem]:
        keys = (name for name in site.definition.server.declared_keys if name != "existing")
        for path in (*(("server", name) for name in keys), *_OF_A_NEW_SERVER):
            if given(site, path):
                text = f"{'.'.join(map(str, path))} is ignored beside the existing server that server.existing names"
                yield self.problem(path, text, on_key=True)
        slurm = site.definition.slurm
        if slurm is not None and slurm.start_cluster:
            text = "slurm.start_cluster is ignored: you import the cluster on the existing server, and start it then"
            yield self.problem(("slurm", "start_cluster"), text, on_key=True)


class ServerOutOfReach(_ExistingServerRule):
    id = "E1902"
    summary = "A new network has no connection to the existing server."
    why = (
        "Nodes report to the server, and load projects from its locker, by private addresses. A new network reaches "
        "them only through a peering with the hub."
    )
    fix = "Use the network of the server in network.existing, or access: hub with the hub that it is connected to."
    source = "https://learn.microsoft.com/azure/virtual-network/virtual-network-peering-overview"

    def check_existing(self, site: Site, existing: ExistingServer) -> Iterator[Problem]:
        access = kind_of(site.definition)
        if site.definition.network.existing is None and not access.peers_with_hub:
            text = "the new network has no connection to the existing server, so nodes cannot report to it"
            hint = "network: {existing: {vnet_id: …, subnets: {compute: …}}}, or access: hub"
            path = first_given(site, ("network", "access"), _EXISTING)
            yield self.problem(path, text, hint, on_key=path == _EXISTING)


class ServerIdentity(_ExistingServerRule):
    id = "E1903"
    summary = "The identity of the existing server is not an object id."
    why = "Azure assigns roles to the object id of an identity; its name, resource id or client id is refused."
    fix = "Write what `az vm show --ids … --query identity.principalId` prints."
    source = "https://learn.microsoft.com/azure/role-based-access-control/role-assignments-cli"

    def check_existing(self, site: Site, existing: ExistingServer) -> Iterator[Problem]:
        value = existing.principal_id
        if value is not None and not re.fullmatch(GUID, value):
            text = f"the principal {quoted(value)} is not an id like 00000000-0000-0000-0000-000000000000"
            yield self.problem((*_EXISTING, "principal_id"), text, "az vm show --query identity.principalId")


class ServerAccount(_ExistingServerRule):
    id = "E1904"
    summary = "The name of the account in CycleCloud is not valid."
    why = "The cluster names it as its credentials, and <account>-storage as its locker; both would not be found."
    fix = "Write the name that the portal shows under Settings, CycleCloud, or that `cyclecloud account list` prints."
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/configuration"

    def check_existing(self, site: Site, existing: ExistingServer) -> Iterator[Problem]:
        if not _ACCOUNT.fullmatch(existing.account):
            text = f"the account {quoted(existing.account)} is not a word of letters, digits, _ and -"
            yield self.problem((*_EXISTING, "account"), text)
        elif existing.account.endswith("-storage"):
            text = f"{quoted(existing.account)} is the name of a locker; give that of its account"
            yield self.problem((*_EXISTING, "account"), text, f"account: {existing.account.removesuffix('-storage')}")


class ServerSubscription(_ExistingServerRule):
    id = "W1905"
    summary = "The existing server is in another subscription than the deployment."
    why = (
        "An account in CycleCloud is for one subscription. With one of another subscription, nodes cannot join the "
        "subnet or get their identity."
    )
    fix = "Check that server.existing.account is for azure.subscription_id, then silence this rule."
    source = "https://learn.microsoft.com/azure/cyclecloud/how-to/configuration"

    def check_existing(self, site: Site, existing: ExistingServer) -> Iterator[Problem]:
        wanted, found = site.definition.azure.subscription_id, _subscription(existing.vm_id)
        if wanted is not None and found is not None and wanted.lower() != found:
            text = f"the server is in the subscription {quoted(found)}, the deployment goes to {quoted(wanted)}"
            yield self.problem((*_EXISTING, "vm_id"), text)


class ServerGroup(_ExistingServerRule):
    id = "E1906"
    summary = "The deployment would take over the resource group of the existing server."
    why = "It sets the tags of its resource group, and deleting the deployment deletes the group with the server in it."
    fix = "Choose another resource group in azure.resource_group, or use this one as it is: {existing: NAME}."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/delete-resource-group"

    def check_existing(self, site: Site, existing: ExistingServer) -> Iterator[Problem]:
        group, parts = names.resource_group(site.definition), existing.vm_id.split("/")
        subscription = site.definition.azure.subscription_id
        same = subscription is None or subscription.lower() == _subscription(existing.vm_id)
        takes_over = names.creates_resource_group(site.definition) and same
        if takes_over and len(parts) > 4 and parts[4].lower() == group.lower():
            path = first_given(site, ("azure", "resource_group"), (*_EXISTING, "vm_id"))
            text = f"the resource group {quoted(group)} is that of the existing server"
            yield self.problem(path, text, f"resource_group: {group}-2")


def _subscription(resource_id: str) -> str | None:
    """The subscription of a resource id, in lower case; None where the id is malformed."""
    parts = resource_id.split("/")
    return parts[2].lower() if len(parts) > 2 and re.fullmatch(GUID, parts[2]) else None


class NeedsCluster(DefinitionRule):
    id = "E1907"
    summary = "A setting belongs to a cluster, but the definition has none."
    why = "Without slurm there are no nodes that could use it, so it would be ignored."
    fix = "Remove the setting, or add the section slurm."
    source = "https://learn.microsoft.com/azure/cyclecloud/concepts/core"

    def check(self, site: Site) -> Iterator[Problem]:
        if site.definition.slurm is not None:
            return
        for path, what in _of_a_cluster(site):
            text = f"{what} needs a cluster, but the definition has no slurm section"
            yield self.problem(path, text, on_key=isinstance(path[-1], str))


def _of_a_cluster(site: Site) -> Iterator[tuple[Path, str]]:
    """What the author wrote and only nodes of a cluster use: its place, and how messages name it."""
    definition = site.definition
    jobs, storage = definition.jobs, definition.storage
    kinds = ("validation", "add_validation", "training")
    yield from ((("jobs", kind), f"jobs.{kind}") for kind in kinds if getattr(jobs, kind))
    sections: list[tuple[Path, str, Any]] = [
        (("storage", "sched"), "storage.sched", storage.sched),
        (("storage", "home"), "storage.home", storage.home),
    ]
    sections += [
        (("storage", "mounts", index), f"the mount {quoted(mount.path)}", mount)
        for index, mount in enumerate(storage.mounts)
    ]
    # What the deployment creates is there for clusters that come later; the rest is only about mounting.
    yield from ((path, what) for path, what, each in sections if given(site, path) and not is_created(each))
    if definition.monitoring is not None:
        yield ("monitoring",), "monitoring"
    for index, project in enumerate(definition.projects):
        if project.version is not None:
            yield ("projects", index), f"the project {quoted(project.name)}, which is in the locker already,"
