"""MIG: a partition whose GPUs are divided into slices of one profile.

azslurm writes one row of gres.conf per node array and writes it anew with every `azslurm scale`, so the slices reach
Slurm through what it reads: the resource `slurm_gpus`, which it prefers to the GPU count of the VM size, and
`slurm.gpu_device_config`, the device files of that row. The files are links that `misc_ndv4` makes on the node, because
the numbers of the driver's own files are not known before a GPU is divided.
Source: Azure/cyclecloud-slurm 4.0.9, azure-slurm/slurmcc/partition.py (gpu_count) and cli.py (_generate_gres_conf);
Azure/cyclecloud-scalelib, src/hpc/autoscale/node/nodemanager.py (autoscale.resources before default resources).
"""

from __future__ import annotations

from msgspec import Struct

from .. import catalog
from ..catalog.sizes import VmSize
from ..definition.model.slurm import Partition, Value

DEVICES = "/dev/cycleforge/mig"
"""Links of `projects/misc_ndv4/…/mig.sh`, numbered from 0."""


class MigPlan(Struct, frozen=True):
    """GPUs divided into slices (MIG instances), all of one profile."""

    profile: str
    per_gpu: int
    """Slices of one GPU."""
    slices: int
    """Slices of one node, which Slurm counts as its GPUs."""
    devices: str
    """Their device files, as `slurm.gpu_device_config` has them."""


def mig_plan(partition: Partition, hardware: VmSize) -> MigPlan | None:
    """The slices of a partition's nodes; None without the key, or where the GPU does not have the profile (E0451)."""
    profile = partition.mig_profile
    per_gpu = profiles_of(hardware).get(profile) if profile is not None else None
    if profile is None or per_gpu is None:
        return None
    slices = per_gpu * hardware.gpu_count
    devices = f"{DEVICES}[0-{slices - 1}]" if slices > 1 else f"{DEVICES}0"
    return MigPlan(profile=profile, per_gpu=per_gpu, slices=slices, devices=devices)


def profiles_of(hardware: VmSize) -> dict[str, int]:
    """MIG profiles of a VM size's GPUs, with the slices of one GPU."""
    if hardware.gpu_vendor != "NVIDIA":
        return {}
    return dict(catalog.mig_profiles(hardware.gpu_model, hardware.gpu_memory_gb))


def mig_attributes(mig: MigPlan | None) -> dict[str, Value]:
    """What `misc_ndv4` reads."""
    return {"cycleforge.mig.profile": mig.profile, "cycleforge.mig.per_gpu": mig.per_gpu} if mig else {}
