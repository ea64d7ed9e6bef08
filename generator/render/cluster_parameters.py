"""Parameters of the cluster template: what an operator may change in the portal, with the values that the plan chose.

Names are those of cyclecloud-slurm 4.0.9's own template wherever it has one, so that `cyclecloud export_parameters` of
either cluster fits the other. Partitions and mounts, of which that template has a fixed set, get names of the same
pattern.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ..cctemplate.writing import Raw
from ..files.file import Json
from ..plan.cluster import SlurmPlan
from ..plan.deployment import Plan
from ..plan.file_systems.base import FileSystem
from ..plan.names import scheduler_name
from ..plan.nodes import NodeArrayPlan
from .cluster_form import (
    MAX_DISK_GB,
    Form,
    Group,
    Parameter,
    Tab,
    choice,
    disk,
    extra_specs,
    image,
    machine,
    machines,
    number,
    only_if,
    prefix,
    role_subnet,
    role_tags,
    shown_if,
    switch,
)

_BUILTIN_SCHED_GB, _BUILTIN_SHARED_GB = 30, 100  # cyclecloud-slurm 4.0.9, SchedFilesystemSize and FilesystemSize
_NO_PRICE_LIMIT = -1


def tabs(plan: Plan, slurm: SlurmPlan) -> tuple[Tab, ...]:
    """All parameters in the order of the form."""
    return (
        Tab("Required Settings", 10, (_machines(plan, slurm), _scaling(slurm), _network(slurm), _availability(slurm))),
        Tab("Partitions", 12, tuple(_partition(slurm, array) for array in slurm.node_arrays)),
        Tab("Network Attached Storage", 15, tuple(_storage(plan, slurm))),
        Tab(
            "Advanced Settings",
            20,
            (_azure(plan, slurm), _slurm(slurm), _accounting(slurm), _software(slurm), _networking(slurm)),
        ),
        Tab("Monitoring", 25, (_monitoring(plan),)),
    )


def parameters(plan: Plan, slurm: SlurmPlan) -> Iterable[Parameter]:
    return (parameter for tab in tabs(plan, slurm) for group in tab.groups for parameter in group.parameters)


# ---------------------------------------------------------------- required settings


def _machines(plan: Plan, slurm: SlurmPlan) -> Group:
    return Group(
        "Virtual Machines",
        (
            Parameter("Region", "Region", plan.location, "Azure region of every node", "Cloud.Region"),
            machine("SchedulerMachineType", "Scheduler VM size", slurm.scheduler.hardware.name),
            machine("loginMachineType", "Login VM size", slurm.login.hardware.name),
        ),
    )


def _scaling(slurm: SlurmPlan) -> Group:
    return Group(
        "Auto-Scaling",
        (
            switch("Autoscale", "Autoscale", slurm.autoscale, "Start nodes for jobs and stop idle ones"),
            Parameter("NumberLoginNodes", "Login nodes", slurm.login.count, form=number(0)),
            Parameter("MaxLoginNodeCount", "Most login nodes", slurm.login.max_count, form=number(0)),
            switch("DefineNodesAvailabilityZone", "Zones", slurm.has_zones, "Place partitions in availability zones"),
        ),
    )


def _network(slurm: SlurmPlan) -> Group:
    subnet = Parameter(
        "SubnetId", "Subnet", None, "resource group/network/subnet of all nodes", "Azure.Subnet",
        (("Required", True),), late="subnetId",
    )  # fmt: skip
    own = (*role_subnet("Scheduler", slurm.scheduler.subnet), *role_subnet("Login", slurm.login.subnet))
    return Group("Networking", (subnet, *own))


def _availability(slurm: SlurmPlan) -> Group:
    text = "A second scheduler takes over when the first fails; needs /sched and /shared outside of the scheduler"
    enabled = slurm.scheduler.high_availability
    return Group(
        "High Availability",
        (Parameter("configuration_slurm_ha_enabled", "Second scheduler", enabled, text, "Boolean"),),
    )


# ---------------------------------------------------------------- partitions


def _partition(slurm: SlurmPlan, array: NodeArrayPlan) -> Group:
    start = prefix(array.name)
    price = array.spot_max_price_usd_per_hour
    zones: Json = list(array.zones) or None
    optional = [] if array.os_disk_gb is None else [disk(f"{start}BootDiskSize", array.os_disk_gb)]
    return Group(
        f"Partition {array.name}",
        (
            machines(f"{start}MachineType", "VM sizes", array.vm_sizes)
            if array.sizes
            else machine(f"{start}MachineType", "VM size", array.vm_size),
            image(f"{start}ImageName", "Image", array.image),
            Parameter(f"Max{start}ExecuteNodeCount", "Most nodes", array.max_nodes, form=number(0)),
            Parameter(
                f"{start}MaxScalesetSize", "VMs per scale set", array.max_scale_set_size,
                "With one placement group also the most nodes that can run", form=number(1),
            ),
            switch(f"{start}UseLowPrio", "Spot", array.spot, "Spot VMs: cheaper, may be evicted"),
            Parameter(
                f"{start}SpotMaxPrice", "Most paid", _NO_PRICE_LIMIT if price is None else price,
                "USD per hour; -1 pays up to the on-demand price",
                form=(
                    ("Config.Plugin", "pico.form.NumberTextBox"), ("Config.MinValue", -1),
                    *only_if(f"{start}UseLowPrio is true"),
                ),
            ),
            Parameter(
                f"{start}AvailabilityZone", "Zones", zones, kind="StringList",
                form=shown_if("DefineNodesAvailabilityZone"),
            ),
            *optional,
            *role_subnet(start, array.subnet),
            *role_tags(start, array.vm_attributes),
            extra_specs(f"{start}ClusterInitSpecs", f"partition {array.partition}"),
        ),
        f"Partition {array.partition} of cluster {slurm.cluster_name}",
    )  # fmt: skip


# ---------------------------------------------------------------- storage


class Mount(Struct, frozen=True):
    """A mount as the template prints it: names of its parameters, and expressions."""

    section: str
    path: str
    type_parameter: str
    export_parameter: str
    options_parameter: str
    address_parameter: str
    builtin_parameter: str | None
    """Parameter that says that the scheduler itself exports this file system; None for mounts that never are."""
    order: int | None


def mounts(plan: Plan, slurm: SlurmPlan) -> tuple[Mount, ...]:
    """Mounts that CycleCloud makes: /sched, /shared and further NFS and Lustre file systems."""
    sched = ("nfs_sched", "NFSSchedType", "NFSSchedExportPath", "NFSSchedMountOptions", "NFSSchedAddress")
    shared = ("nfs_shared", "NFSType", "NFSSharedExportPath", "NFSSharedMountOptions", "NFSAddress")
    named = [(slurm.sched, sched, "UseBuiltinSched"), (slurm.home, shared, "UseBuiltinShared")]
    for mount in attached(plan):
        start = f"{prefix(mount.name)}Mount"
        names = (
            f"fs_{mount.name.replace('-', '_')}", f"{start}Type", f"{start}ExportPath", f"{start}Options",
            f"{start}Address",
        )  # fmt: skip
        named.append((mount, names, ""))
    return tuple(
        Mount(section, mount.path, kind, export, options, address, builtin or None, mount.mount_order)
        for mount, (section, kind, export, options, address), builtin in named
    )


def attached(plan: Plan) -> tuple[FileSystem, ...]:
    """Further mounts that CycleCloud makes; the others are mounted by projects of ours."""
    return tuple(mount for mount in plan.mounts if mount.mounted_by is None)


def _storage(plan: Plan, slurm: SlurmPlan) -> Iterable[Group]:
    builtin = "(UseBuiltinSched && !configuration_slurm_ha_enabled)"
    yield Group(
        "Scheduler Mount",
        (
            _builtin("UseBuiltinSched", slurm.sched),
            _size("SchedFilesystemSize", slurm.sched, _BUILTIN_SCHED_GB, builtin),
            *_external("NFSSched", slurm.sched, "NFSSchedExportPath", "NFSSchedMountOptions", f"!{builtin}"),
        ),
        "/sched holds Slurm's configuration and state",
    )
    builtin = "(UseBuiltinShared && !configuration_slurm_ha_enabled)"
    yield Group(
        "Default NFS Share",
        (
            _builtin("UseBuiltinShared", slurm.home),
            _size("FilesystemSize", slurm.home, _BUILTIN_SHARED_GB, builtin),
            *_external("NFS", slurm.home, "NFSSharedExportPath", "NFSSharedMountOptions", f"!{builtin}"),
        ),
        "/shared holds the home directories",
    )
    for mount in attached(plan):
        start = f"{prefix(mount.name)}Mount"
        yield Group(
            f"Mount {mount.name}", tuple(_external(start, mount, f"{start}ExportPath", f"{start}Options")), mount.path
        )


def _builtin(name: str, mount: FileSystem) -> Parameter:
    text = f"The scheduler exports {mount.path} from its own disk; the disk is deleted when this is unset"
    return Parameter(name, "Built-in NFS", mount.is_scheduler_disk, text, "Boolean")


def _size(name: str, mount: FileSystem, default_gb: int, condition: str) -> Parameter:
    size = mount.size_gib if mount.is_scheduler_disk and mount.size_gib is not None else default_gb
    text = f"Size of the disk for {mount.path} in GB; it cannot change after the first start"
    return Parameter(name, "Disk size", size, text, form=(*number(1, MAX_DISK_GB), *only_if(condition)))


def _external(
    start: str, mount: FileSystem, export: str, options: str, condition: str | None = None
) -> Iterable[Parameter]:
    """Type, address, exported path and options of a file system that is not the scheduler's."""
    form = shown_if(condition) if condition else ()
    entries = Raw('{[Label="NFS"; Value="nfs"], [Label="Lustre"; Value="lustre"]}')
    dropdown = (("Config.Plugin", "pico.form.Dropdown"), ("Config.Entries", entries))
    yield Parameter(f"{start}Type", "Type", mount.protocol, kind="StringList", form=(*dropdown, *form))
    yield Parameter(
        f"{start}Address", "Address", mount.address if mount.address_fact is None else None,
        "IP address or host name of the server", form=form, late=mount.address_fact,
    )  # fmt: skip
    yield Parameter(
        export, "Exported path", mount.export_path, "Below the root of the file system if that is Lustre", form=form
    )
    yield Parameter(options, "Mount options", mount.mount_options, form=form)


