"""Settings of a job: the recipe's defaults, what the VM size decides, and what the plan overrides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .. import catalog
from ..catalog.sizes import VmSize
from ..plan.storage import working_mount
from ..plan.types import JobPlan, NodeArrayPlan, Plan
from . import Recipe, models

_NVME_ATTRIBUTE = "cycleforge.nvme.mount_point"


def job_settings(plan: Plan, job: JobPlan, array: NodeArrayPlan, recipe: Recipe) -> dict[str, str]:
    """All settings of a job; a setting of the plan that differs from the recipe's default decides."""
    defaults = dict(recipe.default_settings)
    overrides = {name: _switch(defaults.get(name), value) for name, value in job.settings}
    overrides = {name: value for name, value in overrides.items() if defaults.get(name) != value}
    settings = defaults | _common(plan, job, array)
    if recipe.name == "nccl-allreduce":
        settings |= baseline(array.hardware.name, job.nodes, overrides.get("MESSAGE_SIZE"))
    if recipe.name == "node-health":
        settings |= expectations(array.hardware)
    if recipe.models:
        settings |= _model_settings(
            overrides.get("MODEL") or _fitting_model(recipe, array.hardware, job.nodes), array.hardware, job.nodes
        )
    return settings | overrides


def _switch(default: str | None, value: str) -> str:
    """A YAML boolean as the scripts read it, for settings that are switches."""
    return {"true": "1", "false": "0"}.get(value, value) if default in ("0", "1") else value


def nccl_variables(hardware: VmSize) -> dict[str, str]:
    """NCCL, UCX and SHARP variables of the VM size, with the topology files it has."""
    variables = dict(hardware.nccl_env)
    if hardware.nccl_topo_file:
        variables.setdefault("NCCL_TOPO_FILE", hardware.nccl_topo_file)
    if hardware.nccl_graph_file:
        variables.setdefault("NCCL_GRAPH_FILE", hardware.nccl_graph_file)
    return variables


def stage_path(plan: Plan) -> str:
    """Where images, data and checkpoints go."""
    return working_mount(plan.home, plan.mounts).path


