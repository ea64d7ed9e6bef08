"""The Slurm plan: scheduler, login nodes, node arrays, accounting, slurm.conf lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

from .. import catalog
from ..catalog.releases import Release
from ..definition.model.definition import Definition
from ..definition.model.slurm import Slurm
from . import names
from .accounting import AccountingPlan, accounting_plan
from .assignment import HEALTH, is_checked
from .file_systems.base import FileSystem
from .fleet import Machines
from .nodes import (
    LoginPlan,
    NodeArrayPlan,
    SchedulerPlan,
    hand_back_h,
    login_plan,
    node_array_plan,
    scheduler_plan,
    sizes_of,
)
from .policy import PolicyPlan, policy_plan
from .slurm_conf import slurm_conf_lines
from .storage import FileSystems

PROJECT_RELEASES = "https://github.com/Azure/cyclecloud-slurm/releases"


class SlurmPlan(Struct, frozen=True):
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
        return (self.scheduler, self.login, *self.node_arrays)

    def role_of(self, machines: Machines) -> SchedulerPlan | LoginPlan | NodeArrayPlan:
        """The role of the VMs in the fleet."""
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


def slurm_plan(
    definition: Definition,
    slurm: Slurm,
    versions: Mapping[str, str],
    shared: FileSystems,
    certificate: str | None = None,
) -> SlurmPlan:
    """The cluster; `versions` maps every project that roles may name to its version.

    `certificate`: of the accounting database's authority, in PEM, which the definition names.
    """
    cluster_name = slurm.cluster_name or definition.name
    release = catalog.release(server_release(definition))
    project_version = slurm.project_version or _bundled_project(release)
    sizes = [size for partition in slurm.partitions for size in sizes_of(definition, partition)]
    has_gpus, checked = any(size.gpu_count for size in sizes), any(is_checked(size) for size in sizes)
    project = catalog.slurm_project(project_version) or catalog.default_slurm_project()
    version = slurm.version or project.slurm
    node_arrays = tuple(
        node_array_plan(definition, slurm, cluster_name, partition, versions, shared, checked=checked)
        for partition in slurm.partitions
    )
    scheduler = scheduler_plan(definition, slurm, cluster_name, versions, shared, checked=checked)
    drains = slurm.slurm_nhc and any(spec.project == HEALTH for array in node_arrays for spec in array.specs)
    return SlurmPlan(
        cluster_name=cluster_name,
        template_name=f"{cluster_name}-template",
        config_name=names.slurm_config_name(cluster_name),
        sched=shared.sched,
        home=shared.home,
        version=version,
        project_version=project_version,
        project_url=f"{PROJECT_RELEASES}/{project_version}",
        certificate_key=project.certificate_key,
        pin_project=slurm.pin_project,
        autoscale=slurm.autoscale,
        start_cluster=slurm.start_cluster,
        scheduler=scheduler,
        login=login_plan(definition, slurm, versions, shared, checked=checked),
        node_arrays=node_arrays,
        accounting=accounting_plan(slurm, cluster_name, project, has_gpus=has_gpus, certificate=certificate),
        policy=policy_plan(slurm),
        launch_parameters=slurm.launch_parameters,
        hand_back_h=hand_back_h(slurm, scheduler.specs) if drains else None,
        additional_config=slurm_conf_lines(slurm, version, keeps_drained=drains),
        node_prefix=slurm.host_names.node_prefix,
        node_name_is_host_name=slurm.host_names.node_name_is_host_name,
        public_addresses=slurm.public_addresses,
        terminate_notification=slurm.terminate_notification,
        health_checks=slurm.runs_healthagent,
    )


def server_release(definition: Definition) -> str:
    """CycleCloud release of the server: as the definition or its build of the image names it, else the default."""
    server = definition.server
    if server.existing is not None:
        return server.existing.release
    of_build = catalog.release_of_build(server.image_version) if server.image_version else None
    return server.release or of_build or catalog.default_versions().cyclecloud


def _bundled_project(release: Release | None) -> str:
    return (release and release.slurm_project) or catalog.default_versions().slurm_project
