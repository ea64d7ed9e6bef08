"""Which versions training runs, and whether the driver of a node's image is new enough for a container's CUDA."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from .. import catalog
from ..catalog.node_images import image_row
from ..catalog.training_facts import Container

_DATE = re.compile(r"(?:^|\.)(20\d{6})\d*$")


class Compatibility(Struct, frozen=True):
    """What is known of a container on the image of a partition's nodes."""

    verdict: Literal["fits", "too old", "unknown"]
    reason: str
    """For a person: what was compared, or what is not known."""


def pin(place: str) -> str:
    """What the catalogue has at a place such as `frameworks/megatron-lm/commit`."""
    table, row, column = place.split("/")
    rows = catalog.training_versions()
    found = rows.frameworks[row] if table == "frameworks" else rows.containers[row]
    return str(getattr(found, column))


def container(reference: str) -> Container | None:
    """The catalogue's row of an image, with any digest; None where it has none."""
    # enroot takes both signs between registry and image.
    name = reference.split("@sha256:", 1)[0].replace("#", "/")
    for row in catalog.training_versions().containers.values():
        if row.reference.replace("#", "/") == name:
            return row
    return None


def driver_of(image: str, arch: str) -> str | None:
    """NVIDIA's driver in an HPC image; None where it is not published.

    A marketplace version ends with the day of its build, and `latest` has what the newest known one has.
    """
    row = image_row(image)
    if row is None or row.gpu == "amd":
        return None
    rows = catalog.training_versions().image_drivers.rows.get(f"{row.os} {arch}", ())
    built = _DATE.search(image.rsplit(":", 1)[-1]) if image.count(":") == 3 else None
    if image.count(":") == 3 and built is None and not image.endswith(":latest"):
        return None
    fitting = [each for each in rows if built is None or each.since <= int(built[1])]
    return str(fitting[-1].driver) if fitting else None


def compatibility(reference: str, image: str, arch: str) -> Compatibility:
    """Whether the CUDA of a container runs with the driver of a node's image.

    It does on the oldest branch for its major version and all later ones, and on some older branches with the
    compatibility package that the images bring, on GPUs of data centres, which all of Azure's are.
    """
    known, driver = container(reference), driver_of(image, arch)
    if known is None:
        return Compatibility("unknown", "the CUDA version of the container is unknown")
    major = known.cuda.split(".")[0]
    needed = catalog.training_versions().cuda_drivers.rows[major]
    minimum = f"its CUDA {known.cuda} needs driver {needed.branch} or newer"
    if driver is None:
        return Compatibility("unknown", f"{minimum}, and the driver of the image {image!r} is unknown")
    branch = int(driver.split(".")[0])
    if branch >= needed.branch or branch in needed.forward:
        return Compatibility("fits", f"{minimum}, the image has {driver}")
    forward = ", ".join(map(str, needed.forward))
    older = f", or one of the branches {forward}" if forward else ""
    return Compatibility("too old", f"{minimum}{older}; the image {image!r} has {driver}")
