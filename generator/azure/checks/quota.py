"""Quota of the region: of every family, of spot VMs, of all vCPUs, with what is in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import ClassVar

from ...plan.types import Plan
from ...problems.problem import KeyPath
from ..check import Check, Finding
from ..findings.machines import machines
from ..findings.quota import (
    ACCOUNTS,
    PUBLIC_ADDRESSES,
    Limit,
    Running,
    accounts,
    judged,
    limits,
    public_addresses,
    running,
    too_many,
    too_small,
    uncounted,
)
from ..findings.vm_sizes import Offered, offered
from ..reader import Reader
from ..request import Request
from ..requests.compute import SCALE_SETS, SIZES, USAGES, VMS
from ..requests.network import NETWORK_USAGES
from ..requests.services import STORAGE_USAGES
from .own import own_resources

_QUOTAS = "https://learn.microsoft.com/azure/virtual-machines/quotas"


class _OfQuota(Check):
    question = "whether the quota of the region leaves room"
    path = ("location",)

    def needed(self, plan: Plan) -> bool:
        """Whether there are VMs."""
        return any(machines(plan))

    @staticmethod
    def answers(plan: Plan, reader: Reader) -> tuple[Offered, Mapping[str, Limit], tuple[Running, ...]]:
        """What the region says of sizes and limits, and what of this deployment runs already."""
        lists = reader.together(
            [
                partial(reader.pages, SIZES(region=plan.location)),
                partial(reader.pages, USAGES(region=plan.location)),
                partial(reader.find_pages, VMS(group=plan.resource_group)),
                partial(reader.find_pages, SCALE_SETS(group=plan.resource_group)),
            ]
        )
        own = running(lists[2], lists[3], plan.location)
        names = {*(each.vm_size for each in machines(plan)), *(each.vm_size for each in own)}
        return offered(lists[0], names), limits(lists[1]), own


class QuotaTooSmall(_OfQuota):
    id = "E4305"
    summary = "The quota does not even hold the server, the cluster's own nodes and the largest planned job."
    why = (
        "Azure refuses VMs beyond the quota of their family, of spot VMs or of all vCPUs of a region (QuotaExceeded). "
        "Where it does not hold server and scheduler, the deployment fails: an error. Where it lacks only for a "
        "partition or login nodes, everything else can be deployed while the request is under way, and only their jobs "
        "wait: a warning, about which `cycleforge deploy` asks."
    )
    fix = (
        "Request the quota that the message names; the command needs `az extension add --name quota`. "
        "`cycleforge deploy --accept E4305` deploys meanwhile without asking."
    )
    source = _QUOTAS

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each limit; and what could not be counted."""
        sizes, known, own = self.answers(plan, reader)
        for found, is_fatal in judged(plan, reader.subscription, sizes, known, own, at_least=True):
            finding = self.finding(*found)
            yield finding if is_fatal else replace(finding, level="warning", asks=True)
        for each in uncounted(plan, sizes):
            yield self.not_known(each.message, path=each.path)


class QuotaBelowMaximum(_OfQuota):
    id = "W4306"
    summary = "The quota does not hold all partitions at their limits."
    why = "CycleCloud starts as many nodes as the quota allows, and the rest of max_nodes never comes."
    fix = "Request the quota that the message names, or lower max_nodes."
    source = _QUOTAS

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each limit."""
        sizes, known, own = self.answers(plan, reader)
        for found in too_small(plan, reader.subscription, sizes, known, own, at_least=False):
            yield self.finding(*found)


class _OfCounts(Check):
    path: ClassVar[KeyPath] = ("location",)
    request: ClassVar[Request]
    names: ClassVar[tuple[str, ...]]
    type: ClassVar[str]
    what: ClassVar[str]

    def needed(self, plan: Plan) -> bool:
        """Whether it creates one."""
        return self.count(plan) > 0

    def count(self, plan: Plan) -> int:
        """How many there will be."""
        raise NotImplementedError

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Beyond the limit, without those of an earlier run."""
        usages, ours = reader.pages(self.request(region=plan.location)), own_resources(plan, reader)
        own = sum(kind == self.type for kind, _ in ours)
        for found in too_many(self.names, self.count(plan), own, limits(usages), self.path, self.what):
            yield self.finding(*found)


class AddressLimit(_OfCounts):
    id = "E4307"
    summary = "The subscription may have no more public addresses in the region."
    why = "Bastion, NAT gateway or a public server is refused (PublicIPCountLimitReached)."
    fix = "Open a support request for the limit, or delete addresses that are not needed."
    source = "https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits"
    question = "whether the region has public addresses left"
    path = ("network", "access")
    request = NETWORK_USAGES
    names = PUBLIC_ADDRESSES
    type = "microsoft.network/publicipaddresses"
    what = "public addresses"

    def count(self, plan: Plan) -> int:
        """Of server, NAT gateway and Bastion, and of nodes."""
        return public_addresses(plan)


class AccountLimit(_OfCounts):
    id = "E4308"
    summary = "The subscription may have no more storage accounts in the region."
    why = "The locker is refused, and with it everything that nodes download."
    fix = "Request a higher limit, or delete accounts that are not needed."
    source = "https://learn.microsoft.com/azure/storage/common/scalability-targets-standard-account"
    question = "whether the region has storage accounts left"
    path = ("storage", "locker")
    request = STORAGE_USAGES
    names = ACCOUNTS
    type = "microsoft.storage/storageaccounts"
    what = "storage accounts"

    def count(self, plan: Plan) -> int:
        """Locker and blob containers."""
        return accounts(plan)
