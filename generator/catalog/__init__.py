"""Facts as data: VM sizes, releases, images, file systems, regions, limits and health floors, each with its source.

Every figure is in a JSON file of this folder beside its source (an address, or a key of `sources.json`), or is
`null` if it is not published. Only this package opens the files, and no more of them than a question needs.

A VM size with GPUs or InfiniBand is one file in `vm_sizes/`, named after it: hardware, images, published figures of
NCCL, what a healthy node shows, page, retirement. What NCCL typically reaches on it, and the variables of benchmarks
and training, which sizes share, are in `nccl.json`. Any other size is a row of `other_vm_sizes.json`. A group that has
no figures is left out. Figures that nothing reads fail `tests/catalog/test_reads.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from .azure_types import (
    ResourceType,
    holds_data,
    providers_always_needed,
    providers_of_azure,
    resource_type,
    resource_types,
    roles,
)
from .files import table
from .releases import (
    DefaultVersions,
    OperatingSystem,
    Release,
    ServerImage,
    SlurmProject,
    default_slurm_project,
    default_versions,
    is_newer,
    is_newer_than_table,
    release,
    release_of_build,
    releases,
    server_image,
    slurm_project,
    slurm_projects,
)
from .size_files import canonical_vm_size, vm_size, vm_size_names
from .sizes import NcclFigure, NcclTypical, VmSize

__all__ = [
    "DefaultVersions",
    "NcclFigure",
    "NcclTypical",
    "OperatingSystem",
    "Release",
    "ResourceType",
    "ServerImage",
    "SlurmProject",
    "VmSize",
    "amd_messages",
    "azure_failures",
    "blobs",
    "canonical_vm_size",
    "cloud",
    "cyclecloud_failures",
    "default_slurm_project",
    "default_versions",
    "egress",
    "file_systems",
    "gpu_generation",
    "health",
    "health_tests",
    "holds_data",
    "image",
    "images",
    "is_newer",
    "is_newer_than_table",
    "limits",
    "meters",
    "mig_profiles",
    "models",
    "mount_options",
    "mpi",
    "mysql",
    "nccl",
    "node_attributes",
    "node_benchmarks",
    "out_of_support",
    "providers_always_needed",
    "providers_of_azure",
    "regions",
    "release",
    "release_of_build",
    "releases",
    "resource_type",
    "resource_types",
    "roles",
    "rule_figures",
    "server_image",
    "slurm_conf",
    "slurm_project",
    "slurm_projects",
    "sources",
    "streams",
    "support",
    "template_parameters",
    "training",
    "training_versions",
    "vm_size",
    "vm_size_names",
    "what_if",
    "xids",
]


def sources() -> Mapping[str, Any]:
    """Public sources by key: `title`, `url`, `commit`, `date`."""
    return table("sources")


def file_systems() -> Mapping[str, Any]:
    """Tiers, service levels, sizes and steps of Managed Lustre, NetApp Files and the built-in NFS disks."""
    return table("file_systems")


def mount_options() -> Mapping[str, Any]:
    """Recommended mount options by protocol."""
    return table("mount_options")


def images() -> Mapping[str, Any]:
    """Node images (`node_images`) and the marketplace images for HPC (`hpc_marketplace`)."""
    return table("images")


@cache
def image(name: str) -> Mapping[str, Any] | None:
    """One node image by the name that the cluster template uses, for example `cycle.image.ubuntu24`."""
    row: Mapping[str, Any] | None = images()["node_images"].get(name)
    return row


def node_attributes() -> Mapping[str, Any]:
    """What CycleCloud takes of a node and of its volumes: `attributes` and `volume_attributes` with what each accepts,
    those that the cluster template sets with the key that decides them, and the volumes of each role (`volumes`)."""
    return table("node_attributes")


def regions() -> Mapping[str, Any]:
    """Azure regions by name: `cloud`, and whether they have availability zones and a region as their pair."""
    content: Mapping[str, Any] = table("regions")["regions"]
    return content


def cloud(name: str) -> Mapping[str, str]:
    """One of Azure's clouds: its name for the Azure CLI, and the ends of blob endpoints and of MySQL host names."""
    row: Mapping[str, str] = table("clouds")["clouds"][name]
    return row


def egress() -> Mapping[str, Any]:
    """Destinations on the internet by name (`rules`), what a recipe adds (`recipe_hosts`), what is never filtered."""
    return table("egress")


def slurm_conf() -> Mapping[str, Any]:
    """Keys of slurm.conf: which are lists that others add to, which values break something, which Slurm knows a key."""
    return table("slurm_conf")


def slurm_keys() -> Mapping[str, Any]:
    """Names of Slurm's keys: those of slurm.conf, and those that belong elsewhere."""
    return table("slurm_keys")


def limits() -> Mapping[str, Any]:
    """Limits of Azure, CycleCloud and Slurm: `value`, `unit`, `source`, or a list with its reasons."""
    return table("limits")


def resource_names() -> Mapping[str, Mapping[str, Any]]:
    """Type of a resource → `min`, `max` and `pattern` of its name; of a list in another's properties as well."""
    names: Mapping[str, Mapping[str, Any]] = table("resource_names")["names"]
    return names


def mig_profiles(model: str | None, memory_gb: int | None) -> Mapping[str, int]:
    """MIG profiles of a GPU model with that memory (GB), each with the instances that fit; none where it has no MIG.

    Only the first words of the model count, so that `A100` and `A100 SXM4` are the same.
    """
    for name, gpu in table("mig")["gpus"].items():
        words, _, size = name.removesuffix(" GB").rpartition(" ")
        if model and f"{model} ".upper().startswith(f"{words} ".upper()) and memory_gb == int(size):
            found: Mapping[str, int] = gpu["profiles"]
            return found
    return {}


