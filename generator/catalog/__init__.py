"""Facts as data: VM sizes, releases, images, file systems, regions, limits and health floors, each with its source.

Every figure is in a JSON file of this folder beside its source (an address, or a key of `sources.json`), or is
`null` if it is not published. Only this package opens the files, and no more of them than a question needs. What is in
a file is declared beside the name by which it is read; an unknown key is refused.

A VM size with GPUs or InfiniBand is one file in `vm_sizes/`, named after it: hardware, images, published figures of
NCCL, what a healthy node shows, page, retirement. What NCCL typically reaches on it, and the variables of benchmarks
and training, which sizes share, are in `nccl.json`. Any other size is a row of `other_vm_sizes.json`. A group that has
no figures is left out. Fields that nothing reads fail `tests/catalog/test_reads.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from .azure_facts import (
    Cloud,
    azure_failures,
    clouds,
    egress,
    file_systems,
    limits,
    meters,
    mount_options,
    mysql,
    regions,
    resource_names,
    support,
    what_if,
)
from .azure_types import (
    ResourceType,
    holds_data,
    providers_always_needed,
    providers_of_azure,
    resource_type,
    resource_types,
    roles,
)
from .files import Fact, Row, table
from .health_facts import amd_messages, gpu_generation, health, health_tests, node_benchmarks, streams, xids
from .nccl_facts import mpi, nccl
from .node_images import NodeImage, images
from .pinned_files import blobs
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
from .rule_facts import rule_figures
from .size_files import canonical_vm_size, vm_size, vm_size_names
from .sizes import NcclFigure, NcclTypical, VmSize
from .slurm_facts import cyclecloud_failures, node_attributes, slurm_conf, slurm_keys, template_parameters
from .source_facts import sources
from .training_facts import models, throughput, training, training_versions

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
    "clouds",
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
    "resource_names",
    "resource_type",
    "resource_types",
    "roles",
    "rule_figures",
    "server_image",
    "slurm_conf",
    "slurm_keys",
    "slurm_project",
    "slurm_projects",
    "sources",
    "streams",
    "support",
    "template_parameters",
    "throughput",
    "training",
    "training_versions",
    "vm_size",
    "vm_size_names",
    "what_if",
    "xids",
]


class MigProfiles(Row, frozen=True, kw_only=True):
    profiles: dict[str, int]


class Mig(Fact, frozen=True, kw_only=True):
    gpus: dict[str, MigProfiles]


_mig = table("mig", Mig)


def image(name: str) -> NodeImage | None:
    """One node image by the name that the cluster template uses, for example `cycle.image.ubuntu24`."""
    return images().node_images.get(name)


def cloud(name: str) -> Cloud:
    """One of Azure's clouds."""
    return clouds().clouds[name]


def mig_profiles(model: str | None, memory_gb: int | None) -> Mapping[str, int]:
    """MIG profiles of a GPU model with that memory (GB), each with the instances that fit; none where it has no MIG.

    Only the first words of the model count, so that `A100` and `A100 SXM4` are the same.
    """
    for name, gpu in _mig().gpus.items():
        words, _, size = name.removesuffix(" GB").rpartition(" ")
        if model and f"{model} ".upper().startswith(f"{words} ".upper()) and memory_gb == int(size):
            return gpu.profiles
    return {}


def out_of_support(end: str | None) -> bool:
    """Whether a published end of support (ISO date) had passed on the day of the table; None: no end is published."""
    return end is not None and end < support().as_of
