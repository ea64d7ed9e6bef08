"""High availability of the scheduler."""

from __future__ import annotations

from collections.abc import Iterator

from ..definition.model.slurm import Slurm
from ..plan.file_systems.registry import wanted_by
from ..problems.problem import Problem
from .base import ClusterRule, Path, Site, given

_SLURM4 = "https://learn.microsoft.com/azure/cyclecloud/slurm-4"
_SCHEDULER: Path = ("slurm", "scheduler")


class NeedsExternalFiles(ClusterRule):
    id = "E1101"
    summary = "High availability needs file systems outside the schedulers."
    why = (
        "/sched and /shared on a disk of one scheduler disappear with it, together with what the other one needs to "
        "take over."
    )
    fix = "Use NetApp Files or an existing server for storage.sched and storage.home."
    source = _SLURM4

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        if not slurm.scheduler.high_availability:
            return
        for each in wanted_by(site.definition):
            if each.file_system.is_scheduler_disk:
                here = given(site, each.definition_path)
                path = each.definition_path if here else (*_SCHEDULER, "high_availability")
                point, key = each.file_system.path, each.definition_path[-1]
                text = f"high availability needs {point} outside the scheduler, but storage.{key} is one of its disks"
                yield self.problem(path, text, f"{key}: {{type: anf, size_tib: 1}}", on_key=here)


class SameZone(ClusterRule):
    id = "W1102"
    summary = "Both schedulers are in the same zone."
    why = "A failure of the zone takes down both."
    fix = "Choose different zones."
    source = "https://learn.microsoft.com/azure/reliability/availability-zones-overview"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        scheduler = slurm.scheduler
        if scheduler.high_availability and scheduler.zone and scheduler.zone == scheduler.backup_zone:
            yield self.problem((*_SCHEDULER, "backup_zone"), f"both schedulers are in zone {scheduler.zone}")


class ZoneWithoutAvailability(ClusterRule):
    id = "E1103"
    summary = "A zone of the scheduler is given without high availability."
    why = "The cluster template uses the scheduler's zones only when there are two schedulers."
    fix = "Remove the zone, or set high_availability: true."
    source = "https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/templates/slurm.txt"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        scheduler = slurm.scheduler
        if scheduler.high_availability:
            return
        for key in ("zone", "backup_zone"):
            if getattr(scheduler, key) is not None:
                yield self.problem(
                    (*_SCHEDULER, key), f"scheduler.{key} is ignored without high availability", on_key=True
                )


class OneZoneOnly(ClusterRule):
    id = "W1104"
    summary = "Only one of the two schedulers has a zone."
    why = "The other one may end up in the same zone, whose failure then takes down both."
    fix = "Give both zone and backup_zone, or neither."
    source = "https://learn.microsoft.com/azure/reliability/availability-zones-overview"

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        scheduler = slurm.scheduler
        if scheduler.high_availability and bool(scheduler.zone) != bool(scheduler.backup_zone):
            key, other = ("zone", "backup_zone") if scheduler.zone else ("backup_zone", "zone")
            yield self.problem(
                (*_SCHEDULER, key),
                f"scheduler.{key} is given, but not {other}, so both may be in one zone",
                on_key=True,
            )
