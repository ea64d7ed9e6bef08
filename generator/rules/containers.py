"""Containers: enroot and pyxis against the operating system."""

from __future__ import annotations

from collections.abc import Iterator

from ..problems.problem import Problem
from .base import DefinitionRule, Site
from .figures import figures
from .images import image_facts
from .releases import os_row
from .roles import RoleNode, roles
from .wording import quoted

CONTAINER_PROJECT = "pyxis_enroot"
_SLURM = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"


def has_containers(site: Site, node: RoleNode) -> bool | None:
    """Whether cyclecloud-slurm or our project sets up enroot and pyxis on a role; None when the image is not known."""
    facts = image_facts(node.image)
    row = os_row(site, facts.os) if facts else None
    if facts is None or row is None:
        return None
    ours = facts.os in figures()["containers"]["installed_by_project"]
    return row.enroot_pyxis or (ours and _is_attached(node))


def _is_attached(node: RoleNode) -> bool:
    """Every role has the project unless it names its own."""
    chosen = node.settings.projects
    named = {reference.split(":")[0] for reference in (*(chosen or ()), *(node.settings.extra_projects or ()))}
    return chosen is None or CONTAINER_PROJECT in named


class ContainersNotSupported(DefinitionRule):
    id = "E0801"
    summary = "The container project is attached to an operating system on which enroot is not set up."
    why = (
        "cyclecloud-slurm configures enroot and pyxis on Ubuntu and EL 8, and the project installs them on EL 9; on "
        "SLES and Azure Linux its scripts find nothing to configure."
    )
    fix = "Choose cycle.image.ubuntu24, cycle.image.ubuntu22, almalinux8 or almalinux9, or leave the project out."
    source = _SLURM

    def check(self, site: Site) -> Iterator[Problem]:
        for node in roles(site):
            if has_containers(site, node) is not False:
                continue
            for key in ("projects", "extra_projects"):
                for index, reference in enumerate(getattr(node.settings, key) or ()):
                    if reference.split(":")[0] == CONTAINER_PROJECT:
                        text = (
                            f"{node.label}: {CONTAINER_PROJECT} is attached, but enroot is not set up on the image "
                            f"{quoted(node.image)}"
                        )
                        yield self.problem((*node.path, key, index), text, "image: cycle.image.ubuntu24")


class NoContainers(DefinitionRule):
    id = "W0802"
    summary = "GPU nodes have an image on which containers do not run."
    why = "Training jobs run in containers; `srun --container-image` does not exist without pyxis."
    fix = (
        "Choose cycle.image.ubuntu24, cycle.image.ubuntu22 or almalinux8 for it, attach pyxis_enroot to one "
        "with almalinux9, or silence this rule."
    )
    source = _SLURM

    def check(self, site: Site) -> Iterator[Problem]:
        from .roles import gpus

        for node in roles(site):
            sizes = node.partition.sizes if node.partition is not None else ()
            if any(gpus(site, size) for size in sizes) and has_containers(site, node) is False:
                yield self.problem(
                    node.image_path,
                    f"{node.label} has GPUs, but containers do not run on the image {quoted(node.image)}",
                )
