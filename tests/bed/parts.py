"""Parts of plans for the renderers' tests, taken from plans that the pipeline made and varied by `dataclasses.replace`.

Prefer `plan_from` of tests/bed/plans.py, which takes a whole definition: its parts agree with each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from generator.catalog import VmSize
from generator.definition.model.definition import Job
from generator.plan import names
from generator.plan.access import KINDS, Ends
from generator.plan.accounting import AccountingPlan, mysql_tier
from generator.plan.cleanup import cleanup_plan
from generator.plan.cluster import SlurmPlan
from generator.plan.created_types import Created, Purpose
from generator.plan.deployment import Plan
from generator.plan.egress import egress_plan
from generator.plan.file_systems.base import FileSystem
from generator.plan.file_systems.blob_container import BlobContainer
from generator.plan.file_systems.existing_server import ExistingServer
from generator.plan.file_systems.managed_lustre import ManagedLustre
from generator.plan.file_systems.netapp import NetAppVolume
from generator.plan.file_systems.registry import late_addresses, modules, node_settings
from generator.plan.fleet import Machines
from generator.plan.flows import with_flows
from generator.plan.image_terms import image_terms, unknown_images
from generator.plan.jobs import Listed, job_plan
from generator.plan.nodes import NodeArrayPlan
from generator.plan.parameters import secret_plans
from generator.plan.quota import quota_plan
from generator.plan.resources import providers, resource_names, slow_resources
from generator.plan.storage import FileSystems, in_mount_order
from generator.problems.problem import KeyPath
from tests.bed.plans import plan_from, slurm_of

GPU = """
slurm:
  partitions:
    - {name: hpc, vm_size: Standard_ND96amsr_A100_v4, max_nodes: 2}
    - {name: htc, vm_size: Standard_D64ds_v5, max_nodes: 2, default: true}
"""
STORAGE = """
network: {address_space: 10.50.0.0/20}
storage:
  home: {type: anf, size_tib: 4}
  mounts:
    - {path: /data, type: amlfs, tier: 250, size_tib: 128}
    - {path: /server, type: existing, address: 10.0.0.4}
    - {path: /models, type: blob, storage_account: datasets0001, container: models}
"""


def minimal() -> Plan:
    """A new network behind a Bastion, built-in NFS, one CPU partition."""
    return plan_from()


def node_array(name: str, node: VmSize | None = None, **changes: object) -> NodeArrayPlan:
    """A partition of small CPU nodes, of A100 nodes, or of nodes of a given kind, and then as the changes say."""
    gpu, cpu = slurm_of(plan_from(GPU)).node_arrays
    found = gpu if node and node.gpu_count else replace(cpu, is_default=True)
    values: dict[str, object] = {"name": name, "partition": name, "hardware": node or found.hardware} | changes
    return replace(found, **values)  # type: ignore[arg-type]


A100 = slurm_of(plan_from(GPU)).node_arrays[0].hardware


def hardware(vm_size: str = "Standard_D4as_v5", **changes: object) -> VmSize:
    """A CPU size unless the changes say otherwise."""
    return replace(slurm_of(minimal()).login.hardware, name=vm_size, **changes)  # type: ignore[arg-type]


def mount(name: str, path: str, **changes: object) -> ExistingServer:
    """A share of a third party's NFS server."""
    (found,) = (each for each in plan_from(STORAGE).mounts if isinstance(each, ExistingServer))
    values: dict[str, object] = {"address": None, "export_path": path} | changes
    return replace(found, name=name, path=path, **values)  # type: ignore[arg-type]


def container(name: str, path: str, storage_account: str, container: str) -> BlobContainer:
    """A container of a third party's storage account."""
    (found,) = (each for each in plan_from(STORAGE).mounts if isinstance(each, BlobContainer))
    return replace(found, name=name, path=path, storage_account=storage_account, container=container)


def lustre(path: str = "/data", size_gib: int = 128 * 1024, tier: int = 250) -> ManagedLustre:
    (found,) = (each for each in plan_from(STORAGE).mounts if isinstance(each, ManagedLustre))
    return replace(found, path=path, size_gib=size_gib, tier_mb_per_s_per_tib=tier)


def netapp_home() -> NetAppVolume:
    """A new NetApp Files volume for /shared."""
    home = slurm_of(plan_from(STORAGE)).home
    assert isinstance(home, NetAppVolume)
    return home


def new_accounting() -> AccountingPlan:
    found = slurm_of(plan_from("network: {address_space: 10.50.0.0/20}\nslurm: {accounting: {type: new}}")).accounting
    assert found is not None
    return found


def _host_list(slurm: SlurmPlan, array: NodeArrayPlan) -> str:
    return names.host_list(names.node_stem(slurm.cluster_name, slurm.node_prefix, array.name), array.max_nodes)


