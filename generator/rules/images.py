"""What the catalogue knows of the images that nodes boot."""

from __future__ import annotations

import re

from ..catalog.node_images import image_row
from ..records import record


@record
class ImageFacts:
    """What the catalogue knows of a node image."""

    os: str
    arch: tuple[str, ...]
    variant: str
    """GPU driver variant: `nvidia`, `v100` or `rocm`."""


_URN = re.compile(r"[^:/\s]+:[^:/\s]+:[^:/\s]+:[^:/\s]+")


def is_urn(image: str) -> bool:
    """Whether the text has the four parts of a marketplace URN."""
    return _URN.fullmatch(image) is not None


def image_variant(urn: str) -> str:
    """GPU driver variant that an HPC image's SKU names."""
    return next((variant for variant in ("v100", "rocm") if variant in urn.lower()), "nvidia")


def image_facts(image: str) -> ImageFacts | None:
    """Facts of a CycleCloud image name or of a known HPC image; None for others, about which nothing can be said."""
    row = image_row(image)
    return ImageFacts(row["os"], tuple(row["arch"]), image_variant(image)) if row else None
