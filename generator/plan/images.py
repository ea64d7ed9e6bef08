"""The default image of a VM size."""

from __future__ import annotations

from .. import catalog
from ..catalog.sizes import VmSize


def default_image(size: VmSize) -> str:
    """The catalogue's default image, or the size's own one where only a special variant carries its driver.

    V100 needs the v100 images, MI300X the ROCm ones. Source: https://github.com/Azure/azhpc-images README.
    """
    variants = catalog.images().hpc_marketplace
    special = size.images and all(urn not in variants or variants[urn].gpu != "nvidia" for urn in size.images)
    return size.images[0] if special and size.gpu_count else catalog.images().default
