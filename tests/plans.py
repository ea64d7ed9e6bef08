"""Hand-made plans for the renderers' tests; `dataclasses.replace` varies them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath

from generator import catalog
from generator.catalog import VmSize
from generator.definition.model.definition import Job
from generator.plan import names
from generator.plan.access import access_plan
from generator.plan.cluster import PROJECT_RELEASES, mysql_tier
from generator.plan.file_systems.blob_container import BlobContainer
from generator.plan.file_systems.builtin_nfs import BuiltinNfs
from generator.plan.file_systems.existing_server import ExistingServer
from generator.plan.file_systems.managed_lustre import ManagedLustre
from generator.plan.file_systems.netapp import NetAppVolume
from generator.plan.file_systems.registry import late_addresses, modules, node_settings
from generator.plan.jobs import job_plan
from generator.plan.network import user_sources
from generator.plan.parameters import secret_plans
from generator.plan.quota import quota_plan
from generator.plan.resources import cleanup_plan, providers, resource_names, slow_resources
from generator.plan.storage import FileSystems, in_mount_order
from generator.plan.types import (
    AccountingPlan,
    AdminPlan,
    CleanupPlan,
    LockerPlan,
    LoginPlan,
    MarketplaceImage,
    NetworkPlan,
    NodeArrayPlan,
    Plan,
    ProjectPlan,
    QuotaPlan,
    SchedulerPlan,
    ServerPlan,
    SlurmPlan,
    SpecRef,
    SubnetPlan,
    Variable,
)

UBUNTU = SpecRef("misc_ubuntu", "default", "1.0.0", 10000)
NDV4 = SpecRef("misc_ndv4", "default", "1.0.0", 10100)
PYXIS = SpecRef("pyxis_enroot", "default", "1.0.0", 10200)
NHC = SpecRef("slurm_nhc", "default", "1.0.0", 10300)


def hardware(vm_size: str = "Standard_D4as_v5", **changes: object) -> VmSize:
    """A CPU size unless the changes say otherwise."""
    values: dict[str, object] = {"known": True, "vcpus": 4, "memory_gib": 16.0}
    return VmSize(vm_size, **(values | changes))  # type: ignore[arg-type]


A100 = hardware(
    "Standard_ND96amsr_A100_v4",
    vcpus=96,
    memory_gib=1900.0,
    health={
        "cpu": {"sockets": 2, "source": "Azure/azurehpc-health-checks:conf/nd96amsr_a100_v4.conf"},
        "memory": {"expected_kib": 1857830712, "tolerance_percent": 3, "source": ""},
    },
    gpu_count=8,
    gpu_vendor="NVIDIA",
    gpu_model="A100",
    gpu_memory_gb=80,
    infiniband_nics=8,
    infiniband_gbps_per_nic=200,
    nvme_count=8,
    nccl=catalog.vm_size("Standard_ND96amsr_A100_v4").nccl,
    nccl_topo_file="/opt/microsoft/ndv4-topo.xml",
    nccl_env=(
        ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),
        ("NCCL_IB_PCI_RELAXED_ORDERING", "1"),
        ("NCCL_SOCKET_IFNAME", "eth0"),
        ("NCCL_TOPO_FILE", "/opt/microsoft/ndv4-topo.xml"),
    ),
    tasks_per_node=8,
    cpus_per_task=12,
    cpu_masks=(
        "ffffff000000",
        "ffffff000000",
        "ffffff",
        "ffffff",
        "ffffff000000000000000000",
        "ffffff000000000000000000",
        "ffffff000000000000",
        "ffffff000000000000",
    ),
    quota_family="standardNDAMSv4_A100Family",
)


def mount(name: str, path: str, **changes: object) -> ExistingServer:
    """A share of somebody's NFS server."""
    values: dict[str, object] = {"protocol": "nfs", "address": "10.9.0.4", "export_path": path}
    return ExistingServer(name=name, path=path, **(values | changes))  # type: ignore[arg-type]


def container(name: str, path: str, storage_account: str, container: str) -> BlobContainer:
    """A container of somebody's storage account."""
    return BlobContainer(name=name, path=path, storage_account=storage_account, container=container)


