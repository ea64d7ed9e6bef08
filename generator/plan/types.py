"""What the planner decides, once, for every renderer: plain frozen dataclasses.

Renderers print these values and decide nothing. Every field is final: names are checked and within their limits,
numbers carry their unit in the name, `None` means "does not apply" unless the docstring says otherwise.
Collections are tuples in the order in which they are printed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Literal

Role = Literal["scheduler", "login", "execute"]
SubnetRole = Literal["server", "compute", "endpoints", "bastion", "netapp", "lustre", "database"]
Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


@dataclass(frozen=True)
class Asked:
    """A value that the definition left to an unset environment variable and that is asked for at deployment.

    It becomes the parameter `parameter` of `main.bicep` without a default; `main.bicepparam` reads it from the
    environment variable `variable`.
    """

    variable: str
    parameter: str
    description: str


@dataclass(frozen=True)
class AdminPlan:
    """The first user: administrator of the CycleCloud site and of the server VM (SSH key only)."""

    username: str
    ssh_public_key: str | Asked


# ---------------------------------------------------------------- network


@dataclass(frozen=True)
class SubnetPlan:
    """One subnet. `prefix` is a CIDR; None in an existing network, whose prefixes the deployment does not know."""

    role: SubnetRole
    name: str
    prefix: str | None
    delegation: str | None
    """Resource provider that the subnet is delegated to, for example `Microsoft.Netapp/volumes`."""
    uses_nat: bool


@dataclass(frozen=True)
class HubPlan:
    """Peering with the network that owns the VPN or ExpressRoute gateway."""

    vnet_id: str | Asked
    use_remote_gateway: bool
    address_spaces: tuple[str, ...]
    """Prefixes from which users come; the firewall rules allow them. Empty: the VirtualNetwork tag covers the peer."""


@dataclass(frozen=True)
class NetworkPlan:
    """The virtual network, new or existing, and the way in."""

    is_new: bool
    vnet_name: str
    vnet_resource_group: str
    vnet_id: str | None
    """Resource id of an existing network; None for a new one."""
    address_space: str | None
    subnets: tuple[SubnetPlan, ...]
    access: Literal["bastion", "hub", "public"]
    allowed_sources: tuple[str, ...]
    """CIDRs that may reach the server's public address (access `public` only)."""
    hub: HubPlan | None
    nat_gateway: bool
    blob_dns_zone: Literal["new", "none"] | str
    """`new`, `none` (somebody else resolves the private endpoint) or the resource id of an existing zone."""

    def subnet(self, role: SubnetRole) -> SubnetPlan | None:
        """The subnet of a role, if this network has it."""
        return next((subnet for subnet in self.subnets if subnet.role == role), None)


# ---------------------------------------------------------------- server


@dataclass(frozen=True)
class MarketplaceImage:
    """A CycleCloud server image of the marketplace; `plan` fields must be passed with the VM."""

    publisher: str
    offer: str
    sku: str
    version: str


@dataclass(frozen=True)
class JumpboxPlan:
    """A Windows VM whose browser reaches the portal; only on request."""

    vm_name: str
    computer_name: str
    vm_size: str
    image: MarketplaceImage


@dataclass(frozen=True)
class ServerPlan:
    """The CycleCloud server VM."""

    vm_name: str
    vm_size: str
    release: str
    """CycleCloud release, for example `8.9.1`."""
    image: MarketplaceImage | None
    image_id: str | None
    """Own image; then no marketplace plan is passed."""
    os_disk_gb: int | None
    data_disk_gb: int | None
    """Size of the data disk for an own image; the marketplace image brings its own disk."""
    java_heap_mb: int | None
    jumpbox: JumpboxPlan | None
    accept_marketplace_terms: bool


@dataclass(frozen=True)
class LockerPlan:
    """Storage that nodes and server share; CycleCloud calls it `<account>-storage`, here `azure-storage`."""

    account_name: str | None
    """None: the deployment derives a unique name from subscription and resource group."""
    container: str
    redundancy: str
    """Storage SKU, for example `Standard_LRS`."""
    locker_name: str


