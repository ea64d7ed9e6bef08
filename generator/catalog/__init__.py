"""Facts as data: VM sizes, releases, images, file systems, regions, limits and health floors, each with its source.

Every figure stands in a JSON file of this folder beside the key of its source in `sources.json`, or is `null` where
nobody published it. Nothing here reads more than the file that a question needs: one VM size is one small file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from .files import FOLDER, read, table
from .releases import (
    DefaultVersions,
    OperatingSystem,
    Release,
    ServerImage,
    SlurmProject,
    default_slurm_project,
    default_versions,
    release,
    releases,
    server_image,
    slurm_project,
    slurm_projects,
)
from .sizes import VmSize, size_of_file, size_of_table

__all__ = [
    "DefaultVersions",
    "OperatingSystem",
    "Release",
    "ServerImage",
    "SlurmProject",
    "VmSize",
    "blobs",
    "canonical_vm_size",
    "cloud",
    "default_slurm_project",
    "default_versions",
    "file_systems",
    "health",
    "image",
    "images",
    "limits",
    "models",
    "mount_options",
    "regions",
    "release",
    "releases",
    "rule_figures",
    "server_image",
    "slurm_project",
    "slurm_projects",
    "sources",
    "vm_size",
    "vm_size_names",
]


# ---------------------------------------------------------------- VM sizes


@cache
def _measured_names() -> frozenset[str]:
    """Sizes with a file of their own; the listing also guards against names that are paths."""
    return frozenset(path.stem for path in (FOLDER / "vm_sizes").glob("*.json"))


def _series() -> Mapping[str, Any]:
    """Series of the table by name: `sizes` maps each VM size to its vCPUs and GiB."""
    series: Mapping[str, Any] = table("general_sizes")["series"]
    return series


@cache
def _series_of() -> Mapping[str, str]:
    return {size: name for name, series in _series().items() for size in series["sizes"]}


@cache
def vm_size_names() -> tuple[str, ...]:
    """All known VM sizes, sorted."""
    return tuple(sorted(_measured_names() | _series_of().keys()))


@cache
def _by_lower_name() -> Mapping[str, str]:
    return {name.lower(): name for name in vm_size_names()}


def canonical_vm_size(name: str) -> str | None:
    """The known size that differs from `name` at most in case or a missing `Standard_`; for suggestions only."""
    lower = name.strip().lower()
    known = _by_lower_name()
    return known.get(lower) or known.get(f"standard_{lower}")


@cache
def vm_size(name: str) -> VmSize:
    """All published figures of a VM size; `known` is false for a size that the catalogue does not have."""
    if name in _measured_names():
        return size_of_file(name, read(f"vm_sizes/{name}.json"), table("vm_sizes"))
    if name in _series_of():
        return size_of_table(name, _series()[_series_of()[name]])
    return VmSize(name)


# ---------------------------------------------------------------- everything else


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


def regions() -> Mapping[str, Any]:
    """Azure regions by name: `cloud`, `display_name` and whether they have availability zones."""
    content: Mapping[str, Any] = table("regions")["regions"]
    return content


def cloud(name: str) -> Mapping[str, str]:
    """One of Azure's clouds: its name for the Azure CLI, and the ends of blob endpoints and of MySQL host names."""
    row: Mapping[str, str] = table("clouds")["clouds"][name]
    return row


def limits() -> Mapping[str, Any]:
    """Limits of Azure, CycleCloud and Slurm: `value`, `unit`, `source`, or a list with its reasons."""
    return table("limits")


def rule_figures() -> Mapping[str, Any]:
    """Figures that only rules need."""
    return table("rule_figures")


def health() -> Mapping[str, Any]:
    """Node-health checks and floors per VM size (`vm_sizes`), tools, common checks."""
    return table("health")


def blobs() -> Sequence[Mapping[str, Any]]:
    """Files of other people that nodes need, each pinned by its digest; `generator.blobs` describes the fields."""
    rows: Sequence[Mapping[str, Any]] = table("blobs")["blobs"]
    return rows


def models() -> Mapping[str, Any]:
    """Model presets of the training recipes and the bytes that a checkpoint takes per parameter."""
    return table("models")
