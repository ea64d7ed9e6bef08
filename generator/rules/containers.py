"""Containers: enroot and pyxis against the operating system."""

from __future__ import annotations

from collections.abc import Iterator

from generator.problems import Problem
from generator.rules.base import Rule, Site
from generator.rules.look import image_facts, quoted, roles
from generator.rules.releases import os_row

CONTAINER_PROJECT = "pyxis_enroot"
_SLURM = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"


def has_containers(site: Site, image: str) -> bool | None:
    """Whether cyclecloud-slurm sets up enroot and pyxis on an image; None when the image is not known."""
    facts = image_facts(image)
    row = os_row(site, facts.os) if facts else None
    return None if row is None else bool(row.get("enroot_pyxis"))


class ContainersNotSupported(Rule):
    id = "E0801"
    summary = "The container project is attached to an operating system on which enroot is not set up."
    why = (
        "cyclecloud-slurm configures enroot and pyxis on Ubuntu and EL 8; on EL 9, SLES and Azure Linux the "
        "project's scripts find nothing to work on."
    )
    fix = "Choose cycle.image.ubuntu24, cycle.image.ubuntu22 or almalinux8, or leave the project out."
    source = _SLURM

    def check(self, site: Site) -> Iterator[Problem]:
        for node in roles(site):
            if has_containers(site, node.image) is not False:
                continue
            for key in ("projects", "extra_projects"):
                for index, reference in enumerate(getattr(node.settings, key) or ()):
                    if reference.split(":")[0] == CONTAINER_PROJECT:
                        text = (
                            f"{node.label}: {CONTAINER_PROJECT} is attached, but enroot is not set up on the image "
                            f"{quoted(node.image)}"
                        )
                        yield self.problem((*node.path, key, index), text, "image: cycle.image.ubuntu24")


class NoContainers(Rule):
    id = "W0802"
    summary = "GPU nodes have an image on which containers do not run."
    why = "Training jobs come in containers; `srun --container-image` is not there without pyxis."
    fix = "Choose cycle.image.ubuntu24, cycle.image.ubuntu22 or almalinux8 for this partition, or silence this rule."
    source = _SLURM

    def check(self, site: Site) -> Iterator[Problem]:
        from generator.rules.look import gpus

        for node in roles(site):
            if node.partition is not None and gpus(node.vm_size) and has_containers(site, node.image) is False:
                yield self.problem(
                    node.image_path,
                    f"{node.label} has GPUs, but containers do not run on the image {quoted(node.image)}",
                )


RULES: tuple[type[Rule], ...] = (ContainersNotSupported, NoContainers)