def fleet_of(plan: Plan, slurm: SlurmPlan) -> tuple[Machines, ...]:
    """The fleet of a plan whose server, scheduler, login nodes or partitions were changed."""
    of_role = {each.role: each for each in reversed(plan.fleet)}
    own = [each for each in plan.fleet if not each.is_node]
    scheduler = replace(of_role["scheduler"], hardware=slurm.scheduler.hardware)
    if slurm.scheduler.high_availability:
        scheduler = replace(scheduler, count=2, most=2)
    login = slurm.login
    subnets = {each.partition: each.subnet for each in plan.fleet}
    nodes = []
    for index, array in enumerate(slurm.node_arrays):
        place: KeyPath = ("slurm", "partitions", index)
        nodes += [
            replace(of_role["partition"], place=place, hardware=each.hardware, most=each.max_nodes, spot=each.spot,
                    size_key=("vm_sizes", number) if array.sizes else ("vm_size",), partition=array.partition,
                    subnet=subnets.get(array.partition), zones=tuple((zone, (*place, "zone")) for zone in array.zones))
            for number, each in enumerate(array.of_each_size)
        ]  # fmt: skip
    found = (*own, scheduler, replace(of_role.get("login", scheduler), count=login.count, most=login.max_count), *nodes)
    return tuple(each for each in found if each.most)


def settled(plan: Plan) -> Plan:
    """The plan with what follows from its parts, as the planner computes it.

    Only plans with a new server and a cluster are varied part by part.
    """
    if plan.slurm is None or plan.server is None:
        return plan
    slurm, network, server = plan.slurm, plan.network, plan.server
    arrays = tuple(replace(array, host_list=_host_list(slurm, array)) for array in slurm.node_arrays)
    shared = in_mount_order(FileSystems(slurm.sched, slurm.home, plan.mounts))
    accounting = slurm.accounting
    if accounting is not None and accounting.sku is not None:
        accounting = replace(accounting, tier=mysql_tier(accounting.sku))
    slurm = replace(slurm, node_arrays=arrays, accounting=accounting, sched=shared.sched, home=shared.home)
    kind = next(kind for kind in KINDS if kind.kind == network.access)
    network = replace(
        network,
        user_sources=kind.user_sources(network.hub.address_spaces if network.hub else ()),
        links_dns_zone=network.is_new and network.blob_dns_zone not in ("new", "none") and _links_zones(plan),
    )
    network = with_flows(
        network, kind, server, (shared.sched, shared.home, *shared.mounts), accounting, plan.monitoring
    )
    ends = Ends(
        username=plan.admin.username,
        server=server.vm_name,
        server_arguments=plan.access.server_arguments,
        scheduler=slurm.scheduler.host_name,
        network_is_new=network.is_new,
        server_is_new=True,
        allowed_sources=network.allowed_sources,
    )
    access = kind.planned(ends)
    fleet = fleet_of(plan, slurm)
    azure_names = resource_names(server.vm_name.removesuffix("-server"), plan.name, network.vnet_name, plan.cloud)
    return replace(
        plan,
        mounts=shared.mounts,
        network=network,
        slurm=slurm,
        names=azure_names,
        secrets=secret_plans(
            plan.admin.username,
            has_server=True,
            has_jumpbox=server.jumpbox is not None,
            has_accounting=accounting is not None,
            database_user=accounting.user if accounting else "",
            has_new_database=accounting is not None and accounting.is_new,
        ),
        deployment_name=names.deployment_name(plan.name, plan.location),
        cli_cloud=names.cli_cloud(plan.cloud),
        access=access,
        modules=modules(plan.all_mounts),
        late_addresses=late_addresses(plan.all_mounts),
        node_settings=node_settings(plan.mounts),
        providers=providers(_created(plan.all_mounts, accounting), plan.monitoring, image_terms(server, slurm, fleet)),
        image_terms=image_terms(server, slurm, fleet),
        unknown_images=unknown_images(server, slurm, fleet),
        fleet=fleet,
        quota=quota_plan(fleet),
        egress=egress_plan(plan.cloud, network, server, slurm, plan.all_mounts, plan.monitoring, plan.jobs),
        slow_resources=slow_resources(plan.all_mounts, slurm.accounting, access),
        cleanup=cleanup_plan(
            network,
            plan.all_mounts,
            slurm.accounting,
            plan.monitoring,
            server,
            plan.locker,
            azure_names,
            plan.subscription_id,
        ),
    )


def _created(mounts: Iterable[FileSystem], accounting: AccountingPlan | None) -> Iterator[Created]:
    """Types whose providers a deployment does not need in any case."""
    for mount in mounts:
        for each in mount.resource_types:
            yield Created(each, (), Purpose.FILE_SYSTEM, mount.path)
    if accounting is not None and accounting.is_new:
        yield Created("Microsoft.DBforMySQL/flexibleServers", (), Purpose.DATABASE, "")


def _links_zones(plan: Plan) -> bool:
    network = plan.resolved["network"]
    assert isinstance(network, dict)
    return bool(network["link_dns_zones"])


def with_jobs(plan: Plan, *jobs: Job) -> Plan:
    slurm = slurm_of(plan)
    file_systems = FileSystems(slurm.sched, slurm.home, plan.mounts)
    found = [job_plan(Listed(job, ("jobs",)), slurm, file_systems) for job in jobs]
    assert None not in found
    return replace(plan, jobs=tuple(job for job in found if job is not None))