# ---------------------------------------------------------------- advanced settings


def _azure(plan: Plan, slurm: SlurmPlan) -> Group:
    tags: Json = dict(plan.tags)
    text = "Identity of all nodes; it reads the locker"
    account = plan.locker.cyclecloud_account
    suite = switch(
        "EnableNodeHealthChecks", "Start-up checks", value=True, text="Run the image's health suite when a node starts"
    )  # fmt: skip
    return Group(
        "Azure Settings",
        (
            Parameter("Credentials", "Credentials", account, "Account in CycleCloud", "Cloud.Credentials"),
            Parameter(
                "ManagedIdentity", "Managed identity", None, text, "Azure.ManagedIdentity", late="lockerIdentityId"
            ),
            disk("BootDiskSize", 0),
            *_role_disks(slurm),
            Parameter("NodeTags", "Tags", tags, "Tags of all VMs", "Record", (("Config.MultiSelect", False),)),
            *role_tags("Scheduler", slurm.scheduler.vm_attributes),
            *role_tags("Login", slurm.login.vm_attributes),
            switch(
                "EnableTerminateNotification", "Termination notice", value=slurm.terminate_notification,
                text="Announce the end of a VM to its node; always on where Lustre is mounted",
            ),
            *([suite] if slurm.has_start_up_checks else []),
        ),
    )  # fmt: skip


