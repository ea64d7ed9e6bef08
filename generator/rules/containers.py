"""Containers: enroot and pyxis, the CUDA in an image and the driver of the nodes, and settings that name an image."""

from __future__ import annotations

import re
from collections.abc import Iterator

from .. import catalog
from ..definition.model.definition import Job
from ..plan.deployment import Plan
from ..plan.job_settings import known_settings
from ..plan.jobs import JobPlan
from ..plan.nodes import NodeArrayPlan
from ..problems.problem import Problem
from ..recipes import recipe
from ..recipes.versions import Compatibility, compatibility
from .base import DefinitionRule, Path, PlanRule, Site, listed_jobs, quoted
from .releases import os_row
from .roles import RoleNode, gpus, roles
from .training import setting_path, training_jobs
from .vm_images import image_facts

CONTAINER_PROJECT = "pyxis_enroot"
_SLURM = "https://github.com/Azure/cyclecloud-slurm/tree/4.0.9"


def has_containers(site: Site, node: RoleNode) -> bool | None:
    """Whether cyclecloud-slurm or our project sets up enroot and pyxis on a role; None when the image is not known."""
    facts = image_facts(node.image)
    row = os_row(site, facts.os) if facts else None
    if facts is None or row is None:
        return None
    ours = facts.os in catalog.rule_figures().containers.installed_by_project
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
        for node in roles(site):
            sizes = node.partition.sizes if node.partition is not None else ()
            if any(gpus(site, size) for size in sizes) and has_containers(site, node) is False:
                yield self.problem(
                    node.image_path,
                    f"{node.label} has GPUs, but containers do not run on the image {quoted(node.image)}",
                )


_DRIVERS = "https://docs.nvidia.com/deploy/cuda-compatibility/"
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class DriverTooOldForContainer(PlanRule):
    id = "W1687"
    summary = "The driver of a VM image is too old for the CUDA of a training job's container."
    why = (
        "The container brings its own CUDA, but the driver is that of the node. Below the oldest branch for a major "
        "version of CUDA only the branches work that NVIDIA names for its compatibility package; on others the "
        "framework ends with `CUDA driver version is insufficient for CUDA runtime version`."
    )
    fix = "Choose a newer version of the image, or a container with an older CUDA."
    source = _DRIVERS

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job, array, found in _containers(plan):
            if found.verdict == "too old":
                text = f"training job '{job.name}' runs {quoted(_container(job))} on {array.vm_size}: {found.reason}"
                yield self.problem(setting_path(plan, path, "CONTAINER"), text, self.fix)


class DriverUnknownForContainer(PlanRule):
    id = "I1688"
    summary = "Whether the driver of a VM image is new enough for a training job's container is not known."
    why = (
        "CycleForge knows the driver of the HPC images and the CUDA of the containers that its recipes name. What you "
        "bring yourself it cannot compare."
    )
    fix = "Compare the CUDA of the container with `nvidia-smi` of a node, and silence this rule."
    source = _DRIVERS

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job, _, found in _containers(plan):
            if found.verdict == "unknown":
                text = f"training job '{job.name}' runs {quoted(_container(job))}: {found.reason}"
                yield self.problem(setting_path(plan, path, "CONTAINER"), text, self.fix)


class NotADigest(PlanRule):
    id = "E1689"
    summary = "The digest that a training job states for its container is none."
    why = "The job compares it with what the registry has, and stops before it imports anything."
    fix = "CONTAINER_DIGEST is sha256: and 64 hexadecimal digits, as `enroot digest` prints it."
    source = "https://github.com/NVIDIA/enroot/blob/v4.1.2/src/docker.sh"

    def check(self, plan: Plan) -> Iterator[Problem]:
        for path, job in training_jobs(plan):
            given = dict(job.settings).get("CONTAINER_DIGEST")
            if given and not _DIGEST.fullmatch(given):
                text = f"training job '{job.name}': CONTAINER_DIGEST is {quoted(given)}, which is not a digest"
                yield self.problem(setting_path(plan, path, "CONTAINER_DIGEST"), text, self.fix)


