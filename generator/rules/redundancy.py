"""Redundancy of the locker's storage account in a region that has no zones or no pair."""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site
from .wording import quoted

_PATH: Path = ("storage", "locker", "redundancy")
_SOURCE = "https://learn.microsoft.com/azure/storage/common/storage-redundancy"


def _needs(redundancy: str) -> Iterator[tuple[str, str]]:
    """(fact of the region, what it is called) that a redundancy needs: GZRS needs both."""
    if redundancy.endswith("ZRS"):
        yield "zones", "availability zones"
    if redundancy.rpartition("_")[2] in ("GRS", "RAGRS", "GZRS", "RAGZRS"):
        yield "pair", "a paired region"


class RedundancyNotThere(DefinitionRule):
    id = "E0624"
    summary = "The region does not have what the redundancy of the locker needs."
    why = "Azure refuses zone-redundant storage in a region without zones, geo-redundant storage in one without a pair."
    fix = "Choose Standard_LRS, another redundancy, or another region; the locker's content can be uploaded again."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        redundancy, region = site.definition.storage.locker.redundancy, site.definition.location
        row = catalog.regions().get(region, {})
        for fact, what in _needs(redundancy) if site.definition.server.existing is None else ():
            if row.get(fact) is False:
                text = f"the region {quoted(region)} does not have {what}, which {redundancy} needs"
                yield self.problem(_PATH, text, "redundancy: Standard_LRS")


class RedundancyNotKnown(DefinitionRule):
    id = "I0625"
    summary = "It is not known whether the region has what the redundancy of the locker needs."
    why = "Microsoft's lists say nothing about it; Azure refuses the storage account if the region lacks it."
    fix = "Look the region up, or choose Standard_LRS."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        redundancy, region = site.definition.storage.locker.redundancy, site.definition.location
        row = catalog.regions().get(region, {})
        for fact, what in _needs(redundancy) if site.definition.server.existing is None else ():
            if row.get(fact) is None:
                text = f"whether the region {quoted(region)} has {what}, which {redundancy} needs, is not known"
                yield self.problem(_PATH, text)