def _role_disks(slurm: SlurmPlan) -> Iterable[Parameter]:
    for start, role in (("Scheduler", slurm.scheduler), ("Login", slurm.login)):
        if role.os_disk_gb is not None:
            yield disk(f"{start}BootDiskSize", role.os_disk_gb)


def _slurm(slurm: SlurmPlan) -> Group:
    lines = "\n".join(slurm.additional_config) or None
    return Group(
        "Slurm Settings",
        (
            Parameter(
                "configuration_slurm_version", "Slurm version", slurm.version,
                kind="StringList", form=(("Required", True), *choice(slurm.version)),
            ),
            Parameter("additional_slurm_config", "slurm.conf", lines, "Further lines; a later line wins", "Text"),
            Parameter(
                "configuration_slurm_launch_parameters", "LaunchParameters", slurm.launch_parameters,
                "Separated by commas", "String",
            ),
        ),
    )  # fmt: skip


def _accounting(slurm: SlurmPlan) -> Group:
    accounting = slurm.accounting
    form = only_if("configuration_slurm_accounting_enabled is true")
    start = "configuration_slurm_accounting_"
    user, database = (accounting.user, accounting.database) if accounting else (None, None)
    host = accounting.host if accounting and not accounting.is_new else None
    new_host = "databaseHost" if accounting and accounting.is_new else None
    password = "secret:databasePassword" if accounting else None
    return Group(
        "Job Accounting",
        (
            switch(f"{start}enabled", "Accounting", accounting is not None, "Record jobs in a MySQL database"),
            Parameter(f"{start}url", "Server", host, "Host name or IP address", form=form, late=new_host),
            Parameter(f"{start}storageloc", "Database", database, form=form),
            Parameter(f"{start}user", "User", user, form=form),
            Parameter(f"{start}password", "Password", None, kind="Password", form=form, late=password),
            _certificate(slurm, form),
        ),
    )  # fmt: skip


