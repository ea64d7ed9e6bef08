"""`jobs/prove.sh`, what it reads below `jobs/prove.d/`, and `jobs/prove.tsv` with the gates of each partition."""

from __future__ import annotations

from collections.abc import Callable

from ..files import assets
from ..files.file import File, Files, text
from ..plan.deployment import Plan
from ..plan.gates import LIBRARY, PROGRAM, TABLE, GatePlan, gate_plans
from .jobs import JOBS, table

_LIBRARY = ("environment.sh", "verdicts.sh")
"""What `prove.sh` and the jobs have in common."""
_COLUMNS: dict[str, Callable[[GatePlan], object]] = {
    "gate": lambda gate: gate.name,
    "level": lambda gate: gate.level,
    "partition": lambda gate: gate.partition,
    "constraint": lambda gate: gate.constraint,
    "vm_size": lambda gate: gate.vm_size,
    "job": lambda gate: gate.job,
    "min_nodes": lambda gate: gate.min_nodes,
    "gpus_per_node": lambda gate: gate.gpus_per_node,
    "minutes": lambda gate: gate.minutes,
    "finder": lambda gate: gate.finder,
    "settings": lambda gate: " ".join(f"{name}={value}" for name, value in gate.settings),
    "what": lambda gate: gate.what,
    "reason": lambda gate: gate.reason,
    "setup": lambda gate: " ".join(f"{s.file}:{s.minutes}:{s.nodes}:{s.gpus_per_node}" for s in gate.setup),
}


def render(plan: Plan) -> Files:
    """Nothing without a cluster or without jobs."""
    if plan.slurm is None or not plan.jobs:
        return {}
    return program() | {JOBS / TABLE: text(table(_COLUMNS, gate_plans(plan.slurm, plan.jobs)))}


def program() -> Files:
    """What every deployment has alike."""
    source = assets.folder("recipes") / "prove"
    files: Files = {JOBS / PROGRAM: File((source / PROGRAM).read_bytes(), executable=True)}
    for path in sorted((source / LIBRARY).iterdir()):
        files[JOBS / LIBRARY / path.name] = File(path.read_bytes())
    for name in _LIBRARY:
        files[JOBS / LIBRARY / name] = File((source.parent / "lib" / name).read_bytes())
    return files
