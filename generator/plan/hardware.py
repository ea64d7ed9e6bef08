"""The figures and the default image of a VM size."""

from __future__ import annotations

from .. import catalog
from .types import NodeHardware


def hardware_of(vm_size: str) -> NodeHardware:
    """Catalogue figures; for an unknown size everything is open and nothing is guessed."""
    return catalog.hardware(vm_size) or NodeHardware(
        vm_size=vm_size, known=False, vcpus=None, memory_gib=None, arch="x86_64", gpu_count=0, gpu_vendor=None,
        gpu_model=None, gpu_memory_gb=None, infiniband_nics=0, infiniband_gbps_per_nic=None, nvme_count=None,
        numa_nodes=None, nccl_topo_file=None, nccl_graph_file=None, nccl_env=(), tasks_per_node=None,
        cpus_per_task=None, cpu_masks=(), quota_family=None,
    )  # fmt: skip


def default_image(vm_size: str) -> str:
    """The catalogue's default image, or the size's own one where only a special variant carries its driver.

    V100 needs the v100 images, MI300X the ROCm ones. Source: https://github.com/Azure/azhpc-images README.
    """
    figures = catalog.vm_size(vm_size)
    urns = (figures or {}).get("images", {}).get("marketplace_urns") or ()
    variants = catalog.images()["hpc_marketplace"]
    if urns and all(variants.get(urn, {}).get("gpu") != "nvidia" for urn in urns) and hardware_of(vm_size).gpu_count:
        return str(urns[0])
    return str(catalog.images()["default"])
