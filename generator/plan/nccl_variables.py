"""Variables of NCCL, UCX and SHARP: those of the machine, and what benchmarks or training add to them.

CollNet and SHARP belong to benchmarks: in training `NCCL_COLLNET_ENABLE` would hold for every group of GPUs, so a
training job has them only if it asks (`USE_SHARP`).
Source: NVIDIA/Megatron-LM, megatron/core/parallel_state.py, `use_sharp`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..catalog.sizes import VmSize
from ..recipes import Kind

_ASKS_FOR_SHARP = "USE_SHARP"


def of_job(hardware: VmSize, kind: Kind) -> dict[str, str]:
    """What every job of the kind sets, with the topology files that the size has."""
    variables = dict(hardware.nccl_env)
    if hardware.nccl_topo_file:
        variables.setdefault("NCCL_TOPO_FILE", hardware.nccl_topo_file)
    if hardware.nccl_graph_file:
        variables.setdefault("NCCL_GRAPH_FILE", hardware.nccl_graph_file)
    if kind == "training":
        return variables | dict(hardware.nccl_training_env)
    return variables | dict(hardware.nccl_benchmark_env) | dict(hardware.nccl_sharp_env)


def for_sharp(hardware: VmSize, kind: Kind, settings: Mapping[str, str]) -> dict[str, str]:
    """What a training job adds when its setting `USE_SHARP` is 1; nothing for a job that has them anyway."""
    return dict(hardware.nccl_sharp_env) if kind == "training" and _ASKS_FOR_SHARP in settings else {}