def lustre(path: str = "/data", size_gib: int = 128 * 1024, tier: int = 250) -> ManagedLustre:
    """A new Managed Lustre file system."""
    return ManagedLustre(
        name="data",
        path=path,
        size_gib=size_gib,
        address_fact="dataAddress",
        export_path="",
        mount_options="noatime,user_xattr",
        tier_mb_per_s_per_tib=tier,
        zone="1",
        resource_name="minimal-data",
    )


def netapp_home() -> NetAppVolume:
    """A new NetApp Files volume for /shared."""
    return NetAppVolume(
        name="home",
        path="/shared",
        size_gib=4096,
        address_fact="homeAddress",
        export_path="/home-path",
        mount_options="rw,hard,rsize=262144,wsize=262144,vers=3,tcp,_netdev,nconnect=8",
        service_level="Premium",
        account_name="minimal-netapp",
        resource_name="home",
    )


def settled(plan: Plan) -> Plan:
    """The plan with what follows from its parts, as the planner computes it."""
    slurm, network = plan.slurm, plan.network
    arrays = tuple(
        replace(array, host_list=names.host_list(slurm.cluster_name, array.name, array.max_nodes))
        for array in slurm.node_arrays
    )
    shared = in_mount_order(FileSystems(plan.sched, plan.home, plan.mounts))
    accounting = slurm.accounting
    if accounting is not None and accounting.sku is not None:
        accounting = replace(accounting, tier=mysql_tier(accounting.sku))
    slurm = replace(slurm, node_arrays=arrays, accounting=accounting)
    network = replace(
        network,
        user_sources=user_sources(network.access, network.hub),
        links_dns_zone=network.is_new and network.blob_dns_zone not in ("new", "none"),
    )
    return replace(
        plan,
        sched=shared.sched,
        home=shared.home,
        mounts=shared.mounts,
        network=network,
        slurm=slurm,
        names=resource_names(plan.server.vm_name.removesuffix("-server"), plan.name, network.vnet_name, plan.cloud),
        secrets=secret_plans(
            plan.admin.username, has_jumpbox=plan.server.jumpbox is not None, has_accounting=accounting is not None
        ),
        deployment_name=names.deployment_name(plan.name, plan.location),
        cli_cloud=names.cli_cloud(plan.cloud),
        access=access_plan(network, plan.admin.username, plan.server.vm_name, slurm.scheduler.host_name),
        modules=modules(plan.all_mounts),
        late_addresses=late_addresses(plan.all_mounts),
        node_settings=node_settings(plan.mounts),
        providers=providers(plan.all_mounts, slurm.accounting, plan.monitoring),
        quota=quota_plan(plan.server, slurm),
        slow_resources=slow_resources(plan.all_mounts, slurm.accounting, network),
        cleanup=cleanup_plan(network, plan.all_mounts, slurm.accounting, plan.monitoring),
    )


def node_array(name: str, node: VmSize | None = None, **changes: object) -> NodeArrayPlan:
    """A partition of small CPU nodes unless the changes say otherwise."""
    node = node or hardware("Standard_D64ds_v5", vcpus=64, memory_gib=256.0)
    gpu = node.gpu_count > 0
    values: dict[str, object] = {
        "name": name,
        "partition": name,
        "hardware": node,
        "image": "cycle.image.ubuntu24",
        "max_nodes": 2,
        "host_list": "",
        "is_default": not gpu,
        "is_hpc": gpu,
        "max_scale_set_size": 100,
        "use_physical_cpus": gpu,
        "spot": False,
        "spot_max_price_usd_per_hour": None,
        "zones": (),
        "os_disk_gb": None,
        "dampen_memory_percent": None,
        "node_health_checks": False,
        "specs": (UBUNTU, NDV4, PYXIS, NHC) if gpu else (UBUNTU, PYXIS),
        "attributes": (("cycleforge.nvme.mount_point", "/nvme"),) if gpu else (),
    }
    return NodeArrayPlan(**(values | changes))  # type: ignore[arg-type]


def with_jobs(plan: Plan, *jobs: Job) -> Plan:
    """The plan with these jobs in place of its own."""
    file_systems = FileSystems(plan.sched, plan.home, plan.mounts)
    found = [job_plan(job, plan.slurm, file_systems) for job in jobs]
    assert None not in found
    return replace(plan, jobs=tuple(job for job in found if job is not None))


