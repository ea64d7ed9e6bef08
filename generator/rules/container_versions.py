"""Rules about the containers of training jobs: the CUDA in them and the driver of the nodes, and what pins them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..plan.types import JobPlan, NodeArrayPlan, Plan
from ..problems.problem import Problem
from ..recipes.versions import Compatibility, compatibility
from .base import Path, PlanRule
from .training import setting_path, training_jobs
from .wording import quoted

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
                text = f"training job '{job.name}': CONTAINER_DIGEST is {quoted(given)}, which is no digest"
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