def _container(job: JobPlan) -> str:
    return dict(job.settings).get("CONTAINER", "")


def _containers(plan: Plan) -> Iterator[tuple[Path, JobPlan, NodeArrayPlan, Compatibility]]:
    """Training jobs in containers on NVIDIA's GPUs, and what is known of the two versions."""
    arrays = plan.slurm.node_arrays if plan.slurm else ()
    for path, job in training_jobs(plan):
        places = (each for array in arrays if array.name == job.node_array for each in array.of_each_size)
        place = next(each for each in places if each.vm_size == job.vm_size)
        if _container(job) and place.hardware.gpu_vendor == "NVIDIA":
            found = compatibility(_container(job), place.image, place.hardware.arch or "x86_64")
            yield path, job, place, found


IMAGES = ("CONTAINER", "IMAGE")
"""Settings that name an image."""
MOUNTS = "CONTAINER_MOUNTS"
_PYXIS = "https://github.com/NVIDIA/pyxis"
_SQUASH = re.compile(r"(?!/|docker://|dockerd://|podman://).*\.(sqsh|sqfs|squashfs)", re.IGNORECASE)
_NO_SOURCE = ("tmpfs", "umount")
"""Words that stand where the source of a mount does. Source: NVIDIA/pyxis, args.c (add_mount)"""


class ImageWithoutPath(DefinitionRule):
    id = "E1612"
    summary = "A job's setting names a squash file without its whole path."
    why = (
        "pyxis and enroot take what does not begin with / for the name of an image, and a registry answers with 401. "
        "What begins with ./ is a path to pyxis alone, and is not looked up in the folder of the job."
    )
    fix = "Give the path of the file from / on, on a file system that all nodes mount."
    source = _PYXIS

    def check(self, site: Site) -> Iterator[Problem]:
        for path, job in listed_jobs(site):
            for name in IMAGES:
                if not _has(job, name):
                    continue
                value = job.settings.get(name)
                if isinstance(value, str) and _SQUASH.fullmatch(value.strip()):
                    label = f"job {quoted(job.name or job.recipe)}"
                    text = f"{label}: {name} is {quoted(value)}, a squash file without its path"
                    file = value.strip().rpartition("/")[2]
                    yield self.problem((*path, "settings", name), text, f"{name}: /shared/images/{file}, for example")


class BadContainerMount(DefinitionRule):
    id = "E1613"
    summary = "A job's setting CONTAINER_MOUNTS is not in the form of pyxis."
    why = "srun refuses the option, and the job ends before it starts anything."
    fix = "Write SOURCE:TARGET or SOURCE:TARGET:FLAGS, several separated by commas; both are paths."
    source = _PYXIS

    def check(self, site: Site) -> Iterator[Problem]:
        for path, job in listed_jobs(site):
            value = job.settings.get(MOUNTS) if _has(job, MOUNTS) else None
            for entry in value.split(",") if isinstance(value, str) and value else ():
                if not _is_mount(entry):
                    what = f"{quoted(entry)} in {MOUNTS} is not a mount"
                    if not entry.strip():
                        what = f"{MOUNTS} has an empty entry: remove the extra comma"
                    text = f"job {quoted(job.name or job.recipe)}: {what}"
                    yield self.problem((*path, "settings", MOUNTS), text, self.fix if entry.strip() else None)


def _has(job: Job, setting: str) -> bool:
    """Whether its recipe reads the setting; of another one W1607 says what it may be."""
    needs = recipe(job.recipe)
    return needs is not None and setting in known_settings(needs)


def _is_mount(entry: str) -> bool:
    """As pyxis reads it: the target may be left out, and is the source then."""
    source, _, rest = entry.partition(":")
    target = rest.partition(":")[0] if ":" in entry else source
    return (source.startswith((".", "/")) or source in _NO_SOURCE) and target.startswith((".", "/"))
