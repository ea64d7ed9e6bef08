"""New volumes of Azure NetApp Files: sizes, quota, and the throughput of the level Flexible."""

from __future__ import annotations

from collections.abc import Iterator

from .. import catalog
from ..catalog.azure_facts import ServiceLevel
from ..plan.file_systems.base import GIB_PER_TIB
from ..plan.file_systems.netapp import NetAppVolume
from ..plan.file_systems.registry import of_kind
from ..problems.problem import Problem
from .base import DefinitionRule, Site, quoted

_LEVELS = "https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-service-levels"


class NetAppSize(DefinitionRule):
    id = "E0602"
    summary = "A NetApp Files volume is not available in this size."
    why = "A regular volume has at most 100 TiB, a large one 50 to 1,024 TiB."
    fix = "Choose another size, large_volume: true, several volumes, or Managed Lustre."
    source = "https://learn.microsoft.com/azure/azure-netapp-files/azure-netapp-files-resource-limits"

    def check(self, site: Site) -> Iterator[Problem]:
        large = catalog.file_systems().netapp.large_volume
        for asked, volume in of_kind(site.definition, NetAppVolume):
            size, most = volume.size_gib // GIB_PER_TIB, volume.limits.max_gib // GIB_PER_TIB
            least = large.min_gib // GIB_PER_TIB
            path = (*asked.definition_path, "size_tib")
            if size > most:
                text = f"the NetApp Files volume {quoted(volume.path)} may have {most} TiB at most, not {size} TiB"
                fits = not volume.large_volume and volume.size_gib <= large.max_gib
                yield self.problem(path, text, "large_volume: true" if fits else None)
            elif volume.large_volume and size < least:
                text = f"the large volume {quoted(volume.path)} must have {least} TiB at least, not {size} TiB"
                yield self.problem(path, text, f"size_tib: {least}, or no large_volume")


class RegionalQuota(DefinitionRule):
    id = "W0626"
    summary = "The NetApp Files volumes need more capacity than a subscription has by default."
    why = "Azure refuses a capacity pool beyond the subscription's quota in the region, which is 25 TiB by default."
    fix = "Have the regional capacity quota raised by a support request, then silence this rule with the reason."
    source = "https://learn.microsoft.com/azure/azure-netapp-files/regional-capacity-quota"

    def check(self, site: Site) -> Iterator[Problem]:
        default = catalog.file_systems().netapp.regional_quota.tib
        found = list(of_kind(site.definition, NetAppVolume))
        total = sum(volume.pool_tib for _, volume in found)
        if total > default:
            largest, volume = max(found, key=lambda each: each[1].pool_tib)
            own = "" if len(found) == 1 else f"the {len(found)} NetApp Files volumes take {total} TiB together, "
            alone = f"the NetApp Files volume {quoted(volume.path)} takes {total} TiB, " if len(found) == 1 else ""
            text = f"{own}{alone}the quota of a subscription is {default} TiB in a region unless it was raised"
            yield self.problem((*largest.definition_path, "size_tib"), text)


class LargeFlexibleVolume(DefinitionRule):
    id = "W0627"
    summary = "A large volume has the service level Flexible."
    why = "The throughput of large volumes is published for Standard, Premium and Ultra only."
    fix = "Choose one of those, or ask Azure support what holds for Flexible and silence this rule with the answer."
    source = "https://learn.microsoft.com/azure/azure-netapp-files/large-volumes-requirements-considerations"

    def check(self, site: Site) -> Iterator[Problem]:
        for asked, volume in of_kind(site.definition, NetAppVolume):
            if volume.large_volume and _has_own_throughput(volume):
                text = (
                    f"no throughput is published for the large volume {quoted(volume.path)} of the level "
                    f"{volume.service_level}"
                )
                yield self.problem((*asked.definition_path, "service_level"), text)


def _level(volume: NetAppVolume) -> ServiceLevel:
    return catalog.file_systems().netapp.service_levels[volume.service_level]


def _has_own_throughput(volume: NetAppVolume) -> bool:
    """Whether the throughput is chosen apart from the size; the catalogue has no figure per TiB then."""
    return _level(volume).mib_per_s_per_tib is None


def throughput_limits(volume: NetAppVolume) -> tuple[int, int]:
    """Least and most MiB/s that a volume of its own throughput may have, which is alone in its pool."""
    level, most = _level(volume), volume.limits.max_mib_per_s
    return level.min_mib_per_s or 0, min((level.max_mib_per_s_per_tib or 0) * volume.size_gib // GIB_PER_TIB, most)


class ThroughputMissing(DefinitionRule):
    id = "E0618"
    summary = "A NetApp Files volume of the level Flexible has no throughput."
    why = "Its throughput does not follow from its size; Azure creates the pool with the throughput that is requested."
    fix = "Give throughput_mibps, or choose Standard, Premium or Ultra."
    source = _LEVELS

    def check(self, site: Site) -> Iterator[Problem]:
        for asked, volume in of_kind(site.definition, NetAppVolume):
            if _has_own_throughput(volume) and volume.throughput_mibps is None:
                least, most = throughput_limits(volume)
                text = (
                    f"the NetApp Files volume {quoted(volume.path)} has the level {volume.service_level}, and no "
                    "throughput is given"
                )
                yield self.problem(
                    (*asked.definition_path, "service_level"), text, f"throughput_mibps: {least}, up to {most}"
                )


class ThroughputFollowsSize(DefinitionRule):
    id = "E0619"
    summary = "A throughput is given for a NetApp Files volume whose level derives it from the size."
    why = (
        "Standard, Premium and Ultra give 16, 64 and 128 MiB/s per TiB; Azure refuses any other throughput "
        "in such a pool."
    )
    fix = "Remove throughput_mibps, or choose the service level Flexible."
    source = _LEVELS

    def check(self, site: Site) -> Iterator[Problem]:
        for asked, volume in of_kind(site.definition, NetAppVolume):
            if not _has_own_throughput(volume) and volume.throughput_mibps is not None:
                per_tib = _level(volume).mib_per_s_per_tib
                text = (
                    f"the NetApp Files volume {quoted(volume.path)} has the level {volume.service_level}, which gives "
                    f"{per_tib} MiB/s per TiB"
                )
                yield self.problem(
                    (*asked.definition_path, "throughput_mibps"), text, "service_level: Flexible", on_key=True
                )


class ThroughputOutOfRange(DefinitionRule):
    id = "E0620"
    summary = "A NetApp Files volume of the level Flexible cannot have this throughput."
    why = (
        "A Flexible pool has at least 128 MiB/s and at most 640 MiB/s per TiB, and one volume reaches 4,500 MiB/s at "
        "most, a large one 12,800 MiB/s."
    )
    fix = "Choose a throughput within the limits, or a larger volume."
    source = _LEVELS

    def check(self, site: Site) -> Iterator[Problem]:
        for asked, volume in of_kind(site.definition, NetAppVolume):
            wanted = volume.throughput_mibps
            if wanted is None or not _has_own_throughput(volume):
                continue
            least, most = throughput_limits(volume)
            if not least <= wanted <= most:
                size = volume.size_gib // GIB_PER_TIB
                text = (
                    f"the NetApp Files volume {quoted(volume.path)} of {size} TiB may have {least} to {most} MiB/s, "
                    f"not {wanted}"
                )
                path = (*asked.definition_path, "throughput_mibps")
                yield self.problem(path, text, f"throughput_mibps: {min(max(wanted, least), most)}")
