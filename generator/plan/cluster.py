"""The Slurm plan: scheduler, login nodes, node arrays, accounting, slurm.conf lines."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain

from .. import catalog
from ..catalog import Release
from ..catalog.sizes import VmSize
from ..definition.model.definition import Definition
from ..definition.model.slurm import NodeProjects, Partition, Slurm
from . import names
from .accounting import accounting_plan
from .assignment import HEALTH, POLICY, is_checked, specs_of
from .attributes import node_attributes
from .custom_sizes import size_of
from .drained import HAND_BACK, hand_back_h, without_checks
from .images import default_image
from .mig import mig_plan
from .network import node_subnet
from .policy import policy_attributes, policy_plan
from .real_memory import real_memory_mib, withheld_percent
from .slurm_conf import slurm_conf_lines
from .storage import FileSystems
from .tags import tags_of
from .types import LoginPlan, NodeArrayPlan, SchedulerPlan, SizeNodes, SlurmPlan
from .vm_attributes import vm_attributes

PROJECT_RELEASES = "https://github.com/Azure/cyclecloud-slurm/releases"


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
        _node_array(definition, slurm, cluster_name, partition, versions, shared, checked=checked)
        for partition in slurm.partitions
    )
    scheduler = _scheduler(definition, slurm, cluster_name, versions, shared, checked=checked)
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
        login=_login(definition, slurm, versions, shared, checked=checked),
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


def image_of(slurm: Slurm, node: NodeProjects, hardware: VmSize) -> str:
    """Image of a role: its own, else the cluster's, else the default for its VM size."""
    return node.image or slurm.image or default_image(hardware)


def is_default(slurm: Slurm, partition: Partition) -> bool:
    """The partition marked default, or the only one."""
    return partition.default or len(slurm.partitions) == 1


def sizes_of(definition: Definition, partition: Partition) -> tuple[VmSize, ...]:
    """The VM sizes of a partition, the preferred one first."""
    return tuple(size_of(definition, name) for name in partition.sizes)


def deciding_size(sizes: tuple[VmSize, ...]) -> VmSize:
    """Of several VM sizes the one whose image and projects fit all: the first with GPUs, else with InfiniBand."""
    with_gpus = (size for size in sizes if size.gpu_count)
    with_infiniband = (size for size in sizes if size.infiniband)
    return next(chain(with_gpus, with_infiniband, sizes), VmSize(""))


def is_hpc(partition: Partition, sizes: tuple[VmSize, ...]) -> bool:
    """One placement group: as the definition says, else where the size has InfiniBand; never with several sizes.

    azslurm finds the bucket of a dynamic node only outside of placement groups.
    Source: https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm/slurmcc/partition.py
    """
    if partition.hpc is not None:
        return partition.hpc
    return len(sizes) == 1 and sizes[0].infiniband


def scale_set_size(partition: Partition, sizes: tuple[VmSize, ...]) -> int:
    """VMs per scale set: tightly coupled nodes are in one, so it must hold all of them."""
    if partition.max_scale_set_size is not None:
        return partition.max_scale_set_size
    default = int(catalog.limits().scale_set_with_infiniband.value)
    return max(default, partition.max_nodes) if is_hpc(partition, sizes) else default


def _scheduler(
    definition: Definition,
    slurm: Slurm,
    cluster_name: str,
    versions: Mapping[str, str],
    shared: FileSystems,
    *,
    checked: bool,
) -> SchedulerPlan:
    scheduler = slurm.scheduler
    hardware = size_of(definition, scheduler.vm_size)
    policy = policy_plan(slurm)
    needed = (POLICY,) if policy else ()
    specs = specs_of("scheduler", scheduler, hardware, versions, nodes_are_checked=checked, needed=needed)
    attributes = dict(node_attributes("scheduler", scheduler, (hardware,), specs, shared))
    hours = hand_back_h(slurm, specs)
    if hours is not None:
        attributes.setdefault(HAND_BACK, hours)
    attributes = without_checks(slurm, specs) | attributes
    return SchedulerPlan(
        hardware=hardware,
        image=image_of(slurm, scheduler, hardware),
        host_name=slurm.host_names.scheduler or names.scheduler_name(cluster_name),
        high_availability=scheduler.high_availability,
        zone=scheduler.zone,
        backup_zone=scheduler.backup_zone,
        os_disk_gb=scheduler.os_disk_gb,
        specs=specs,
        attributes=tuple(sorted((policy_attributes(policy) | attributes).items())),
        vm_attributes=vm_attributes(scheduler, tags_of(definition)),
        subnet=node_subnet(definition, scheduler),
    )


