"""How many VMs one scale set holds, against max_nodes."""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..problems.problem import Problem
from .base import DefinitionRule, Site
from .roles import is_hpc, partition_label
from .wording import partitions

_NODES = "https://learn.microsoft.com/azure/cyclecloud/concepts/node-cluster"


def _approved_limit() -> int:
    value: int = catalog.limits().scale_set_with_infiniband.with_approval
    return value


class NeedsApproval(DefinitionRule):
    id = "E0411"
    summary = "An hpc partition has more nodes than a scale set with one placement group holds."
    why = "Its nodes share one placement group; Azure holds 100 VMs in it, up to 300 after a support request."
    fix = "Lower max_nodes, split the partition, or set large_scale_set_approved: true once Azure has raised the limit."
    source = _NODES

    def check(self, site: Site) -> Iterator[Problem]:
        normal, most = catalog.limits().scale_set_with_infiniband.value, _approved_limit()
        for path, partition in partitions(site):
            if (
                is_hpc(site, partition)
                and normal < partition.max_nodes <= most
                and not partition.large_scale_set_approved
            ):
                text = (
                    f"{partition_label(partition)} may have {partition.max_nodes} nodes, a placement group holds "
                    f"{normal} without approval"
                )
                yield self.problem(
                    (*path, "max_nodes"), text, f"max_nodes: {normal}, or large_scale_set_approved: true"
                )


class AboveApproval(DefinitionRule):
    id = "E0412"
    summary = "An hpc partition has more nodes than Azure ever puts into one placement group."
    why = "300 VMs are the most that a support request can reach."
    fix = "Split the partition, or set hpc: false if its jobs do not need InfiniBand across all nodes."
    source = _NODES

    def check(self, site: Site) -> Iterator[Problem]:
        most = _approved_limit()
        for path, partition in partitions(site):
            if is_hpc(site, partition) and partition.max_nodes > most:
                text = (
                    f"{partition_label(partition)} may have {partition.max_nodes} nodes, a placement group holds at "
                    f"most {most}"
                )
                yield self.problem((*path, "max_nodes"), text, f"max_nodes: {most}, or several partitions")


class ScaleSetTooSmall(DefinitionRule):
    id = "E0413"
    summary = "The scale set of an hpc partition is smaller than its max_nodes."
    why = "azslurm takes the smaller of both without a word: the partition has fewer nodes than asked for."
    fix = "Remove max_scale_set_size, or raise it to max_nodes."
    source = "https://github.com/Azure/cyclecloud-slurm/issues/328"

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            size = partition.max_scale_set_size
            if is_hpc(site, partition) and size is not None and size < partition.max_nodes:
                text = (
                    f"{partition_label(partition)} may have {partition.max_nodes} nodes, but its scale set holds {size}"
                )
                yield self.problem((*path, "max_scale_set_size"), text, f"max_scale_set_size: {partition.max_nodes}")


class ScaleSetTooLarge(DefinitionRule):
    id = "E0414"
    summary = "The scale set of an hpc partition is larger than Azure allows."
    why = "Azure refuses the scale set, and no node starts."
    fix = "Lower max_scale_set_size, or set large_scale_set_approved: true once Azure has raised the limit."
    source = _NODES

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            most = (
                _approved_limit()
                if partition.large_scale_set_approved
                else catalog.limits().scale_set_with_infiniband.value
            )
            size = partition.max_scale_set_size
            if is_hpc(site, partition) and size is not None and size > most:
                text = (
                    f"{partition_label(partition)}: a scale set with one placement group holds {most} VMs, not {size}"
                )
                yield self.problem((*path, "max_scale_set_size"), text)


class ApprovalWithoutEffect(DefinitionRule):
    id = "W0415"
    summary = "The raised scale-set limit is declared for a partition that does not need it."
    why = "The limit concerns placement groups; other partitions have scale sets of up to 1000 VMs anyway."
    fix = "Remove large_scale_set_approved."
    source = _NODES

    def check(self, site: Site) -> Iterator[Problem]:
        for path, partition in partitions(site):
            if partition.large_scale_set_approved and not is_hpc(site, partition):
                text = f"{partition_label(partition)} has large_scale_set_approved, which concerns hpc partitions only"
                yield self.problem((*path, "large_scale_set_approved"), text, on_key=True)