def what_if() -> Mapping[str, Any]:
    """What Azure's what-if is known to show although it does not happen."""
    return table("what_if")


def azure_failures() -> Sequence[Mapping[str, Any]]:
    """What Azure's error codes mean for a deployment, and what to do: `codes`, `words`, `fix`."""
    rows: Sequence[Mapping[str, Any]] = table("azure_failures")["failures"]["rows"]
    return rows


def cyclecloud_failures() -> Sequence[Mapping[str, Any]]:
    """What CycleCloud's messages about failed nodes mean, and what to do: `pattern`, `words`, `fix`."""
    rows: Sequence[Mapping[str, Any]] = table("cyclecloud_failures")["failures"]["rows"]
    return rows


def xids() -> Mapping[str, Any]:
    """What the driver's fault codes (XID) and those of NVSwitch (SXid) ask for, per GPU generation; names of recovery
    actions; windows in seconds (`_s`) and hours (`_h`)."""
    return table("xids")


def gpu_generation(model: str | None) -> str | None:
    """The generation by which XIDs of a GPU model are judged, for example `h100`; None where no table has the model."""
    known: Mapping[str, str] = xids()["generations"]["models"]
    return next((known[word] for word in (model or "").upper().split() if word in known), None)


def rule_figures() -> Mapping[str, Any]:
    """Figures that only rules need."""
    return table("rule_figures")


def support() -> Mapping[str, Any]:
    """Until when versions of MySQL and Windows are in support, as it was published on the day `as_of`."""
    return table("support")


def template_parameters() -> Sequence[Mapping[str, str]]:
    """The parameters of cyclecloud-slurm's own template, in its order: `name`, and `key` or `reason`.

    `key` is the key of a definition that decides the value, `own` what the parameter is called here where that is not
    its name (`{Partition}` and `{Path}` stand for what a partition or mount is called), `in: template` says that the
    template has the value, `reason` why there is no key.
    """
    rows: Sequence[Mapping[str, str]] = table("template_parameters")["parameters"]
    return rows


def mysql() -> Mapping[str, Any]:
    """Compute sizes, storage and defaults of MySQL flexible servers."""
    return table("mysql")


def out_of_support(end: str | None) -> bool:
    """Whether a published end of support (ISO date) had passed on the day of the table; None: no end is published."""
    return end is not None and end < support()["as_of"]


def health() -> Mapping[str, Any]:
    """Node-health checks and floors per VM size (`vm_sizes`), tools, common checks."""
    return table("health")


def health_tests() -> Mapping[str, Any]:
    """How bandwidth is measured: `environments` of NCCL's floors, the `tools` that images bring and the `checks` that
    need them, and what is run where no floor is published (`relative`)."""
    return table("health_tests")


def mpi() -> Mapping[str, Any]:
    """Of MPI between two nodes without GPUs: what share of a port a healthy pair reaches (`bandwidth`), and by quota
    family the microseconds of a small message (`latency`)."""
    return table("mpi")


def nccl() -> Mapping[str, Any]:
    """Of NCCL's tests: what floors are derived from (`derived`, `typical` by VM size), when a run is slower than its
    peers (`relative`), which message nccl-tests does not lower by itself (`size_cap`), and what benchmarks, training
    and SHARP add to the variables of a VM size (`environments`)."""
    return table("nccl")


def node_benchmarks() -> Mapping[str, Any]:
    """Figures of node tests by VM size: `floors` that someone published, what is `typical`, the share of it below which
    a node warns (`derived`), the tools that measured it, and the `gemm_types` of a GPU generation."""
    return table("node_benchmarks")


def throughput() -> Mapping[str, Any]:
    """Of training: what a GPU could do at most (`peak_tflops`), what was `published` for a model and so many GPUs of a
    kind (lists of the same length), and the `shares` of it below which a job warns or fails."""
    return table("throughput")


def streams() -> Mapping[str, Mapping[str, Any]]:
    """STREAM by VM size: the floor of each of its four functions, the build of it, its threads and their processors."""
    rows: Mapping[str, Mapping[str, Any]] = table("streams")
    return rows


def amd_messages() -> Sequence[Mapping[str, str]]:
    """What amdgpu says in the kernel log: `pattern` (ERE), `name` of the finding, and its cure or `warn` (`take`)."""
    rows: Sequence[Mapping[str, str]] = table("amd_messages")["messages"]
    return rows


def blobs() -> Sequence[Mapping[str, Any]]:
    """Third-party files that nodes need, each pinned by its digest; `generator.blobs` describes the fields."""
    rows: Sequence[Mapping[str, Any]] = table("blobs")["blobs"]
    return rows


def models() -> Mapping[str, Any]:
    """Model presets of the training recipes and the bytes that a checkpoint takes per parameter."""
    return table("models")


def training() -> Mapping[str, Any]:
    """What training needs of file systems: bytes of `images` and of `data_sets` by stage, what one file and one storage
    account take (`storage`, by protocol), and the shares and seconds from which a plan warns."""
    return table("training")


def training_versions() -> Mapping[str, Any]:
    """What training runs: `frameworks` by commit, `containers` with their CUDA, the driver that a CUDA needs
    (`cuda_drivers`) and the one that an image of nodes has (`image_drivers`); `generator.recipes.versions` reads it."""
    return table("training_versions")


def meters() -> Mapping[str, Any]:
    """Azure's public price list: its address and currencies (`price_list`), how each of `meters` is found in it, the
    sizes that disks are billed as (`disk_tiers`), and the hours of a `month`."""
    return table("meters")
