"""Images that nodes boot: what is known of one by its name or URN, and which of them have marketplace terms."""

from __future__ import annotations

from functools import cache
from typing import Literal

from .files import Fact, Row, table


class ImagePlan(Fact, frozen=True):
    """The plan of a marketplace image: its terms are accepted once per subscription before a VM may be made from it."""

    publisher: str
    product: str
    """Also called offer."""
    name: str


class NodeImage(Row, frozen=True, kw_only=True):
    arch: tuple[str, ...]
    os: str
    os_disk_gib: int | None
    plan: ImagePlan | Literal["unknown"] | None
    """`unknown`: nobody has published it."""
    tools: tuple[str, ...] | None = None
    """Of the health checks, that it brings; None: nobody says it."""
    title: str | None = None
    gpu: str = "nvidia"
    """For whose GPUs it has a driver."""


class Publishers(Row, frozen=True, kw_only=True):
    with_plan: tuple[str, ...]
    without_plan: tuple[str, ...]


class Images(Fact, frozen=True, kw_only=True):
    """Node images by the names of the cluster template, and the marketplace images for HPC."""

    default: str
    hpc_marketplace: dict[str, NodeImage]
    node_images: dict[str, NodeImage]
    publishers: Publishers


images = table("images", Images)


@cache
def image_row(image: str) -> NodeImage | None:
    """The row of a node image by the name that the cluster template uses, or by its URN in any version."""
    row = images().node_images.get(image)
    if row is None and image.count(":") == 3:
        row = images().hpc_marketplace.get(f"{image.rsplit(':', 1)[0]}:latest".lower())
    return row


def image_plan(image: str) -> ImagePlan | Literal["unknown"] | None:
    """The plan of a node image; None where it has none, `unknown` where nobody has published it.

    An image of a gallery that was made from a marketplace image keeps its plan, which its id does not show.
    """
    row = image_row(image)
    if row is not None:
        return row.plan
    if image.startswith("/"):
        return "unknown"
    publisher, product, name, *_ = (*image.split(":"), "", "", "")
    publishers = images().publishers
    if publisher.lower() in publishers.without_plan:
        return None
    plan = ImagePlan(publisher=publisher, product=product, name=name)
    return plan if publisher.lower() in publishers.with_plan else "unknown"