NETWORK = NetworkPlan(
    is_new=True,
    vnet_name="minimal-vnet",
    vnet_resource_group="minimal-rg",
    vnet_id=None,
    address_space="10.50.0.0/22",
    subnets=(
        SubnetPlan("server", "server", "10.50.2.0/27", None, uses_nat=True),
        SubnetPlan("endpoints", "endpoints", "10.50.2.32/28", None, uses_nat=False),
        SubnetPlan("bastion", "AzureBastionSubnet", "10.50.2.64/26", None, uses_nat=False),
        SubnetPlan("compute", "compute", "10.50.0.0/23", None, uses_nat=True),
    ),
    access="bastion",
    allowed_sources=(),
    hub=None,
    user_sources=(),
    nat_gateway=True,
    blob_dns_zone="new",
    links_dns_zone=False,
)


def minimal() -> Plan:
    """A new network behind a Bastion, built-in NFS, one CPU partition."""
    image = MarketplaceImage("azurecyclecloud", "azure-cyclecloud", "cyclecloud8-gen2", "8.9.120260630")
    plan = Plan(
        name="minimal",
        definition="minimal.yaml",
        deployment_name="",
        location="southcentralus",
        cloud="public",
        cli_cloud=None,
        subscription_id=None,
        resource_group="minimal-rg",
        names=resource_names("minimal", "minimal", "minimal-vnet", "public"),
        tags=(("created-by", "cycleforge"), ("deployment", "minimal")),
        admin=AdminPlan(
            "ccadmin", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFakeFakeFakeFakeFakeFakeFakeFakeFakeFakeFake user"
        ),
        network=NETWORK,
        access=access_plan(NETWORK, "ccadmin", "minimal-server", "minimal-scheduler"),
        server=ServerPlan("minimal-server", "Standard_D4as_v5", "8.9.1", image, None, None, None, None, None, False),
        locker=LockerPlan(None, "cyclecloud", "Standard_LRS", "azure-storage", "azure", None),
        home=BuiltinNfs(name="home", path="/shared", size_gib=100, export_path="/shared"),
        sched=BuiltinNfs(name="sched", path="/sched", size_gib=30, export_path="/sched"),
        mounts=(),
        slurm=SlurmPlan(
            cluster_name="minimal",
            template_name="minimal-template",
            config_name="minimal",
            version="25.11.5",
            project_version="4.0.9",
            project_url=f"{PROJECT_RELEASES}/4.0.9",
            pin_project=False,
            autoscale=True,
            start_cluster=False,
            scheduler=SchedulerPlan(
                hardware(), "cycle.image.ubuntu24", "minimal-scheduler", False, None, None, None, (UBUNTU, PYXIS), ()
            ),
            login=LoginPlan(hardware(), "cycle.image.ubuntu24", 1, 1, None, (UBUNTU, PYXIS), ()),
            node_arrays=(node_array("htc"),),
            accounting=None,
            launch_parameters="use_interactive_step",
            additional_config=("MpiDefault=pmix", "JobAcctGatherType=jobacct_gather/cgroup"),
            health_checks=True,
        ),
        monitoring=None,
        projects=tuple(
            ProjectPlan(
                name,
                "1.0.0",
                PurePosixPath("projects") / name,
                False,
                ("default",),
                ("scheduler", "login", "htc"),
                "0" * 64,
            )
            for name in ("misc_ubuntu", "pyxis_enroot")
        ),
        jobs=(),
        asked=(),
        secrets=secret_plans("ccadmin", has_jumpbox=False, has_accounting=False),
        variables=(Variable("CYCLECLOUD_ADMIN_PASSWORD", "Password of the CycleCloud administrator.", True, None, ""),),
        modules=(),
        late_addresses=(),
        node_settings=(),
        providers=(),
        quota=QuotaPlan((), (), ()),
        slow_resources=(),
        cleanup=CleanupPlan((), None, ()),
        silenced=(),
    )
    return settled(with_jobs(plan, Job(recipe="smoke", partition="htc", nodes=1)))


def new_accounting() -> AccountingPlan:
    """A MySQL flexible server of this deployment."""
    return AccountingPlan(True, None, "Standard_B2ms", "Burstable", 32, "8.0.21", None, "slurmdb", "slurm_acct_db")
