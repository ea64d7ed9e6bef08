"""`cluster/<cluster>.txt` and `cluster/<cluster>.params.json`: the cluster as CycleCloud imports it.

Own cluster-init projects stand in the template as `[[[cluster-init project:spec:version]]]` sections, in the order of
the plan, and not in the `*ClusterInitSpecs` parameters: CycleCloud runs sections in the order of the template, after
the inherited ones of the Slurm project, and editing a cluster in the portal has dropped specs of parameters (fixed in
8.9.2). The parameters stay, empty, for an operator's own specs, which run last.

Accelerated networking is left to the server, which knows the VM sizes that have it: the documentation of nodes does not
name `EnableAcceleratedNetworking`, and https://github.com/Azure/cyclecloud-slurm-workspace/pull/295 dropped it too.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..cctemplate.writing import assignment
from ..files import assets
from ..files.file import Files, json_file, text
from ..plan.names import BLOB_SUFFIXES
from ..plan.types import MountPlan, Plan, SpecRef
from .cluster_form import prefix
from .cluster_parameters import mounts, parameters, tabs
from .templates import environment

if TYPE_CHECKING:
    from jinja2 import Environment


def render(plan: Plan) -> Files:
    """The template and its parameter file; values that only the deployment knows are null in the latter."""
    folder, name = PurePosixPath("cluster"), plan.slurm.cluster_name
    values = {parameter.name: parameter.value for parameter in parameters(plan)}
    return {folder / f"{name}.txt": text(_template(plan)), folder / f"{name}.params.json": json_file(values)}


def late_parameters(plan: Plan) -> dict[str, str]:
    """Template parameter → key of the server's facts, or `secret:<name>`, in the order of the template."""
    return {parameter.name: parameter.late for parameter in parameters(plan) if parameter.late is not None}


def blob_attributes(plan: Plan) -> tuple[tuple[str, str], ...]:
    """Node attributes from which our own project mounts containers.

    CycleCloud 8.8 has a mount type for blobfuse2, but its keys are not documented, so the mount is ours:
    `cycleforge.blobfuse.mounts` lists names, `cycleforge.blobfuse.<name>.…` describes each. The identity that reads
    them is a parameter, so the template adds it.
    """
    blobs = _blobs(plan)
    named = [("cycleforge.blobfuse.mounts", " ".join(map(_blob_name, blobs)))] if blobs else []
    return (*named, *(item for mount in blobs for item in _blob(mount, BLOB_SUFFIXES.get(plan.cloud))))


def _blobs(plan: Plan) -> list[MountPlan]:
    return [mount for mount in plan.mounts if mount.kind == "blob"]


def _blob_name(mount: MountPlan) -> str:
    """The mount's name, and another one for /mounts: `cycleforge.blobfuse.mounts` is the list."""
    return "mounts-" if mount.name == "mounts" else mount.name


def _blob(mount: MountPlan, suffix: str | None) -> list[tuple[str, str]]:
    start = f"cycleforge.blobfuse.{_blob_name(mount)}"
    values = {
        "path": mount.path,
        "storage_account": mount.storage_account,
        "container": mount.container,
        "options": mount.mount_options,
        "endpoint": f"https://{mount.storage_account}.{suffix}" if suffix else None,
    }
    return [(f"{start}.{key}", value) for key, value in values.items() if value is not None]


def _environment() -> Environment:
    env = environment(assets.folder("cluster_defs/templates"))
    env.filters |= {"assigned": assignment, "prefix": prefix, "in_order": _in_order}
    return env


def _in_order(specs: tuple[SpecRef, ...]) -> list[SpecRef]:
    return sorted(specs, key=lambda spec: spec.order)


def _template(plan: Plan) -> str:
    slurm = plan.slurm
    lustre = " || ".join(f'{mount.type_parameter} == "lustre"' for mount in mounts(plan))
    return (
        _environment()
        .get_template("slurm.txt.j2")
        .render(
            plan=plan,
            slurm=slurm,
            mounts=mounts(plan),
            any_lustre=lustre,
            blob_attributes=blob_attributes(plan),
            blob_names=[_blob_name(mount) for mount in _blobs(plan)],
            slurm_pin=f":{slurm.project_version}" if slurm.pin_project else "",
            tabs=tabs(plan),
        )
    )
