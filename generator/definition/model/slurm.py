"""`slurm:` the scheduler, login nodes, accounting and partitions."""

from typing import Literal

from .fields import Section, setting
from .policy import PartitionPolicy, Policy
from .storage import Zone

Value = str | int | bool


class NodeProjects(Section):
    """Which cluster-init projects a role runs, and what their scripts read."""

    projects: list[str] | None = setting(
        None,
        text="Projects, `name` or `name:spec`, in order; default: chosen from role and VM size.",
        change="node restart",
        example=["misc_ubuntu", "pyxis_enroot"],
        active=False,
    )
    extra_projects: list[str] = setting(
        list, text="Projects that run after the chosen ones.", change="node restart", example=[]
    )
    configuration: dict[str, Value] = setting(
        dict,
        text="Node attributes that scripts read by `jetpack config`.",
        change="node restart",
        example={"site.owner": "research"},
    )
    node_attributes: dict[str, Value] = setting(
        dict,
        text="What CycleCloud takes of the VMs beyond the other keys, by its names: EncryptionAtHost, SecurityType, "
        "EphemeralOSDisk; tags.NAME for a tag, volume.boot.StorageAccountType for a disk.",
        change="node restart",
        example={"tags.team": "research"},
    )
    image: str | None = setting(
        None,
        text="Image: CycleCloud name, marketplace URN or resource id; default: slurm.image.",
        change="node restart",
        example="cycle.image.ubuntu24",
    )
    subnet: str | None = setting(
        None,
        text="Name of the entry of compute_subnets that the nodes are in; default: the compute subnet.",
        change="node restart",
        example="gpu",
        active=False,
    )
    os_disk_gb: int | None = setting(
        None,
        text="OS disk, not smaller than the image; default: size of the image.",
        change="node restart",
        unit="GB",
        ge=30,
        le=4095,
        example=64,
    )


class _SchedulerNode(Section):
    vm_size: str = setting("Standard_D4ads_v5", text="VM size.", change="recreate", example="Standard_D4ads_v5")
    high_availability: bool = setting(
        False,
        text="A second scheduler takes over; needs external /sched and /shared.",
        change="recreate",
        example=False,
    )
    zone: Zone | None = setting(
        None, text="Zone of the scheduler; only with high availability.", change="recreate", example="1", active=False
    )
    backup_zone: Zone | None = setting(
        None, text="Zone of the second scheduler.", change="recreate", example="2", active=False
    )


class Scheduler(NodeProjects, _SchedulerNode):
    """The node that runs slurmctld and, with built-in NFS, exports /sched and /shared."""


class _LoginNode(Section):
    vm_size: str = setting("Standard_D4ads_v5", text="VM size.", change="node restart", example="Standard_D8ads_v5")
    count: int = setting(1, text="Nodes that start with the cluster.", unit="nodes", ge=0, le=100, example=2)
    max_count: int | None = setting(
        None, text="Upper limit; default: count, at least 1.", unit="nodes", ge=0, le=100, example=4
    )


class Login(NodeProjects, _LoginNode):
    """Login nodes."""

    @property
    def most(self) -> int:
        """Nodes that may run at once."""
        return self.max_count if self.max_count is not None else max(self.count, 1)


class NewDatabase(Section):
    """Accounting in a new MySQL flexible server with private access."""

    type: Literal["new"] = setting(text="Create the database server.", change="recreate", example="new")
    server_name: str | None = setting(
        None,
        text="Name of the server, which nobody else in Azure may have; default: derived from subscription and resource "
        "group.",
        change="recreate",
        example="reference-slurmdb",
        active=False,
    )
    sku: str | None = setting(
        None,
        text="Compute size of the server; default: Standard_D2ads_v5 for a cluster with GPUs, else Standard_B2ms.",
        example="Standard_D2ads_v5",
    )
    version: str = setting(
        "8.4",
        text="MySQL version; an older one only for a server that has it already.",
        change="recreate",
        example="8.4",
    )
    storage_gib: int = setting(
        32,
        text="Storage of the server; it grows by itself, and never shrinks.",
        unit="GiB",
        ge=20,
        le=32768,
        example=32,
    )
    user: str = setting("slurmadmin", text="Administrator of the database.", change="recreate", example="slurmadmin")
    database: str | None = setting(
        None, text="Database name; default: from the cluster name.", change="recreate", example="reference_acct_db"
    )


