"""Settings of jobs that name an image or mounts of a container, by the rules of the plug-in that reads them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..definition.model.definition import Job
from ..plan.job_settings import known_settings
from ..problems.problem import Problem
from ..recipes import recipe
from .base import DefinitionRule, Site
from .places import listed_jobs
from .wording import quoted

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
                    what = f"{quoted(entry)} in {MOUNTS} is no mount"
                    if not entry.strip():
                        what = f"{MOUNTS} has an empty entry: a comma too many"
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