def _login(
    definition: Definition, slurm: Slurm, versions: Mapping[str, str], shared: FileSystems, *, checked: bool
) -> LoginPlan:
    login = slurm.login
    hardware = size_of(definition, login.vm_size)
    specs = specs_of("login", login, hardware, versions, nodes_are_checked=checked)
    return LoginPlan(
        hardware=hardware,
        image=image_of(slurm, login, hardware),
        count=login.count,
        max_count=login.most,
        os_disk_gb=login.os_disk_gb,
        specs=specs,
        attributes=node_attributes("login", login, (hardware,), specs, shared),
        vm_attributes=vm_attributes(login, tags_of(definition)),
        subnet=node_subnet(definition, login),
    )


def _node_array(
    definition: Definition,
    slurm: Slurm,
    cluster_name: str,
    partition: Partition,
    versions: Mapping[str, str],
    shared: FileSystems,
    *,
    checked: bool,
) -> NodeArrayPlan:
    sizes = sizes_of(definition, partition)
    hardware = deciding_size(sizes)
    specs = specs_of("execute", partition, hardware, versions, nodes_are_checked=checked)
    hpc = is_hpc(partition, sizes)
    stem = names.node_stem(cluster_name, slurm.host_names.node_prefix, partition.name)
    of_sizes = _of_sizes(stem, partition, sizes)
    mig = mig_plan(partition, hardware) if partition.vm_sizes is None else None
    of_node = dict(node_attributes("execute", partition, sizes, specs, shared, mig))
    return NodeArrayPlan(
        name=partition.name,
        partition=partition.name,
        hardware=sizes[0],
        sizes=of_sizes,
        dynamic_feature=names.dynamic_feature(partition.name) if of_sizes else None,
        constraint=None,
        image=image_of(slurm, partition, hardware),
        max_nodes=partition.most_nodes,
        host_list=",".join(size.host_list for size in of_sizes) or names.host_list(stem, partition.max_nodes),
        is_default=is_default(slurm, partition),
        is_hpc=hpc,
        max_scale_set_size=scale_set_size(partition, sizes),
        use_physical_cpus=partition.use_physical_cpus if partition.use_physical_cpus is not None else hpc,
        spot=partition.spot,
        spot_max_price_usd_per_hour=partition.spot_max_price_usd_per_hour,
        zones=(partition.zone,) if partition.zone else (),
        os_disk_gb=partition.os_disk_gb,
        dampen_memory_percent=(
            withheld_percent(hardware)
            if partition.dampen_memory_percent is None and not of_sizes
            else partition.dampen_memory_percent
        ),
        mig=mig,
        node_health_checks=partition.node_health_checks,
        specs=specs,
        attributes=tuple(sorted((without_checks(slurm, specs) | of_node).items())),
        vm_attributes=vm_attributes(partition, tags_of(definition)),
        subnet=node_subnet(definition, partition),
    )


def _memory_mib(size: VmSize, withheld: int | None) -> int | None:
    """What Slurm is told of the memory of a node that is created by hand; None where nobody has stated any."""
    if size.memory_gib is None:
        return None
    return real_memory_mib(size.memory_gib, withheld_percent(size) if withheld is None else withheld)


def _of_sizes(stem: str, partition: Partition, sizes: tuple[VmSize, ...]) -> tuple[SizeNodes, ...]:
    """The nodes of each size; empty for a partition of one size, whose nodes azslurm names."""
    if partition.vm_sizes is None:
        return ()
    return tuple(
        SizeNodes(
            hardware=size,
            host_list=names.host_list(f"{stem}-{names.size_part(size.name)}", partition.max_nodes),
            max_nodes=partition.max_nodes,
            memory_mib=_memory_mib(size, partition.dampen_memory_percent),
            weight=weight,
        )
        for weight, size in enumerate(sizes, start=1)
    )


def _bundled_project(release: Release | None) -> str:
    return (release and release.slurm_project) or catalog.default_versions().slurm_project
