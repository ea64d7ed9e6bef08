"""Marketplace terms of the images in use: which must be accepted, and of which images it is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ..catalog.node_images import ImagePlan, image_plan
from .cluster import SlurmPlan
from .fleet import Machines
from .server import ServerPlan


class ImageTerms(Struct, frozen=True):
    """The plan of a marketplace image whose terms must be accepted once per subscription."""

    publisher: str
    product: str
    name: str
    used_by: tuple[str, ...]
    """In words, for example `the scheduler`."""


class UnknownImage(Struct, frozen=True):
    """An image of which it is not known whether it has terms: a name, a URN or a resource id."""

    image: str
    used_by: tuple[str, ...]

    @property
    def is_urn(self) -> bool:
        """Whether the Azure CLI can be asked for its plan."""
        return self.image.count(":") == 3


def image_terms(
    server: ServerPlan | None, slurm: SlurmPlan | None, fleet: Iterable[Machines]
) -> tuple[ImageTerms, ...]:
    """One entry per plan, in the order server, scheduler, login nodes, partitions."""
    users: dict[ImagePlan, list[str]] = {}
    if server is not None and server.image is not None:
        image = server.image
        users[ImagePlan(image.publisher, image.offer, image.sku)] = ["the CycleCloud server"]
    for user, image_name in _node_images(slurm, fleet):
        plan = image_plan(image_name)
        if isinstance(plan, ImagePlan):
            users.setdefault(plan, []).append(user)
    return tuple(ImageTerms(plan.publisher, plan.product, plan.name, tuple(found)) for plan, found in users.items())


def unknown_images(
    server: ServerPlan | None, slurm: SlurmPlan | None, fleet: Iterable[Machines]
) -> tuple[UnknownImage, ...]:
    """Images of which it is not known whether they have terms."""
    users: dict[str, list[str]] = {}
    if server is not None and server.image_id is not None:
        users[server.image_id] = ["the CycleCloud server"]
    for user, image in _node_images(slurm, fleet):
        if image_plan(image) == "unknown":
            users.setdefault(image, []).append(user)
    return tuple(UnknownImage(image, tuple(found)) for image, found in users.items())


def _node_images(slurm: SlurmPlan | None, fleet: Iterable[Machines]) -> Iterator[tuple[str, str]]:
    """(user in words, image) of every role that has nodes."""
    if slurm is not None:
        nodes = (each for each in fleet if each.is_node)
        yield from dict.fromkeys((each.label, slurm.role_of(each).image) for each in nodes)
