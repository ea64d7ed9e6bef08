"""VM sizes that a definition describes itself, as the catalogue's sizes are described."""

from __future__ import annotations

from .. import catalog
from ..catalog.sizes import VmSize
from ..definition.model.definition import Definition
from ..definition.model.sizes import CustomVmSize

SOURCE = "custom_vm_sizes"
"""The source of its figures that nodes are told: the key of the definition."""
_GROUPS = ("cpu", "gpu", "infiniband", "local_storage", "memory")


def size_of(definition: Definition, name: str) -> VmSize:
    """A VM size of a definition: the catalogue's, else the definition's own; with neither it is not known.

    The catalogue wins because it holds health floors and NCCL figures, too.
    """
    size = catalog.vm_size(name)
    if size.known or not definition.custom_vm_sizes:
        return size
    return next((described(block) for block in definition.custom_vm_sizes if block.name == name), size)


def described(block: CustomVmSize) -> VmSize:
    """The size of a block; whatever the block leaves out nobody has stated."""
    gpus, infiniband = block.gpus, block.infiniband
    return VmSize(
        name=block.name,
        known=True,
        custom=True,
        vcpus=block.vcpus,
        memory_gib=block.memory_gib,
        guest_memory_mib=block.guest_memory_mib,
        arch=block.architecture,
        premium_storage=block.premium_storage,
        encryption_at_host=block.encryption_at_host,
        gpu_count=gpus.count if gpus else 0,
        gpu_vendor=gpus.vendor if gpus else None,
        gpu_model=gpus.model if gpus else None,
        gpu_memory_gb=gpus.memory_gb if gpus else None,
        infiniband_nics=infiniband.nics if infiniband else 0,
        infiniband_gbps_per_nic=infiniband.gbps_per_nic if infiniband else None,
        nvme_count=block.nvme_disks,
        images=_images(block),
        quota_family=block.quota_family,
        sources=dict.fromkeys(_GROUPS, (SOURCE,)),
    )


def _images(block: CustomVmSize) -> tuple[str, ...]:
    """Marketplace images whose driver fits, the newest first.

    The catalogue's images carry one of three drivers: V100 needs the older branch, AMD needs ROCm.
    Source: https://github.com/Azure/azhpc-images README.
    """
    if block.gpus is None:
        return ()
    driver = "amd" if block.gpus.vendor == "AMD" else "nvidia-v100" if "V100" in block.gpus.model.upper() else "nvidia"
    rows = catalog.images().hpc_marketplace
    fitting = (urn for urn, row in rows.items() if row.gpu == driver and block.architecture in row.arch)
    return tuple(sorted(fitting, reverse=True))
