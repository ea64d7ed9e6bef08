"""Images that nodes boot: what is known of one by its name or URN, and which of them have marketplace terms."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from ..records import record
from .files import table


@record
class ImagePlan:
    """The plan of a marketplace image: its terms are accepted once per subscription before a VM may be made from it."""

    publisher: str
    product: str
    """Also called offer."""
    name: str


@cache
def image_row(image: str) -> Mapping[str, Any] | None:
    """The row of a node image by the name that the cluster template uses, or by its URN in any version."""
    images = table("images")
    row: Mapping[str, Any] | None = images["node_images"].get(image)
    if row is None and image.count(":") == 3:
        row = images["hpc_marketplace"].get(f"{image.rsplit(':', 1)[0]}:latest".lower())
    return row


def image_plan(image: str) -> ImagePlan | Literal["unknown"] | None:
    """The plan of a node image; None where it has none, `unknown` where nobody has published it.

    An image of a gallery that was made from a marketplace image keeps its plan, which its id does not show.
    """
    row = image_row(image)
    if row is not None:
        plan = row["plan"]
        return plan if plan == "unknown" or plan is None else ImagePlan(**plan)
    if image.startswith("/"):
        return "unknown"
    publisher, product, name, *_ = (*image.split(":"), "", "", "")
    publishers = table("images")["publishers"]
    if publisher.lower() in publishers["without_plan"]:
        return None
    return ImagePlan(publisher, product, name) if publisher.lower() in publishers["with_plan"] else "unknown"
