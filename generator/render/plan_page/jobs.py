"""The jobs of a plan with their arithmetic, and the gates that `prove.sh` runs, with what they may cost."""

from __future__ import annotations

from ...pages.shell import Block, Cell, Facts, Heading, Part, Table, Text, columns, figure, two_lines
from ...plan.deployment import Plan
from ...plan.gates import GatePlan, gate_plans
from ...plan.jobs import JobPlan
from ...plan.nccl_baselines import BaselinePlan
from ...plan.published_hours import StepHours, hours_of


def jobs(plan: Plan) -> Part | None:
    """A table of all jobs, then each with what can be calculated."""
    if not plan.jobs:
        return None
    rows = [_row(job, hours_of(plan, job)[-1]) for job in plan.jobs]
    head = columns("job", "kind", "partition", "nodes#", "GPUs#", "time limit#", "GPU hours at most#", "what")
    blocks: list[Block] = [Table(head, rows)]
    for job in plan.jobs:
        blocks += _details(job)
    intro = "GPU hours: nodes × GPUs of a node × the time limit of the last step; the job may end much earlier."
    return Part("jobs", "Jobs", tuple(blocks), intro)


def _row(job: JobPlan, hours: StepHours) -> list[Cell]:
    return [
        Cell(job.name, "name"),
        Cell(job.kind),
        Cell(job.partition),
        figure(str(hours.nodes), hours.nodes),
        figure(str(hours.gpus) if hours.gpus else "", hours.gpus or None),
        figure(f"{hours.hours:g} h", hours.hours),
        figure(f"{hours.gpu_hours:,.0f}" if hours.gpus else "", hours.gpu_hours or None),
        Cell(job.title, "long"),
    ]


def _details(job: JobPlan) -> list[Block]:
    blocks: list[Block] = []
    steps = [f"{step.title}: {_step(dict(step.options))}" for step in job.steps] if len(job.steps) > 1 else []
    if job.baselines:
        told = "nodes", "message", "figure", "algorithm", "expected#", "warns below#", "fails below#"
        head = columns("floor", *told, "formula, and source")
        blocks.append(Table(head, [_baseline(each) for each in job.baselines]))
    elif job.baselines is not None:
        blocks.append(
            Text("No figure is published for this VM size: judged by the medians of the fleet and of earlier runs.")
        )
    if job.checkpoint is not None:
        blocks.append(Facts((*_memory(job), *_checkpoint(job))))
    if steps:
        blocks.append(Facts((("steps", "; ".join(steps)),)))
    return [Heading(job.name), *blocks] if blocks else []


def _step(options: dict[str, str | int | bool]) -> str:
    return f"{options.get('nodes', 1)} × {options.get('partition', '')}, at most {options.get('time', 'no limit')}"


def _baseline(each: BaselinePlan) -> list[Cell]:
    def gb_per_s(value: float | None) -> Cell:
        return figure("" if value is None else f"{value:g} GB/s", value)

    return [
        Cell(each.kind, "name"),
        Cell(f"{each.nodes}{' or more' if each.or_more else ''}", "", str(each.nodes)),
        Cell(f"{each.message_size}{' or larger' if each.or_larger else ''}"),
        Cell(each.metric),
        Cell(", ".join(each.algorithms) or "any"),
        gb_per_s(each.expected),
        gb_per_s(each.warn),
        gb_per_s(each.fail),
        Cell(two_lines(each.formula or "", each.source), "long"),
    ]


def _memory(job: JobPlan) -> list[tuple[str, str]]:
    """What a GPU holds, in GB of 10^9 bytes."""
    found = job.memory
    if found is None:
        return []
    parts = {
        "weights": found.weights_bytes,
        "gradients": found.gradients_bytes,
        "optimizer": found.optimizer_bytes,
        "activations": found.activations_bytes,
    }
    told = " + ".join(f"{name} {size / 1e9:.1f}" for name, size in parts.items())
    sums = f"{found.needed_bytes / 1e9:.1f} of {found.usable_bytes / 1e9:.1f} GB"
    return [("memory of a GPU", f"{told} = {sums}")]


def _checkpoint(job: JobPlan) -> list[tuple[str, str]]:
    found = job.checkpoint
    if found is None:
        return []
    size = f"{found.checkpoint_bytes / 1e9:,.0f} GB"
    rows = [("checkpoint", f"{found.parameters:,} parameters × {found.bytes_per_parameter} bytes = {size}")]
    if not found.is_written:
        return [*rows, ("", "not written by this job")]
    needed = f"{found.kept} kept × {size} = {found.needed_bytes / 1e12:,.2f} TB"
    if found.capacity_bytes:
        needed += f" of {found.capacity_bytes / 1e12:,.1f} TB ({found.needed_bytes / found.capacity_bytes:.1%})"
    rows.append(("space", needed))
    rate = min((each for each in (found.bandwidth_gb_per_s, found.file_gb_per_s) if each), default=None)
    if found.seconds_per_checkpoint is not None and rate:
        rows.append(("time", f"{size} / {rate:g} GB/s = {found.seconds_per_checkpoint:,.0f} s each, at least"))
    if found.interval_s is not None and found.failure_s is not None:
        minutes, hours = found.interval_s / 60, found.failure_s / 3600
        told = f"{minutes:,.0f} minutes lose least, with a failure each {hours:,.0f} h (Young, Daly)"
        rows.append(("interval", told))
    return rows


def proof(plan: Plan) -> Part | None:
    """A table of each partition with its gates; of several VM sizes, one of each."""
    if plan.slurm is None:
        return None
    places: dict[tuple[str, str], list[GatePlan]] = {}
    for gate in gate_plans(plan.slurm, plan.jobs):
        places.setdefault((gate.partition, gate.vm_size), []).append(gate)
    blocks: list[Block] = []
    for (partition, vm_size), gates in places.items():
        blocks.append(Heading(f"{partition}, {vm_size.removeprefix('Standard_')}"))
        head = columns("gate", "level", "job", "nodes at least#", "at most#", "GPU hours of a node#", "what")
        blocks.append(Table(head, [_gate(gate) for gate in gates]))
    intro = "prove.sh runs the gates of a level one after the other; standard includes quick, burn includes both."
    return Part("gates", "Proof", tuple(blocks), intro) if blocks else None


def _gate(gate: GatePlan) -> list[Cell]:
    if gate.job is None:
        nothing = figure("", None)
        reason = f"not proven: {gate.reason}"
        return [Cell(gate.name, "name"), Cell(gate.level), Cell(""), nothing, nothing, nothing, Cell(reason, "long")]
    hours = gate.gpus_per_node * gate.minutes / 60
    return [
        Cell(gate.name, "name"),
        Cell(gate.level),
        Cell(gate.job, "short"),
        figure(str(gate.min_nodes), gate.min_nodes),
        figure(f"{gate.minutes} min", gate.minutes),
        figure(f"{hours:g}" if hours else "", hours or None),
        Cell(gate.what, "long"),
    ]
