"""Spot VMs."""

from __future__ import annotations

from collections.abc import Iterator

from ..problems.problem import Problem
from .base import DefinitionRule, Site
from .roles import is_hpc, partition_label
from .wording import partitions

_SPOT = "https://learn.microsoft.com/azure/virtual-machines/spot-vms"


class PriceWithoutSpot(DefinitionRule):
    id = "E1201"
    summary = "A spot price is given for a partition that does not use spot VMs."
    why = "It would be ignored, and the nodes would cost the on-demand price."
    fix = "Set spot: true, or remove the price."
    source = _SPOT

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            price = partition.spot_max_price_usd_per_hour
            if price is not None and not partition.spot:
                text = f"{partition_label(partition)} has a spot price of {price:g} USD/h, but does not use spot VMs"
                yield self.problem((*path, "spot_max_price_usd_per_hour"), text, "spot: true", on_key=True)


class SpotForTightJobs(DefinitionRule):
    id = "W1202"
    summary = "A partition for tightly coupled jobs uses spot VMs."
    why = (
        "One evicted node ends the job on all of its nodes; without checkpoints and requeueing the work since its "
        "start is lost."
    )
    fix = "Use on-demand VMs, or checkpoint often, submit with --requeue, and silence this rule."
    source = _SPOT

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            if partition.spot and is_hpc(site, partition):
                text = (
                    f"{partition_label(partition)} runs tightly coupled jobs on spot VMs; one eviction ends the job "
                    "on all nodes"
                )
                yield self.problem((*path, "spot"), text)
