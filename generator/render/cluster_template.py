"""`cluster/<cluster>.txt` and `cluster/<cluster>.params.json`: the cluster as CycleCloud imports it.

Own cluster-init projects are in the template as `[[[cluster-init project:spec:version]]]` sections, in the order of
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
from ..plan.assignment import SpecRef
from ..plan.cluster import SlurmPlan
from ..plan.deployment import Plan
from .cluster_form import prefix
from .cluster_parameters import mounts, parameters, tabs
from .templates import environment

if TYPE_CHECKING:
    from jinja2 import Environment


def render(plan: Plan) -> Files:
    """The template, its parameter file, and the rows of the policy for a cluster that runs.

    Parameters that only the deployment knows are null. Nothing without a cluster.
    """
    slurm = plan.slurm
    if slurm is None:
        return {}
    folder, name = PurePosixPath("cluster"), slurm.cluster_name
    values = {parameter.name: parameter.value for parameter in parameters(plan, slurm)}
    files = {folder / f"{name}.txt": text(_template(plan, slurm)), folder / f"{name}.params.json": json_file(values)}
    if slurm.policy is not None:
        files[folder / "policy.rows"] = text("".join(f"{row.text}\n" for row in slurm.policy.rows))
    return files


def late_parameters(plan: Plan) -> dict[str, str]:
    """Template parameter → key of the server's facts, or `secret:<name>`, in the order of the template."""
    every = parameters(plan, plan.slurm) if plan.slurm else ()
    return {parameter.name: parameter.late for parameter in every if parameter.late is not None}


def _environment() -> Environment:
    env = environment(assets.folder("cluster_defs/templates"))
    env.filters |= {"assigned": assignment, "prefix": prefix, "in_order": _in_order}
    return env


def _in_order(specs: tuple[SpecRef, ...]) -> list[SpecRef]:
    return sorted(specs, key=lambda spec: spec.order)


def _template(plan: Plan, slurm: SlurmPlan) -> str:
    printed = mounts(plan, slurm)
    lustre = " || ".join(f'{mount.type_parameter} == "lustre"' for mount in printed)
    return (
        _environment()
        .get_template("slurm.txt.j2")
        .render(
            plan=plan,
            slurm=slurm,
            proxy=plan.network.proxy,
            mounts=printed,
            any_lustre=lustre,
            node_settings=plan.node_settings,
            slurm_pin=f":{slurm.project_version}" if slurm.pin_project else "",
            tabs=tabs(plan, slurm),
        )
    )
