"""Marketplace terms of the images in use: which must be accepted, and of which images it is not known."""

from __future__ import annotations

from collections.abc import Iterator

from ..catalog.node_images import ImagePlan, image_plan
from .types import ImageTerms, ServerPlan, SlurmPlan, UnknownImage


def image_terms(server: ServerPlan | None, slurm: SlurmPlan | None) -> tuple[ImageTerms, ...]:
    """One entry per plan, in the order server, scheduler, login nodes, partitions."""
    users: dict[ImagePlan, list[str]] = {}
    if server is not None and server.image is not None:
        image = server.image
        users[ImagePlan(image.publisher, image.offer, image.sku)] = ["the CycleCloud server"]
    for user, image_name in _node_images(slurm):
        plan = image_plan(image_name)
        if isinstance(plan, ImagePlan):
            users.setdefault(plan, []).append(user)
    return tuple(ImageTerms(plan.publisher, plan.product, plan.name, tuple(found)) for plan, found in users.items())


def unknown_images(server: ServerPlan | None, slurm: SlurmPlan | None) -> tuple[UnknownImage, ...]:
    """Images of which it is not known whether they have terms."""
    users: dict[str, list[str]] = {}
    if server is not None and server.image_id is not None:
        users[server.image_id] = ["the CycleCloud server"]
    for user, image in _node_images(slurm):
        if image_plan(image) == "unknown":
            users.setdefault(image, []).append(user)
    return tuple(UnknownImage(image, tuple(found)) for image, found in users.items())


def _node_images(slurm: SlurmPlan | None) -> Iterator[tuple[str, str]]:
    """(user in words, image) of every role that has nodes."""
    if slurm is None:
        return
    yield "the scheduler", slurm.scheduler.image
    if slurm.login.max_count:
        yield "the login nodes", slurm.login.image
    yield from ((f"partition {array.partition}", array.image) for array in slurm.node_arrays)
