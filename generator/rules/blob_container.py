"""Containers that the deployment creates: their accounts, and the names of their endpoints."""

from __future__ import annotations

from collections.abc import Iterator

from ..definition.model.storage import BlobMount
from ..plan.file_systems.blob_container import BlobContainer
from ..plan.file_systems.registry import of_kind
from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site
from .wording import given, quoted

_OF_ACCOUNT = ("create", "private_endpoint", "redundancy")
_ONLY_CREATED = ("private_endpoint", "redundancy")


class ContainersOfOneAccount(DefinitionRule):
    id = "E0628"
    summary = "What is said of the storage account of a blob container contradicts something else."
    why = (
        "All containers of a created account share its endpoint and its redundancy; an account of someone else has its "
        "own, and the locker's holds projects alone."
    )
    fix = "Say the same in all mounts of an account, or choose another account."
    source = "https://learn.microsoft.com/azure/storage/common/storage-account-overview"

    def check(self, site: Site) -> Iterator[Problem]:
        first: dict[str, BlobMount] = {}
        locker = site.definition.storage.locker.account_name
        for wanted, mount in of_kind(site.definition, BlobContainer):
            section, path = wanted.section, wanted.definition_path
            other = first.setdefault(mount.storage_account, section)
            differing = next((key for key in _OF_ACCOUNT if getattr(other, key) != getattr(section, key)), None)
            if differing is not None:
                text = (
                    f"the mounts {quoted(other.path)} and {quoted(section.path)} of the storage account "
                    f"{quoted(mount.storage_account)} differ in {differing}"
                )
                yield self.problem(_key(site, path, differing), text)
            elif not section.create:
                yield from self._without_effect(site, path, section)
            elif mount.storage_account == locker:
                text = f"the storage account {quoted(mount.storage_account)} of {quoted(mount.path)} is the locker's"
                yield self.problem((*path, "storage_account"), text)

    def _without_effect(self, site: Site, path: Path, section: BlobMount) -> Iterator[Problem]:
        for key in _ONLY_CREATED:
            if given(site, (*path, key)):
                text = f"{key} of {quoted(section.path)} is for an account that the deployment creates"
                yield self.problem((*path, key), text, "create: true", on_key=True)


class ContainerWithoutName(DefinitionRule):
    id = "E0629"
    summary = "Nobody registers the name of the endpoint of a created blob container."
    why = (
        "With an existing server the deployment makes no DNS zone, because the network may have one already. Without a "
        "name the nodes use the public address of the account, which is shut."
    )
    fix = "Name the zone in network.blob_dns_zone, or none where a policy registers the endpoint."
    source = "https://learn.microsoft.com/azure/private-link/private-endpoint-dns"

    def check(self, site: Site) -> Iterator[Problem]:
        network = site.definition.network
        if site.definition.server.existing is None or network.blob_dns_zone != "new":
            return
        for wanted, mount in of_kind(site.definition, BlobContainer):
            if mount.endpoints:
                text = f"the endpoint of the container of {quoted(mount.path)} gets no name"
                yield self.problem(wanted.definition_path, text, "network: {blob_dns_zone: …}")


def _key(site: Site, path: Path, key: str) -> Path:
    return (*path, key) if given(site, (*path, key)) else path
