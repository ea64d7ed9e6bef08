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

from . import azure_facts, health_facts, nccl_facts, pinned_files, rule_facts, slurm_facts, training_facts
from .azure_types import holds_data as holds_data
from .azure_types import providers_always_needed as providers_always_needed
from .azure_types import providers_of_azure as providers_of_azure
from .azure_types import resource_type as resource_type
from .azure_types import resource_types as resource_types
from .azure_types import roles as roles
from .files import Fact, Row, Value, table
from .health_facts import gpu_generation as gpu_generation
from .health_facts import xids as xids
from .nccl_facts import nccl as nccl
from .node_images import images as images
from .releases import Release as Release
from .releases import default_slurm_project as default_slurm_project
from .releases import default_versions as default_versions
from .releases import is_newer as is_newer
from .releases import is_newer_than_table as is_newer_than_table
from .releases import release as release
from .releases import release_of_build as release_of_build
from .releases import releases as releases
from .releases import server_image as server_image
from .releases import slurm_project as slurm_project
from .releases import slurm_projects as slurm_projects
from .size_files import canonical_vm_size as canonical_vm_size
from .size_files import vm_size as vm_size
from .size_files import vm_size_names as vm_size_names
from .sizes import VmSize as VmSize


class MigProfiles(Row, frozen=True, kw_only=True):
    profiles: dict[str, int]


class Mig(Fact, frozen=True, kw_only=True):
    gpus: dict[str, MigProfiles]


class Source(Fact, frozen=True, kw_only=True):
    title: str
    url: str | None
    commit: str | None
    date: str | None


_mig = table("mig", Mig)
amd_messages = table("amd_messages", health_facts.AmdMessages)
azure_failures = table("azure_failures", azure_facts.AzureFailures)
blobs = table("blobs", pinned_files.Blobs)
clouds = table("clouds", azure_facts.Clouds)
cyclecloud_failures = table("cyclecloud_failures", slurm_facts.CycleCloudFailures)
egress = table("egress", azure_facts.Egress)
file_systems = table("file_systems", azure_facts.FileSystems)
health = table("health", health_facts.Health)
health_tests = table("health_tests", health_facts.HealthTests)
limits = table("limits", azure_facts.Limits)
meters = table("meters", azure_facts.Meters)
models = table("models", training_facts.Models)
mount_options = table("mount_options", dict[str, Value[str]])
mpi = table("mpi", nccl_facts.Mpi)
mysql = table("mysql", azure_facts.MySql)
node_attributes = table("node_attributes", slurm_facts.NodeAttributes)
node_benchmarks = table("node_benchmarks", health_facts.NodeBenchmarks)
regions = table("regions", azure_facts.Regions)
resource_names = table("resource_names", azure_facts.ResourceNames)
rule_figures = table("rule_figures", rule_facts.RuleFigures)
slurm_conf = table("slurm_conf", slurm_facts.SlurmConf)
slurm_keys = table("slurm_keys", slurm_facts.SlurmKeys)
sources = table("sources", dict[str, Source])
streams = table("streams", dict[str, health_facts.Stream])
support = table("support", azure_facts.Support)
template_parameters = table("template_parameters", slurm_facts.TemplateParameters)
throughput = table("throughput", training_facts.Throughput)
training = table("training", training_facts.Training)
training_versions = table("training_versions", training_facts.TrainingVersions)
what_if = table("what_if", azure_facts.WhatIf)


def cloud(name: str) -> azure_facts.Cloud:
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