def _common(plan: Plan, job: JobPlan, array: NodeArrayPlan) -> dict[str, str]:
    hardware = array.hardware
    tasks = hardware.tasks_per_node or hardware.gpu_count or 1
    cpus = hardware.cpus_per_task or (hardware.vcpus // tasks if hardware.vcpus else None)
    mount_point = dict(array.attributes).get(_NVME_ATTRIBUTE)
    return {
        "CPUS_PER_TASK": _text(cpus),
        "CPU_BIND": "mask_cpu:" + ",".join(hardware.cpu_masks) if hardware.cpu_masks else "none",
        "GPUS_PER_NODE": str(hardware.gpu_count),
        "GPU_VENDOR": hardware.gpu_vendor or "",
        "JOB": job.name,
        "NODES": str(job.nodes),
        "NVME_MOUNT": str(mount_point) if mount_point and hardware.nvme_count else "",
        "PARTITION": array.partition,
        "RECIPE": job.recipe,
        "SHARED_DIR": plan.home.path,
        "STAGE_PATH": f"{dict(job.settings).get('DATA_DIR') or stage_path(plan)}/{job.name}",
        "TASKS_PER_NODE": str(tasks),
        "VCPUS": _text(hardware.vcpus),
        "VM_SIZE": hardware.name,
    }


# ---------------------------------------------------------------- NCCL


def baseline(vm_size: str, nodes: int, message_size: str | None = None) -> dict[str, str]:
    """The published NCCL figure that this run may be judged by; all empty when there is none.

    A row counts for its node count only, unless its source says that the floor holds from that count on.
    Among several the one with a warning level decides, then the larger message.
    """
    rows = [row for row in _nccl_rows(vm_size) if _applies(row, nodes)]
    if message_size is not None:
        rows = [row for row in rows if row["message_size"] == message_size]
    row = max(rows, key=_preference, default=None)
    if row is None:
        return dict.fromkeys((f"BASELINE_{name}" for name in _BASELINE_NAMES), "")
    # A published floor stands for a failure where the source names no lower one.
    fail = row["fail"] if row["fail"] is not None else row.get("published_floor")
    return {
        "BASELINE_ALGORITHM": _algorithm(row["algorithm"]),
        "BASELINE_EXPECTED": _text(row["expected"]),
        "BASELINE_FAIL": _text(fail),
        "BASELINE_MESSAGE_SIZE": row["message_size"],
        "BASELINE_METRIC": "avg busbw" if row["metric"].startswith("avg") else "busbw",
        "BASELINE_SOURCE": " ".join(row["source"]),
        "BASELINE_WARN": _text(row["warn"]),
        "MESSAGE_SIZE": row["message_size"],
    }


def judged_nodes(vm_size: str, at_most: int) -> int | None:
    """The smallest number of nodes, two or more, that a published figure judges; None when none is within reach."""
    counts = sorted({row["nodes"] for row in _nccl_rows(vm_size) if row["nodes"] and _applies(row, row["nodes"])} - {1})
    return next((count for count in counts if count <= at_most), None)


_BASELINE_NAMES = ("ALGORITHM", "EXPECTED", "FAIL", "MESSAGE_SIZE", "METRIC", "SOURCE", "WARN")


def _nccl_rows(vm_size: str) -> list[Mapping[str, Any]]:
    return [row for row in catalog.vm_size(vm_size).nccl if row["warn"] is not None or row["fail"] is not None]


def _applies(row: Mapping[str, Any], nodes: int) -> bool:
    if nodes == 1:
        # A clock lock that this job does not set belongs to some rows.
        return row["scope"] == "single_node" and "clock locked" not in row.get("note", "")
    if row["scope"] != "multi_node_infiniband" or row["nodes"] is None:
        return False
    return bool(nodes == row["nodes"] or ("published_floor" in row and nodes >= row["nodes"]))


def _preference(row: Mapping[str, Any]) -> tuple[bool, int]:
    return (row["warn"] is not None, int(row["message_size"].removesuffix("G")))


def _algorithm(stated: str | None) -> str:
    """The word that the job reads from NCCL's log; empty when the source states none."""
    lower = (stated or "").lower()
    return next((word for word in ("collnet", "nvls") if word in lower), "")


# ---------------------------------------------------------------- node health


def expectations(hardware: VmSize) -> dict[str, str]:
    """What a healthy node of the size shows; empty where nobody published it."""
    return {
        # Sizes without a configuration on main: the checks print "not supported" and end with 0.
        "EXPECT_AZNHC": "1" if hardware.aznhc else "",
        "EXPECT_GPUS": str(hardware.gpu_count) if hardware.gpu_count else "",
        "EXPECT_IB_GBPS": _text(hardware.infiniband_gbps_per_nic) if hardware.infiniband else "",
        "EXPECT_IB_PORTS": str(hardware.infiniband_nics) if hardware.infiniband else "",
        "EXPECT_MEMORY_KIB": _text(hardware.guest_memory_kib),
        "EXPECT_NVME": str(hardware.nvme_count) if hardware.nvme_count else "",
        "EXPECT_VCPUS": _text(hardware.vcpus),
        "MEMORY_TOLERANCE_PERCENT": _text(hardware.guest_memory_tolerance_percent),
    }


# ---------------------------------------------------------------- models


def _fitting_model(recipe: Recipe, hardware: VmSize, nodes: int) -> str:
    """The recipe's model, or its largest preset that fits these nodes."""
    shape = models.largest_fitting_model(recipe, hardware, nodes)
    return shape.name if shape else str(recipe.default_model)


def _model_settings(name: str, hardware: VmSize, nodes: int) -> dict[str, str]:
    shape = models.model(name)
    if shape is None:
        return {"MODEL": name}
    settings = {
        "HIDDEN_SIZE": str(shape.hidden),
        "MODEL": shape.name,
        "NUM_ATTENTION_HEADS": str(shape.heads),
        "NUM_LAYERS": str(shape.layers),
        "SEQUENCE": str(shape.sequence),
        "VOCABULARY": str(shape.vocabulary),
    }
    gpus = hardware.gpu_count * nodes
    if shape.family == "llm-foundry":
        settings["GLOBAL_BATCH"] = _text(models.llm_foundry_global_batch(shape, gpus)) if gpus else ""
        settings["MICRO_BATCH"] = _text(models.llm_foundry_microbatch(shape, gpus)) if gpus else ""
        return settings
    layout = None
    if hardware.gpu_count and hardware.gpu_memory_gb is not None:
        layout = models.parallelism(shape, hardware.gpu_count, nodes, hardware.gpu_memory_gb)
    # Empty values stop the job at its start: it cannot run on these nodes.
    settings["TENSOR_PARALLEL"] = _text(layout.tensor if layout else None)
    settings["PIPELINE_PARALLEL"] = _text(layout.pipeline if layout else None)
    settings["GLOBAL_BATCH"] = _text(models.megatron_global_batch(shape, layout) if layout else None)
    return settings


def _text(value: float | str | None) -> str:
    return "" if value is None else str(value)
