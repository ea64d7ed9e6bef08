"""The Slurm cluster."""

from __future__ import annotations

from typing import Literal

from ...records import record
from ..file_systems.base import FileSystem
from ..fleet import Machines
from .nodes import LoginPlan, NodeArrayPlan, SchedulerPlan
from .policy import PolicyPlan


@record
class AccountingPlan:
    """slurmdbd's database: a new MySQL flexible server with private access, or an existing one."""

    is_new: bool
    server_name: str | None
    """Name of the new server; None = derived from subscription and resource group by the deployment."""
    sku: str | None
    tier: str | None
    """Service tier of the new server, which its size decides: `Burstable`, `GeneralPurpose` or `MemoryOptimized`."""
    max_iops: int | None
    """The most that the size supports; it rises with the storage up to that."""
    storage_gib: int | None
    version: str | None
    host: str | None
    """Host name or address of an existing server; for a new one the fact `databaseHost` holds it."""
    user: str
    database: str
    certificate: str | None = None
    """Of the authority that has signed an existing server's certificate, in PEM; None: those of Azure."""
    certificate_url: str | None = None
    """Where the scheduler downloads the certificate of Azure's authority; None: cyclecloud-slurm brings it."""


@record
class MonitoringPlan:
    """Metrics into an existing Azure Monitor workspace."""

    workspace_id: str
    ingestion_endpoint: str
    data_collection_rule_id: str


@record
class SlurmPlan:
    """The Slurm cluster."""

    cluster_name: str
    template_name: str
    """Templates and clusters share one name space on the server."""
    config_name: str
    """Cluster name as cyclecloud-slurm sanitises it: `/sched/<config_name>` holds slurm.conf."""
    sched: FileSystem
    """At /sched: Slurm's configuration and state."""
    home: FileSystem
    """At /shared: the home folders."""
    version: str
    project_version: str
    project_url: str
    """Where the server fetches the project from if it is pinned."""
    certificate_key: str
    """The configuration in which this version of the project looks for the certificate of the database's authority."""
    pin_project: bool
    """True: template references name the version; False: they follow what the server brings."""
    autoscale: bool
    start_cluster: bool
    scheduler: SchedulerPlan
    login: LoginPlan
    node_arrays: tuple[NodeArrayPlan, ...]
    accounting: AccountingPlan | None
    policy: PolicyPlan | None
    """What of the scheduling policy the scheduler itself applies; None = nothing."""
    launch_parameters: str
    additional_config: tuple[str, ...]
    """Lines for slurm.conf (`additional_slurm_config`), in order."""
    node_prefix: str | None
    """What names of nodes begin with; None: the cluster's name and a hyphen, which the server puts there."""
    node_name_is_host_name: bool
    public_addresses: Literal["none", "scheduler", "all"]
    terminate_notification: bool
    health_checks: bool
    """cyclecloud-slurm's healthagent hooks."""
    hand_back_h: int | None
    """Hours after which the scheduler hands back the VM of a node that slurm_nhc has drained; 0: only a person does;
    None: slurm_nhc does not run on the scheduler or on no node."""

    @property
    def certificate_parameter(self) -> str:
        """The parameter of the cluster that fills `certificate_key`, as the project's own template calls it."""
        name = "certificate_url" if self.certificate_key.endswith("_url") else "custom_certificate"
        return f"configuration_slurm_accounting_{name}"

    @property
    def nodes(self) -> tuple[SchedulerPlan | LoginPlan | NodeArrayPlan, ...]:
        """All roles: scheduler, login nodes, node arrays."""
        return (self.scheduler, self.login, *self.node_arrays)

    def role_of(self, machines: Machines) -> SchedulerPlan | LoginPlan | NodeArrayPlan:
        """What VMs of the fleet are to be."""
        if machines.role == "partition":
            return next(array for array in self.node_arrays if array.partition == machines.partition)
        return self.scheduler if machines.role == "scheduler" else self.login

    def has_vm_attribute(self, name: str, value: str | bool) -> bool:
        """Whether the definition gives the VMs of some role this attribute with this value."""
        return any((name, value) in node.vm_attributes.values for node in self.nodes)

    @property
    def has_zones(self) -> bool:
        """Whether the nodes of some partition are placed in availability zones."""
        return any(array.zones for array in self.node_arrays)

    @property
    def has_start_up_checks(self) -> bool:
        """Whether CycleCloud runs the image's health suite on the nodes of some partition."""
        return any(array.node_health_checks for array in self.node_arrays)