class ExistingDatabase(Section):
    """Accounting in an existing MySQL server."""

    type: Literal["existing"] = setting(text="Use an existing server.", change="recreate", example="existing")
    host: str = setting(text="Host name or IP address.", change="recreate", example="mysql.example.com")
    certificate: str | None = setting(
        None,
        text="Certificate of the authority that has signed the server's, in PEM: the text itself, or a path relative "
        "to this file; default: those of Azure Database for MySQL. With CycleCloud 8.9.0 or newer.",
        example="mysql-ca.pem",
        active=False,
    )
    user: str = setting(text="Database user.", change="recreate", example="slurm")
    database: str | None = setting(
        None, text="Database name; default: from the cluster name.", change="recreate", example="slurm_acct_db"
    )


Accounting = NewDatabase | ExistingDatabase


class _NodeArray(Section):
    name: str = setting(text="Name of partition and node array.", change="recreate", example="hpc")
    vm_size: str | None = setting(
        None,
        text="VM size of every node; this or vm_sizes is needed.",
        change="node restart",
        example="Standard_ND96amsr_A100_v4",
    )
    vm_sizes: list[str] | None = setting(
        None,
        text="Several VM sizes instead of one; jobs choose with --constraint, all others get the first that is free.",
        change="node restart",
        example=["Standard_D32ds_v5", "Standard_D64ds_v5"],
        active=False,
    )
    max_nodes: int = setting(
        text="Upper limit of autoscaling; with vm_sizes, of each size.", unit="nodes", ge=1, le=10000, example=2
    )
    default: bool = setting(
        False, text="Jobs without a partition go here; exactly one, or the only partition.", example=True
    )
    zone: Zone | None = setting(None, text="Availability zone.", change="node restart", example="1")
    spot: bool = setting(False, text="Spot VMs: cheaper, may be evicted.", change="node restart", example=False)
    spot_max_price_usd_per_hour: float | None = setting(
        None,
        text="Highest price of a spot VM; default: the on-demand price.",
        change="node restart",
        unit="USD/h",
        gt=0,
        example=2.5,
        active=False,
    )
    hpc: bool | None = setting(
        None,
        text="One placement group for tightly coupled jobs; default: where the VM size has InfiniBand.",
        change="recreate",
        example=True,
    )
    max_scale_set_size: int | None = setting(
        None,
        text="VMs per scale set; default: 100, or max_nodes where that is larger and approved.",
        unit="VMs",
        ge=1,
        le=1000,
        example=100,
    )
    large_scale_set_approved: bool = setting(
        False, text="Azure support has raised the limit of InfiniBand scale sets to 300.", example=False
    )
    use_physical_cpus: bool | None = setting(
        None,
        text="Slurm counts physical cores instead of hyperthreads; default: true for hpc.",
        change="node restart",
        example=True,
    )
    dampen_memory_percent: int | None = setting(
        None,
        text="Memory withheld from jobs; default: what guests of the VM size need, at least max(1 GiB, 5 %).",
        unit="%",
        ge=1,
        le=50,
        example=8,
    )
    mig_profile: str | None = setting(
        None,
        text="Every GPU is divided into slices of this MIG profile, which Slurm gives to jobs; none by default.",
        change="node restart",
        example="1g.10gb",
        active=False,
    )
    node_health_checks: bool = setting(
        False, text="The image's own health suite runs once when a node starts.", change="node restart", example=False
    )


class Partition(PartitionPolicy, NodeProjects, _NodeArray):
    """One Slurm partition, backed by one CycleCloud node array of one VM size or of several."""

    @property
    def sizes(self) -> tuple[str, ...]:
        """The VM sizes as written, the preferred one first; empty where there is none, which E3101 reports."""
        if self.vm_sizes is not None:
            return tuple(self.vm_sizes)
        return (self.vm_size,) if self.vm_size is not None else ()

    @property
    def first_size(self) -> str:
        """The VM size of a job that asks for none."""
        return next(iter(self.sizes), "")

    @property
    def most_nodes(self) -> int:
        """Nodes of all sizes together that may run at once."""
        return self.max_nodes * max(1, len(self.sizes))


class HostNames(Section):
    """What the nodes are called, in Slurm and in the network."""

    node_prefix: str | None = setting(
        None,
        text="What stands before <partition>-<number>; an empty text for nothing; default: the cluster's name and a "
        "hyphen.",
        change="recreate",
        example="lab-",
        active=False,
    )
    scheduler: str | None = setting(
        None,
        text="Host name of the scheduler; default: <cluster>-scheduler.",
        change="recreate",
        example="lab-head",
        active=False,
    )
    node_name_is_host_name: bool = setting(
        True,
        text="Hosts are called as Slurm calls them; false: CycleCloud makes host names of the addresses.",
        change="recreate",
        example=True,
    )