# ---------------------------------------------------------------- storage

FileSystemKind = Literal["nfs", "anf", "amlfs", "existing", "blob"]


@dataclass(frozen=True)
class MountPlan:
    """One shared file system as every node sees it.

    Kinds: `nfs` = disk of the scheduler, exported by CycleCloud; `existing` = somebody's NFS or Lustre server;
    `anf` and `amlfs` = created by this deployment, so the address is known only afterwards; `blob` = container of a
    storage account, mounted by blobfuse.
    """

    name: str
    """`home` (/shared), `sched` (/sched) or a name derived from the mount point, unique, [a-z0-9-]."""
    path: str
    kind: FileSystemKind
    protocol: Literal["nfs", "lustre", "blobfuse"]
    size_gib: int | None
    address: str | None
    """None for built-in NFS and where the address is an output of the deployment (`address_fact`)."""
    address_fact: str | None
    """Key in the server's `facts.json` that holds the address, for example `homeAddress`."""
    export_path: str | None
    mount_options: str | None
    # NetApp Files
    service_level: str | None
    throughput_mibps: int | None
    # Managed Lustre
    tier_mb_per_s_per_tib: int | None
    """40, 125, 250 or 500; the SKU is `AMLFS-Durable-Premium-<tier>`."""
    # blobfuse
    storage_account: str | None
    container: str | None
    zone: str | None


# ---------------------------------------------------------------- Slurm


@dataclass(frozen=True)
class SpecRef:
    """One cluster-init spec of a role, in template order."""

    project: str
    spec: str
    version: str
    order: int
    """CycleCloud's Order; own specs start at 10000 and rise by 100."""

    @property
    def key(self) -> str:
        """`project:spec:version`, as CycleCloud writes it."""
        return f"{self.project}:{self.spec}:{self.version}"


@dataclass(frozen=True)
class NodeHardware:
    """Catalogue figures of a VM size that templates, node attributes and jobs need; None = nobody published it."""

    vm_size: str
    known: bool
    vcpus: int | None
    memory_gib: float | None
    arch: Literal["x86_64", "aarch64"]
    gpu_count: int
    gpu_vendor: str | None
    gpu_model: str | None
    gpu_memory_gb: int | None
    infiniband_nics: int
    infiniband_gbps_per_nic: int | None
    nvme_count: int | None
    numa_nodes: int | None
    nccl_topo_file: str | None
    nccl_graph_file: str | None
    nccl_env: tuple[tuple[str, str], ...]
    tasks_per_node: int | None
    cpus_per_task: int | None
    cpu_masks: tuple[str, ...]
    quota_family: str | None


@dataclass(frozen=True)
class NodeArrayPlan:
    """One Slurm partition: one CycleCloud node array of one VM size."""

    name: str
    partition: str
    hardware: NodeHardware
    image: str
    max_nodes: int
    is_default: bool
    is_hpc: bool
    """True: one placement group, InfiniBand. Written explicitly, because a missing value breaks `azslurm scale`."""
    max_scale_set_size: int
    use_physical_cpus: bool
    spot: bool
    spot_max_price_usd_per_hour: float | None
    """None = pay up to the on-demand price."""
    zone: str | None
    os_disk_gb: int | None
    dampen_memory_percent: int | None
    node_health_checks: bool
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]
    """`[[[configuration]]]` keys beyond the Slurm ones, sorted: what our projects read, then the user's own."""

    @property
    def vm_size(self) -> str:
        """VM size of every node."""
        return self.hardware.vm_size


@dataclass(frozen=True)
class SchedulerPlan:
    """The scheduler VM and, with high availability, its second one."""

    hardware: NodeHardware
    image: str
    host_name: str
    high_availability: bool
    zone: str | None
    backup_zone: str | None
    os_disk_gb: int | None
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]


