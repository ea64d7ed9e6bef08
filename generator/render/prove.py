"""`jobs/prove.sh`, what it reads below `jobs/prove.d/`, and `jobs/prove.tsv` with the gates of each partition."""

from __future__ import annotations

from pathlib import PurePosixPath

from ..files import assets
from ..files.file import File, Files, text
from ..plan.deployment import Plan
from ..plan.gates import LIBRARY, PROGRAM, TABLE, GatePlan, gate_plans

_JOBS = PurePosixPath("jobs")
_LIBRARY = ("environment.sh", "verdicts.sh")
"""What `prove.sh` and the jobs have in common."""
_COLUMNS = (
    "#gate",
    "level",
    "partition",
    "constraint",
    "vm_size",
    "job",
    "min_nodes",
    "gpus_per_node",
    "minutes",
    "finder",
    "settings",
    "what",
    "reason",
    "setup",
)


def render(plan: Plan) -> Files:
    """Nothing without a cluster or without jobs."""
    if plan.slurm is None or not plan.jobs:
        return {}
    return program() | {_JOBS / TABLE: text(_table(gate_plans(plan.slurm, plan.jobs)))}


def program() -> Files:
    """What every deployment has alike."""
    source = assets.folder("recipes") / "prove"
    files: Files = {_JOBS / PROGRAM: File((source / PROGRAM).read_bytes(), executable=True)}
    for path in sorted((source / LIBRARY).iterdir()):
        files[_JOBS / LIBRARY / path.name] = File(path.read_bytes())
    for name in _LIBRARY:
        files[_JOBS / LIBRARY / name] = File((source.parent / "lib" / name).read_bytes())
    return files


def _table(gates: tuple[GatePlan, ...]) -> str:
    """One line per gate and place, tab separated; `-` where there is nothing, because a shell skips empty fields."""
    return "".join("\t".join(line) + "\n" for line in (_COLUMNS, *(_columns(gate) for gate in gates)))


def _columns(gate: GatePlan) -> tuple[str, ...]:
    return (
        gate.name,
        gate.level,
        gate.partition,
        gate.constraint or "-",
        gate.vm_size,
        gate.job or "-",
        str(gate.min_nodes),
        str(gate.gpus_per_node),
        str(gate.minutes),
        gate.finder or "-",
        " ".join(f"{name}={value}" for name, value in gate.settings) or "-",
        gate.what,
        gate.reason or "-",
        " ".join(f"{step.file}:{step.minutes}:{step.nodes}:{step.gpus_per_node}" for step in gate.setup) or "-",
    )