class Slurm(Section):
    """The Slurm cluster."""

    cluster_name: str | None = setting(
        None,
        text="Name of the cluster in CycleCloud; default: the deployment's name.",
        change="recreate",
        example="reference",
    )
    version: str | None = setting(
        None, text="Slurm version; default: what the CycleCloud release offers.", change="recreate", example="25.11.5"
    )
    project_version: str | None = setting(
        None,
        text="cyclecloud-slurm version; default: the one that belongs to the CycleCloud release.",
        change="recreate",
        example="4.0.9",
    )
    pin_project: bool = setting(
        False,
        text="Write the project version into the template, so that a server upgrade does not change it.",
        example=False,
    )
    autoscale: bool = setting(
        True,
        text="Nodes start with jobs and stop when idle; false: a static pool, whose nodes run, once started, until "
        "someone stops them.",
        example=True,
    )
    idle_timeout_s: int | None = setting(
        None,
        text="Idle time before a node stops; default: cyclecloud-slurm's 300.",
        unit="s",
        ge=60,
        le=604800,
        example=900,
    )
    start_cluster: bool = setting(False, text="Start the cluster at the end of the deployment.", example=False)
    image: str | None = setting(
        None,
        text="Image of all nodes; default: the catalogue's default image.",
        change="node restart",
        example="cycle.image.ubuntu24",
    )
    scheduler: Scheduler = setting(Scheduler, text="The scheduler.", change="recreate", example={})
    login: Login = setting(Login, text="Login nodes.", change="node restart", example={"count": 2})
    accounting: Accounting | None = setting(
        None, text="Accounting database; none by default.", change="recreate", example={"type": "new"}
    )
    partitions: list[Partition] = setting(
        text="Partitions.",
        min_length=1,
        example=[
            {"name": "hpc", "default": False},
            {"name": "htc", "vm_size": "Standard_D64ds_v5", "max_nodes": 8, "default": True},
        ],
    )
    launch_parameters: str = setting(
        "use_interactive_step", text="LaunchParameters of slurm.conf.", example="use_interactive_step"
    )
    settings: dict[str, Value] = setting(
        dict,
        text="Further lines of slurm.conf; lists are added to, keys that CycleCloud sets are refused.",
        example={"SchedulerTimeSlice": 60},
    )
    host_names: HostNames = setting(HostNames, text="Names of nodes and scheduler.", change="recreate", example={})
    public_addresses: Literal["none", "scheduler", "all"] = setting(
        "none",
        text="Which nodes get public addresses, which only allowed_sources reach, by SSH: none, the scheduler and the "
        "login nodes, or all, which no partition for tightly coupled jobs takes. Only with access public, a new "
        "network and CycleCloud 8.9.2 or newer. Login and execute nodes with one are single VMs, which get no notice "
        "of their end.",
        change="recreate",
        example="none",
    )
    terminate_notification: bool = setting(
        False,
        text="Azure announces the end of a VM to its node ten minutes before; always on where Lustre is mounted.",
        change="node restart",
        example=False,
    )
    policy: Policy = setting(
        Policy, text="Who may use how much, and which job goes first.", example={"preemption": "partition"}
    )
    healthagent: bool = setting(
        True,
        text="healthagent, a part of CycleCloud, watches GPUs and links and drains nodes.",
        change="node restart",
        example=True,
    )
    slurm_nhc: bool = setting(
        True,
        text="The project slurm_nhc, where nodes have it, checks them and drains the sick ones; false takes its checks "
        "and hooks away.",
        change="node restart",
        example=True,
    )
    health_checks: bool | None = setting(
        None, text="The old name of healthagent.", change="node restart", example=True, active=False
    )
    hand_back_after_h: int = setting(
        24,
        text="A VM that slurm_nhc has drained is deleted after this time, and another takes its place; 0: only a "
        "person does it. Faults that Azure has to hear of first always wait for a person, and so does a static pool.",
        unit="h",
        ge=0,
        le=8760,
        example=24,
    )

    @property
    def runs_healthagent(self) -> bool:
        """Whether nodes run healthagent, by whichever name the definition says it."""
        return self.healthagent if self.health_checks is None else self.health_checks
