"""Quota of the region: of every family, of spot VMs, of all vCPUs, with what is in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from ...plan.types import Plan
from ..check import Check, Finding
from ..meaning.machines import machines
from ..meaning.quota import Limit, Running, limits, running, too_small, uncounted
from ..meaning.vm_sizes import Offered, offered
from ..reader import Reader
from ..requests.compute import SCALE_SETS, SIZES, USAGES, VMS
from .own import listed

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
                partial(listed, reader, VMS(group=plan.resource_group)),
                partial(listed, reader, SCALE_SETS(group=plan.resource_group)),
            ]
        )
        own = running(lists[2], lists[3], plan.location)
        names = {*(each.vm_size for each in machines(plan)), *(each.vm_size for each in own)}
        return offered(lists[0], names), limits(lists[1]), own


class QuotaTooSmall(_OfQuota):
    id = "E4305"
    summary = "The quota does not even hold the server, the cluster's own nodes and the largest planned job."
    why = (
        "Azure refuses VMs beyond the quota of their family, of spot VMs or of all vCPUs of a region (QuotaExceeded): "
        "the deployment fails, or its first job waits for ever."
    )
    fix = "Request the quota that the message names; the command needs `az extension add --name quota`."
    source = _QUOTAS

    def run(self, plan: Plan, reader: Reader) -> Iterator[Finding]:
        """Each limit; and what could not be counted."""
        sizes, known, own = self.answers(plan, reader)
        for found in too_small(plan, reader.subscription, sizes, known, own, at_least=True):
            yield self.finding(*found)
        for found in uncounted(plan, sizes):
            yield self.not_known(found.message, path=found.path)


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