@dataclass(frozen=True)
class LoginPlan:
    """Login nodes."""

    hardware: NodeHardware
    image: str
    count: int
    max_count: int
    os_disk_gb: int | None
    specs: tuple[SpecRef, ...]
    attributes: tuple[tuple[str, str | int | bool], ...]


@dataclass(frozen=True)
class AccountingPlan:
    """slurmdbd's database: a new MySQL flexible server with private access, or an existing one."""

    is_new: bool
    server_name: str | None
    """Name of the new server; None = derived from subscription and resource group by the deployment."""
    sku: str | None
    storage_gib: int | None
    version: str | None
    host: str | None
    """Host name or address of an existing server; for a new one the fact `databaseHost` holds it."""
    user: str
    database: str


@dataclass(frozen=True)
class MonitoringPlan:
    """Metrics into an existing Azure Monitor workspace."""

    workspace_id: str
    ingestion_endpoint: str
    data_collection_rule_id: str


@dataclass(frozen=True)
class SlurmPlan:
    """The Slurm cluster."""

    cluster_name: str
    config_name: str
    """Cluster name as cyclecloud-slurm sanitises it: `/sched/<config_name>` holds slurm.conf."""
    version: str
    project_version: str
    pin_project: bool
    """True: template references name the version; False: they follow what the server brings."""
    autoscale: bool
    start_cluster: bool
    scheduler: SchedulerPlan
    login: LoginPlan
    node_arrays: tuple[NodeArrayPlan, ...]
    accounting: AccountingPlan | None
    launch_parameters: str
    additional_config: tuple[str, ...]
    """Lines for slurm.conf (`additional_slurm_config`), in order."""
    health_checks: bool
    """cyclecloud-slurm's healthagent hooks."""


# ---------------------------------------------------------------- projects, jobs


@dataclass(frozen=True)
class BlobPlan:
    """A file of somebody else that a shipped project uses; it travels when this machine has it (`present`)."""

    file: str
    version: str
    sha256: str
    size_bytes: int
    state: Literal["present", "missing", "damaged"]
    is_needed: bool = True
    """False: the nodes of this cluster do not look for it, for example because their Slurm project brings the same."""


@dataclass(frozen=True)
class ProjectPlan:
    """A cluster-init project that travels with the deployment."""

    name: str
    version: str
    source: PurePosixPath
    """Folder relative to the assets root (shipped projects) or to the definition's folder (`is_local`)."""
    is_local: bool
    specs: tuple[str, ...]
    roles: tuple[str, ...]
    """Where it is attached: `scheduler`, `login` or the names of node arrays; for `plan` and the README."""
    digest: str
    """sha256 over the sorted relative paths and contents; of a blob of somebody else its pinned sha256 counts."""
    blobs: tuple[BlobPlan, ...] = ()


@dataclass(frozen=True)
class CheckpointPlan:
    """Checkpoint arithmetic of one training job (sizes in bytes, bandwidth in 10^9 bytes/s)."""

    parameters: int
    bytes_per_parameter: int
    checkpoint_bytes: int
    kept: int
    needed_bytes: int
    capacity_bytes: int | None
    bandwidth_gb_per_s: float | None
    seconds_per_checkpoint: float | None


@dataclass(frozen=True)
class JobPlan:
    """One job folder below `jobs/`.

    `recipe` names the source folder `recipes/<recipe>`; `settings` is printed into the job's `settings.env`, sorted.
    """

    name: str
    kind: Literal["validation", "training"]
    recipe: str
    node_array: str
    nodes: int
    settings: tuple[tuple[str, str], ...]
    checkpoint: CheckpointPlan | None


@dataclass(frozen=True)
class Variable:
    """An environment variable that the definition names, or that a secret parameter is read from."""

    name: str
    description: str
    secret: bool
    default: str | None
    example: str


@dataclass(frozen=True)
class SecretPlan:
    """A secure parameter of `main.bicep`; its value never stands in any file."""

    parameter: str
    variable: str
    description: str


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
