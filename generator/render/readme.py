"""`README.md` with the commands of this deployment, and `.envrc.template` with the variables that it reads."""

from __future__ import annotations

import shlex
from collections.abc import Sized
from functools import cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..files.file import Files, text
from ..plan.types import Asked, MountPlan, Plan
from .templates import environment

if TYPE_CHECKING:
    from jinja2 import Environment

_PARTS = Path(__file__).resolve().parent / "readme_parts"


def render(plan: Plan) -> Files:
    """`README.md` and `.envrc.template`."""
    templates = _environment()
    values = {
        "plan": plan,
        "mounts": [(mount.path, _mount_text(mount)) for mount in plan.all_mounts],
        "validations": [job for job in plan.jobs if job.kind == "validation"],
        "trainings": [job for job in plan.jobs if job.kind == "training"],
    }
    return {
        PurePosixPath("README.md"): text(templates.get_template("README.md.j2").render(values)),
        PurePosixPath(".envrc.template"): text(templates.get_template("envrc.template.j2").render(plan=plan)),
    }


@cache
def _environment() -> Environment:
    env = environment(_PARTS)
    env.filters |= {
        "asked": _asked,
        "billions": lambda number: f"{number / 1e9:.3g}",
        "cell": lambda value: str(value).replace("|", "\\|"),
        "count": _count,
        "known": lambda number: "not known to CycleForge" if number is None else number,
        "terabytes": lambda size: f"{size / 1e12:.3g}",
    }
    return env


def _count(number: int | Sized, noun: str) -> str:
    """`1 node`, `2 nodes`; of a collection its length."""
    number = number if isinstance(number, int) else len(number)
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _asked(value: str | Asked) -> str:
    """A value as a word for the shell; what is asked for stands in the environment variable that it is read from."""
    return f'"${{{value.variable}:?}}"' if isinstance(value, Asked) else shlex.quote(value)


def _mount_text(mount: MountPlan) -> str:
    if mount.kind == "nfs":
        return f"NFS disk of the scheduler, {mount.size_gib} GiB"
    if mount.kind == "anf":
        return f"Azure NetApp Files, {mount.size_gib} GiB, {mount.service_level}"
    if mount.kind == "amlfs":
        return f"Azure Managed Lustre, {(mount.size_gib or 0) // 1024} TiB, {mount.tier_mb_per_s_per_tib} MB/s per TiB"
    if mount.kind == "blob":
        return f"blob container `{mount.container}` of `{mount.storage_account}` by blobfuse"
    protocol = mount.protocol.upper() if mount.protocol == "nfs" else mount.protocol.capitalize()
    return f"existing {protocol} at {mount.address}"
