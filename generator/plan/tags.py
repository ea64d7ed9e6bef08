"""The tags of all resources, and whether one of them is of a kind that takes fewer."""

from __future__ import annotations

from ..definition.model.definition import Definition
from ..definition.model.slurm import NewDatabase
from . import names
from .network import network_plan
from .subnets import Layout

CREATED_BY = ("created-by", "cycleforge")


def tags_of(definition: Definition) -> tuple[tuple[str, str], ...]:
    """Tags of all resources, sorted; the one by which a deployment is deleted is no one else's to set.

    The definition's own win also where they differ in case, which Azure does not tell apart.
    """
    given = {name.lower() for name in definition.tags}
    usual = {name: value for name, value in (CREATED_BY, ("deployment", definition.name)) if name not in given}
    return tuple(sorted((usual | definition.tags | {names.OWNER_TAG: definition.name}).items()))


def writes_dns_zone(definition: Definition, layout: Layout | None) -> bool:
    """Whether the deployment creates a private DNS zone or a link to one."""
    network, slurm = network_plan(definition, layout), definition.slurm
    for_database = slurm is not None and isinstance(slurm.accounting, NewDatabase)
    return network.blob_dns_zone == "new" or network.links_dns_zone or for_database
