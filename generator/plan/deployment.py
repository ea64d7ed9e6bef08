"""The whole plan of one deployment."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from ..problems.problem import KeyPath
from .access import Access
from .asked import Asked
from .bicep_modules import BicepModule
from .cleanup import CleanupPlan
from .cluster import SlurmPlan
from .created_types import Created
from .egress import EgressPlan
from .file_systems.base import FileSystem, Grant, NodeSettings
from .fleet import Machines
from .image_terms import ImageTerms, UnknownImage
from .jobs import JobPlan
from .ledger import LedgerPlan
from .names import ResourceNames
from .network import NetworkPlan
from .parameters import SecretPlan, Variable
from .projects import BlobPlan, ProjectPlan
from .quota import QuotaPlan
from .resources import MonitoringPlan
from .server import AdminPlan, ExistingServerPlan, ServerPlan
from .storage import LockerPlan


class Plan(Struct, frozen=True):
    """Everything that is derived from one definition."""

    name: str
    definition: str
    """File name of the definition, without its folder."""
    deployment_name: str
    """Name of the deployment in the subscription; it holds the region, because Azure ties a name to its first one."""
    location: str
    cloud: Literal["public", "usgov", "china", "germany"]
    cli_cloud: str | None
    """The cloud's name for `az cloud set`; None where the Azure CLI is there already."""
    subscription_id: str | None
    resource_group: str
    creates_resource_group: bool
    """False: the group is someone else's, so the deployment neither writes nor deletes it."""
    names: ResourceNames
    tags: tuple[tuple[str, str], ...]
    admin: AdminPlan
    network: NetworkPlan
    access: Access
    server: ServerPlan | None
    """The server that the deployment creates; None: `existing_server` is used."""
    existing_server: ExistingServerPlan | None
    locker: LockerPlan
    security: SecurityPlan
    mounts: tuple[FileSystem, ...]
    """The definition's own mounts; without a cluster everything that it lets create."""
    slurm: SlurmPlan | None
    """The cluster; None: infrastructure only."""
    monitoring: MonitoringPlan | None
    projects: tuple[ProjectPlan, ...]
    jobs: tuple[JobPlan, ...]
    ledgers: tuple[LedgerPlan, ...]
    """What training jobs keep on each file system."""
    asked: tuple[Asked, ...]
    secrets: tuple[SecretPlan, ...]
    variables: tuple[Variable, ...]
    modules: tuple[BicepModule, ...]
    """Modules of `main.bicep` that create the file systems, each after those that it uses."""
    late_addresses: tuple[tuple[str, str], ...]
    """(key of the server's facts, symbol of the module whose output `address` it is)."""
    node_settings: tuple[NodeSettings, ...]
    """What every node needs to know for the mounts that our projects make."""
    providers: tuple[str, ...]
    """Resource providers that must be registered in the subscription, sorted."""
    image_terms: tuple[ImageTerms, ...]
    """Plans of marketplace images, whose terms must be accepted before."""
    unknown_images: tuple[UnknownImage, ...]
    """Images of which it is not known whether they have terms."""
    requirements: tuple[str, ...]
    """What else the subscription must have for the file systems; sentences for the README."""
    fleet: tuple[Machines, ...]
    """All VMs that there may be, in the order in which they come up."""
    quota: QuotaPlan
    slow_resources: tuple[str, ...]
    """What takes longer to create than everything else, in words."""
    cleanup: CleanupPlan
    egress: EgressPlan
    """Destinations outside of the network; `firewall-rules.json` prints them."""
    silenced: tuple[tuple[str, str], ...]
    """(rule id, reason), sorted."""
    created_types: tuple[Created, ...] = ()
    """The types of what the deployment creates, each once for every purpose."""
    resolved: dict[str, object] = field(default_factory=dict)
    """The definition with all defaults as plain data; `effective.yaml` begins with it."""

    @property
    def nested_stem(self) -> str:
        """Beginning of the names of nested deployments; in someone else's group another deployment may be beside it."""
        return "cycleforge" if self.creates_resource_group else self.name

    @property
    def all_mounts(self) -> tuple[FileSystem, ...]:
        """/sched and /shared of the cluster, and the definition's own mounts, in that order."""
        return (*((self.slurm.sched, self.slurm.home) if self.slurm else ()), *self.mounts)

    def place_of_mount(self, path: str) -> KeyPath:
        """The place of a file system in the definition, by its mount point."""
        if self.slurm is not None and path in (self.slurm.sched.path, self.slurm.home.path):
            return ("storage", "sched" if path == self.slurm.sched.path else "home")
        storage = self.resolved.get("storage")
        mounts = storage.get("mounts") if isinstance(storage, dict) else None
        for index, mount in enumerate(mounts or ()):
            if isinstance(mount, dict) and mount.get("path") == path:
                return ("storage", "mounts", index)
        return ("storage", "mounts")

    @property
    def creates_database(self) -> bool:
        """Whether the deployment creates a database server for the accounting."""
        return self.slurm is not None and self.slurm.accounting is not None and self.slurm.accounting.is_new

    @property
    def definition_name(self) -> str:
        """What the commands take: the definition's file name without its ending."""
        return self.definition.rsplit(".", 1)[0]

    @property
    def prompts(self) -> tuple[str, ...]:
        """What `az` asks for where no parameter file answers, in words."""
        return (*(secret.title for secret in self.secrets), *(value.title for value in self.asked))

    @property
    def asked_variables(self) -> tuple[str, ...]:
        """Environment variables of which the parameter file reads values that are not secret."""
        return tuple(value.variable for value in self.asked)

    @property
    def grants(self) -> tuple[Grant, ...]:
        """Roles that the nodes need where the deployment gives nobody one."""
        return tuple(grant for mount in self.all_mounts for grant in mount.grants)

    @property
    def carried_blobs(self) -> tuple[tuple[str, BlobPlan], ...]:
        """(project, third-party file) of what travels."""
        return tuple(
            (project.name, blob) for project in self.projects for blob in project.blobs if blob.state == "present"
        )

    @property
    def missing_blobs(self) -> tuple[tuple[str, BlobPlan], ...]:
        """(project, third-party file) of what nodes look for and what does not travel."""
        return tuple(
            (project.name, blob)
            for project in self.projects
            for blob in project.blobs
            if blob.is_needed and blob.state != "present"
        )


class SecurityPlan(Struct, frozen=True):
    """What server, jumpbox, nodes and locker get on request."""

    encryption_at_host: bool
    disk_encryption_set_id: str | None
    """Set whose key encrypts all disks; None: keys of the platform."""
    infrastructure_encryption: bool
    """Of the locker's account."""
    trusted_launch: bool
    """Of the nodes. The jumpbox always has it, the server's marketplace image does not say that it supports it."""
    secure_boot: bool
    """Of the nodes; only with Trusted Launch."""
    diagnostics_workspace_id: str | None
    """Log Analytics workspace of the diagnostic settings; None: the deployment makes none."""
    diagnostics_name: str = "cycleforge"
    """Name of the diagnostic settings in the modules. Policies name theirs otherwise, and a second setting of one name
    would replace the first.

    Source: https://learn.microsoft.com/azure/azure-monitor/platform/diagnostic-settings
    """
