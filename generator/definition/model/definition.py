"""The definition: one file, one deployment."""

from typing import Literal

from .fields import EXAMPLE_GROUPS, Section, setting
from .landing_zone import LandingZone
from .network import Network
from .security import Security
from .server import Admin, Azure, Server
from .sizes import CustomVmSize
from .slurm import Slurm, Value
from .storage import Storage


class Project(Section):
    """A cluster-init project beyond the shipped ones."""

    name: str = setting(text="Project name, as roles and project.ini name it.", change="node restart", example="site")
    path: str | None = setting(
        None,
        text="Folder of a local project, relative to this file; it is part of the deployment.",
        change="node restart",
        example="site-project",
    )
    version: str | None = setting(
        None, text="Version of a project that is already in the locker.", change="node restart", example="1.2.0"
    )


_ENDPOINT = (
    "https://metrics-abcd.southcentralus-1.metrics.ingest.monitor.azure.com/dataCollectionRules/"
    "dcr-00000000000000000000000000000000/streams/Microsoft-PrometheusMetrics/api/v1/write?api-version=2023-04-24"
)


class Monitoring(Section):
    """Metrics into an existing Azure Monitor workspace."""

    workspace_id: str = setting(
        text="Resource id of the Azure Monitor workspace.",
        change="node restart",
        example=f"{EXAMPLE_GROUPS}/monitoring/providers/Microsoft.Monitor/accounts/metrics",
    )
    ingestion_endpoint: str = setting(
        text="Metrics ingestion (remote write) endpoint.", change="node restart", example=_ENDPOINT
    )
    data_collection_rule_id: str = setting(
        text="Resource id of its data collection rule.",
        change="node restart",
        example=f"{EXAMPLE_GROUPS}/MA_metrics_southcentralus_managed/providers/Microsoft.Insights/dataCollectionRules/metrics",
    )


class Job(Section, short="recipe"):
    """One job folder."""

    recipe: str = setting(text="Recipe, see `cycleforge list recipes`.", example="mpt")
    name: str | None = setting(None, text="Folder name; default: the recipe's.", example="mpt-30b")
    partition: str | None = setting(None, text="Partition; default: the first that fits.", example="hpc")
    vm_size: str | None = setting(
        None,
        text="VM size, where the partition has several; default: the first that fits.",
        example="Standard_ND96amsr_A100_v4",
    )
    nodes: int | None = setting(
        None,
        text="Nodes; default: what the recipe needs, at most the partition's.",
        unit="nodes",
        ge=1,
        le=10000,
        example=2,
    )
    settings: dict[str, Value] = setting(
        dict,
        text="Values that replace those of recipe and VM size; DATA_DIR: folder of data and checkpoints.",
        example={"MODEL": "mpt-30b"},
    )


class Jobs(Section):
    """Jobs that are written beside the deployment, ready for sbatch."""

    validation: list[Job] | None = setting(
        None,
        text="Validation jobs, and no others; default: those that fit the partitions.",
        example=["smoke", "nccl-allreduce", "node-health"],
    )
    add_validation: list[Job] = setting(
        list,
        text="Validation jobs beside those; one with the name of a default job takes its place.",
        example=[{"recipe": "nccl-allreduce", "name": "nccl-in-a-container"}],
    )
    training: list[Job] = setting(
        list,
        text="Training jobs: names of recipes, or mappings; one with the name of a default job takes its place.",
        example=[
            {"recipe": "opt-175b", "settings": {"MODEL": "opt-30b"}},
            {"recipe": "mpt", "settings": {"MODEL": "mpt-30b"}},
        ],
    )


class Silence(Section):
    """A rule that does not apply here."""

    rule: str = setting(text="Rule id.", example="W0402")
    reason: str = setting(
        text="Why it does not apply; printed by `cycleforge plan`.",
        example="The quota was granted for this week.",
        min_length=1,
    )


class Definition(Section):
    """A CycleCloud server or one that exists, network and storage, and at most one Slurm cluster."""

    version: Literal[1] = setting(1, text="Version of this format.", example=1)
    name: str = setting(
        text="Name of the deployment; resource names begin with it.", change="recreate", example="reference"
    )
    location: str = setting(text="Azure region.", change="recreate", example="southcentralus")
    azure: Azure = setting(Azure, text="Subscription and resource group.", change="recreate", example={})
    admin: Admin = setting(Admin, text="The administrator.", change="recreate", example={})
    network: Network = setting(Network, text="Network and access.", change="recreate", example={})
    server: Server = setting(Server, text="The CycleCloud server.", change="recreate", example={})
    security: Security = setting(Security, text="Hardening beyond the defaults.", example={})
    storage: Storage = setting(Storage, text="Locker and file systems.", change="recreate", example={})
    slurm: Slurm | None = setting(
        None, text="The Slurm cluster; none by default: then only server, network and storage are built.", example={}
    )
    projects: list[Project] = setting(
        list, text="Projects beyond the shipped ones, for roles to name.", change="node restart", example=[]
    )
    monitoring: Monitoring | None = setting(None, text="Metrics; none by default.", change="node restart", example={})
    tags: dict[str, str] = setting(dict, text="Tags of all resources and node VMs.", example={"owner": "research"})
    jobs: Jobs = setting(Jobs, text="Validation and training jobs.", example={})
    custom_vm_sizes: list[CustomVmSize] = setting(
        list,
        text="VM sizes that `cycleforge list vm-sizes` does not have; `--from FILE` there writes these blocks.",
        change="node restart",
        example=[{"gpus": {"count": 8}}],
        active=False,
    )
    landing_zone: LandingZone | None = setting(
        None, text="What the policies of the subscription demand; nothing by default.", example={}
    )
    silence: list[Silence] = setting(
        list,
        text="Rules that do not apply, each with a reason.",
        example=[{"rule": "W1611", "reason": "These jobs prove all that matters here."}],
    )
