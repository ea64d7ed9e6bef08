"""Redundancy of the storage accounts that the deployment creates, in a region that has no zones or no pair."""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..plan.file_systems.registry import wanted_by
from ..problems.problem import Problem
from .base import DefinitionRule, Path, Site
from .wording import quoted

_PATH: Path = ("storage", "locker", "redundancy")
_SOURCE = "https://learn.microsoft.com/azure/storage/common/storage-redundancy"


def accounts(site: Site) -> Iterator[tuple[Path, str, str]]:
    """(place of the redundancy, what it is of, redundancy) of every storage account that the deployment creates."""
    if site.definition.server.existing is None:
        yield _PATH, "the locker's account", site.definition.storage.locker.redundancy
    seen = set()
    for wanted in wanted_by(site.definition):
        for name, redundancy in wanted.file_system.created_accounts:
            if name not in seen:
                seen.add(name)
                yield (*wanted.definition_path, "redundancy"), f"the account {quoted(name)}", redundancy


def _needs(redundancy: str) -> Iterator[tuple[str, str]]:
    """(fact of the region, what it is called) that a redundancy needs: GZRS needs both."""
    if redundancy.endswith("ZRS"):
        yield "zones", "availability zones"
    if redundancy.rpartition("_")[2] in ("GRS", "RAGRS", "GZRS", "RAGZRS"):
        yield "pair", "a paired region"


def _looked_up(site: Site, *, known: bool | None) -> Iterator[tuple[Path, str, str]]:
    """(place, redundancy, what it needs) where the catalogue says `known` of that in the region."""
    row = catalog.regions().regions.get(site.definition.location)
    for path, _, redundancy in accounts(site):
        yield from ((path, redundancy, what) for fact, what in _needs(redundancy) if getattr(row, fact, None) is known)


class RedundancyNotThere(DefinitionRule):
    id = "E0624"
    summary = "The region does not have what the redundancy of a storage account needs."
    why = "Azure refuses zone-redundant storage in a region without zones, geo-redundant storage in one without a pair."
    fix = "Choose Standard_LRS, another redundancy, or another region; a locker's content can be uploaded again."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        for path, redundancy, what in _looked_up(site, known=False):
            text = f"the region {quoted(site.definition.location)} does not have {what}, which {redundancy} needs"
            yield self.problem(path, text, "redundancy: Standard_LRS")


class RedundancyNotKnown(DefinitionRule):
    id = "I0625"
    summary = "It is not known whether the region has what the redundancy of a storage account needs."
    why = "Microsoft's lists say nothing about it; Azure refuses the storage account if the region lacks it."
    fix = "Look the region up, or choose Standard_LRS."
    source = _SOURCE

    def check(self, site: Site) -> Iterator[Problem]:
        for path, redundancy, what in _looked_up(site, known=None):
            region = quoted(site.definition.location)
            yield self.problem(path, f"whether the region {region} has {what}, which {redundancy} needs, is not known")
