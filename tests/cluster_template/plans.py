"""Plans whose templates the tests look at; each differs from `minimal` in what its name says."""

from __future__ import annotations

from dataclasses import replace

from generator.plan.types import MonitoringPlan, Plan, ProjectPlan
from tests import plans
from tests.plans import A100, container, lustre, minimal, mount, netapp_home, new_accounting, node_array

WORKSPACE = "/subscriptions/s/resourceGroups/m/providers/Microsoft.Monitor/accounts/w"
RULE = "/subscriptions/s/resourceGroups/m/providers/Microsoft.Insights/dataCollectionRules/r"
ENDPOINT = "https://w.southcentralus-1.metrics.ingest.monitor.azure.com/dataCollectionRules/dcr-1/api/v1/write"


def with_projects(plan: Plan) -> Plan:
    """The plan with every project that its roles refer to."""
    slurm = plan.slurm
    specs = [*slurm.scheduler.specs, *slurm.login.specs, *(spec for array in slurm.node_arrays for spec in array.specs)]
    names = sorted({spec.project for spec in specs})
    template = plan.projects[0]
    projects: tuple[ProjectPlan, ...] = tuple(replace(template, name=name) for name in names)
    return replace(plan, projects=projects)


def gpu() -> Plan:
    """A GPU partition with a Lustre scratch, NetApp Files home, new database and metrics; CPU nodes are the default."""
    base = minimal()
    slurm = replace(
        base.slurm, cluster_name="llm", config_name="llm", start_cluster=True, accounting=new_accounting(),
        scheduler=replace(base.slurm.scheduler, host_name="llm-scheduler", os_disk_gb=128),
        login=replace(base.slurm.login, count=2, max_count=4),
        node_arrays=(
            node_array("hpc", A100, max_nodes=128, max_scale_set_size=128, zones=("1",), os_disk_gb=256,
                       dampen_memory_percent=5, node_health_checks=True, image="microsoft-dsvm:ubuntu-hpc:2204:latest",
                       attributes=(("cycleforge.nvme.mount_point", "/nvme"), ("site.note", 'costs $5 "a day"'))),
            node_array("htc", max_nodes=8),
        ),
    )  # fmt: skip
    return with_projects(
        replace(
            base, name="llm", slurm=slurm, home=netapp_home(), mounts=(lustre(),),
            monitoring=MonitoringPlan(WORKSPACE, ENDPOINT, RULE),
        )
    )  # fmt: skip


def high_availability() -> Plan:
    """Two schedulers in two zones; /sched and /shared lie on an existing NFS server."""
    base = minimal()
    scheduler = replace(base.slurm.scheduler, high_availability=True, zone="1", backup_zone="2")
    return replace(
        base,
        slurm=replace(base.slurm, scheduler=scheduler),
        sched=mount("sched", "/sched", address="10.0.0.4", export_path="/export/sched"),
        home=mount("home", "/shared", address="10.0.0.4", export_path="/export/home", mount_options="hard"),
    )


def spot() -> Plan:
    """One spot partition with a price limit and one without."""
    base = minimal()
    arrays = (
        node_array("htc", spot=True, spot_max_price_usd_per_hour=0.75),
        node_array("low-cost", spot=True, is_default=False),
    )
    return replace(base, slurm=replace(base.slurm, node_arrays=arrays))


def containers() -> Plan:
    """Two blob containers, one inside a Lustre file system's folder, and a static pool without health checks."""
    base = minimal()
    slurm = replace(
        base.slurm, autoscale=False, health_checks=False, pin_project=True, additional_config=("SuspendTime=-1",)
    )
    blobs = tuple(
        container(name, path, "acct", f"c-{name}") for name, path in (("models", "/models"), ("raw-data", "/data/raw"))
    )
    nested = mount("data-cache", "/data/cache", address="10.1.0.4", export_path="/cache")
    return replace(base, slurm=slurm, mounts=(lustre(), nested, *blobs))


ALL = {
    "minimal": plans.minimal,
    "gpu": gpu,
    "high_availability": high_availability,
    "spot": spot,
    "containers": containers,
}