def _certificate(slurm: SlurmPlan, form: Form) -> Parameter:
    """That of the database's authority, as this version of the project takes it."""
    accounting = slurm.accounting
    if slurm.certificate_parameter.endswith("_url"):
        text = "Where the scheduler downloads the certificate of the database's authority"
        url = accounting.certificate_url if accounting else None
        return Parameter(slurm.certificate_parameter, "Certificate address", url, text, form=form)
    text = "PEM text; without it the certificates of Azure Database for MySQL are used"
    certificate = accounting.certificate if accounting else None
    return Parameter(slurm.certificate_parameter, "Certificate", certificate, text, "Text", form)


def _software(slurm: SlurmPlan) -> Group:
    follows = slurm.scheduler.host_name == scheduler_name(slurm.cluster_name)
    host_name = "Cluster Prefix" if follows else slurm.scheduler.host_name
    form = shown_if("NodeNameIsHostname is true")
    return Group(
        "Software",
        (
            Parameter("NodeNameIsHostname", "Name is host name", slurm.node_name_is_host_name, kind="Boolean"),
            Parameter(
                "NodeNamePrefix", "Node prefix", "Cluster Prefix" if slurm.node_prefix is None else slurm.node_prefix,
                "'Cluster Prefix' puts the cluster's name in front",
                "StringList", (*choice("", "Cluster Prefix"), *form),
            ),
            Parameter(
                "SchedulerHostName", "Scheduler name", host_name,
                "'Cluster Prefix' gives CLUSTER-scheduler, 'Generated' a name made by CycleCloud",
                "StringList", (*choice("Generated", "Cluster Prefix"), *form),
            ),
            image("SchedulerImageName", "Scheduler image", slurm.scheduler.image),
            image("LoginImageName", "Login image", slurm.login.image),
            extra_specs("SchedulerClusterInitSpecs", "the scheduler"),
            extra_specs("LoginClusterInitSpecs", "login nodes"),
            _zone("SchedulerZone", "Scheduler zone", slurm.scheduler.zone),
            _zone("SchedulerHAZone", "Zone of the second scheduler", slurm.scheduler.backup_zone),
        ),
    )  # fmt: skip


def _zone(name: str, label: str, zone: str | None) -> Parameter:
    entries = Raw('{[Label="Any"; Value=undefined], [Value="1"], [Value="2"], [Value="3"]}')
    return Parameter(name, label, zone, form=(("Config.Plugin", "pico.form.Dropdown"), ("Config.Entries", entries)))


def _networking(slurm: SlurmPlan) -> Group:
    public = (("Conditions.Excluded", Raw("UsePublicNetwork isnt true")),)
    return Group(
        "Advanced Networking",
        (
            Parameter("ReturnProxy", "Return proxy", False, "Nodes reach CycleCloud through the scheduler", "Boolean"),
            Parameter(
                "UsePublicNetwork", "Public scheduler", slurm.public_addresses != "none",
                "The scheduler gets a public address", "Boolean",
            ),
            Parameter(
                "ExecuteNodesPublic", "Public nodes", slurm.public_addresses == "all",
                "Execute nodes get public addresses", "Boolean", public,
            ),
        ),
    )  # fmt: skip


def _monitoring(plan: Plan) -> Group:
    monitoring = plan.monitoring
    form = (("Conditions.Excluded", Raw("configuration_monitoring_enabled isnt true")),)
    endpoint = monitoring.ingestion_endpoint if monitoring else None
    return Group(
        "Azure Monitor",
        (
            switch("configuration_monitoring_enabled", "Monitoring", monitoring is not None, "Send metrics"),
            Parameter(
                "configuration_identity_client_id", "Client id", None,
                "Client id of the managed identity; metrics are published and containers mounted with it",
                late="lockerIdentityClientId",
            ),
            Parameter("configuration_ingestion_endpoint", "Endpoint", endpoint, "remote_write URL", form=form),
        ),
    )  # fmt: skip
