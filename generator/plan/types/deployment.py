"""The whole plan of one deployment."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from .jobs import JobPlan
from .network import NetworkPlan
from .parameters import Asked, SecretPlan, Variable
from .projects import ProjectPlan
from .server import AdminPlan, LockerPlan, ServerPlan
from .slurm import MonitoringPlan, SlurmPlan
from .storage import MountPlan


@dataclass(frozen=True)
class Plan:
    """Everything that is derived from one definition."""

    name: str
    definition: str
    """File name of the definition, without its folder."""
    location: str
    cloud: Literal["public", "usgov", "china", "germany"]
    subscription_id: str | None
    resource_group: str
    tags: tuple[tuple[str, str], ...]
    admin: AdminPlan
    network: NetworkPlan
    server: ServerPlan
    locker: LockerPlan
    home: MountPlan
    sched: MountPlan
    mounts: tuple[MountPlan, ...]
    slurm: SlurmPlan
    monitoring: MonitoringPlan | None
    projects: tuple[ProjectPlan, ...]
    jobs: tuple[JobPlan, ...]
    asked: tuple[Asked, ...]
    secrets: tuple[SecretPlan, ...]
    variables: tuple[Variable, ...]
    silenced: tuple[tuple[str, str], ...]
    """(rule id, reason), sorted."""
    resolved: dict[str, object] = field(default_factory=dict, compare=False)
    """The definition with all defaults as plain data; `effective.yaml` begins with it."""

    @property
    def all_mounts(self) -> tuple[MountPlan, ...]:
        """/sched, /shared and the definition's own mounts, in that order."""
        return (self.sched, self.home, *self.mounts)
