"""`README.md` and `operations.md`, `.envrc.template` with the variables of their commands, and `.gitignore`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sized
from functools import cache, partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..files.file import Files, text
from ..plan.asked import Asked
from ..plan.deployment import Plan
from ..plan.drained import drained_nodes
from ..plan.file_systems.registry import by_kind
from ..plan.flows import flow_rows
from ..plan.nodes import NodeArrayPlan, SchedulerPlan
from ..plan.parameters import RANDOM_TEXT
from ..plan.shells import shells
from ..words.counts import listed
from .templates import environment

if TYPE_CHECKING:
    from jinja2 import Environment

_PARTS = Path(__file__).resolve().parent / "readme_parts"


def render(plan: Plan) -> Files:
    """The pages with the commands, `.envrc.template`, and what keeps the filled-in copy out of git."""
    templates = _environment()
    values = {
        "plan": plan,
        "flow_rows": flow_rows(plan.network),
        "relies_on": partial(_relies_on, plan),
        "mount_troubles": [row for kind, _ in by_kind(plan.all_mounts) for row in kind.troubles],
        "validations": [job for job in plan.jobs if job.kind == "validation"],
        "operations": [f"operations/{part}.md.j2" for part in _operations(plan)],
        "generations": " ".join(array.generation for array in plan.slurm.node_arrays) if plan.slurm else "",
        "drained": drained_nodes(plan.slurm) if plan.slurm else (),
        "racks": _racks(plan),
        "shells": shells(plan.slurm) if plan.slurm else (),
        "new_password": RANDOM_TEXT,
        "trainings": [job for job in plan.jobs if job.kind == "training"],
    }
    return {
        PurePosixPath("README.md"): text(templates.get_template("README.md.j2").render(values)),
        PurePosixPath("operations.md"): text(templates.get_template("operations.md.j2").render(values)),
        PurePosixPath(".envrc.template"): text(templates.get_template("envrc.template.j2").render(plan=plan)),
        PurePosixPath(".gitignore"): text(templates.get_template("gitignore.j2").render()),
    }


def _operations(plan: Plan) -> Iterator[str]:
    """The parts of `operations.md` that this deployment has a use for."""
    accounting = plan.slurm.accounting if plan.slurm else None
    parts = {
        "server": plan.server,
        "size": plan.server,
        "encryption": True,
        "jumpbox": plan.server and plan.server.jumpbox,
        "cluster": plan.slurm,
        "replace_nodes": plan.slurm
        and _has_records(plan.slurm.scheduler)
        and all(_has_records(array) for array in plan.slurm.node_arrays),
        "topology": plan.slurm
        and _has_records(plan.slurm.scheduler)
        and any(array.is_hpc or array in _racks(plan) for array in plan.slurm.node_arrays),
        "file_system": plan.all_mounts,
        "database": accounting and accounting.is_new,
        "locker": plan.locker.is_new and plan.server,
        "flows": plan.network.is_new,
        "smaller_volume": [mount for mount in plan.all_mounts if mount.can_shrink],
        "redundancy": plan.locker.is_new and plan.server,
        "way_in": plan.network.is_new and plan.server,
        "dns_zone": plan.network.blob_dns_zone != "none",
        "second": True,
        "no_longer": True,
        "backup": plan.server,
        "upgrade": True,
        "password": plan.server,
        "ssh_key": plan.server,
        "certificate": plan.server,
        "keep_data": True,
        "stack": True,
    }
    return (part for part, applies in parts.items() if applies)


def _racks(plan: Plan) -> list[NodeArrayPlan]:
    """Node arrays whose nodes share NVLink across a rack, by the names that cyclecloud-slurm's IMEX hooks look for.

    Source: https://github.com/Azure/cyclecloud-slurm/blob/4.0.9/azure-slurm-install/imex_prolog.sh
    """
    arrays = plan.slurm.node_arrays if plan.slurm else ()
    return [array for array in arrays if any(name in array.vm_size for name in ("GB200", "GB300"))]


def _has_records(role: SchedulerPlan | NodeArrayPlan) -> bool:
    """Whether a node tells the scheduler how old it is, or the scheduler has the programs of an administrator."""
    return any(spec.project == "misc_ubuntu" for spec in role.specs)


def _relies_on(plan: Plan, *flows: str) -> str:
    """Nothing to print: it marks a sentence that is true only as long as the network has these flows."""
    for name in flows:
        plan.network.flow(name)
    return ""


@cache
def _environment() -> Environment:
    env = environment(_PARTS)
    env.filters |= {
        "asked": _asked,
        "billions": lambda number: f"{number / 1e9:.3g}",
        "cell": lambda value: str(value).replace("|", "\\|"),
        "count": _count,
        "listed": listed,
        "known": lambda number: "not known to CycleForge" if number is None else number,
        "terabytes": lambda size: f"{size / 1e12:.3g}",
    }
    return env


def _count(number: int | Sized, noun: str) -> str:
    """`1 node`, `2 nodes`; of a collection its length."""
    number = number if isinstance(number, int) else len(number)
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _asked(value: str | Asked) -> str:
    """A value as a word for the shell; what is asked for is in the environment variable that it is read from."""
    return f'"${{{value.variable}:?}}"' if isinstance(value, Asked) else shlex.quote(value)
