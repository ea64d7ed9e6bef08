"""Costs as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator

from ..plan.billed import NOT_COUNTED
from ..plan.fleet import Since
from ..words.counts import counted
from ..words.terminal import columns
from .costs import STATES, Cost, Costs, JobCost, hours_per_month

TITLES: dict[Since, str] = {
    "deployed": "as long as the deployment exists",
    "started": "as long as the cluster runs",
    "full": "while every partition is full",
}
_SUMS: dict[Since, str] = {"deployed": "stopped", "started": "idle", "full": "every partition full"}


def text(costs: Costs, name: str) -> str:
    """Everything: what is billed and when, the sums, the training jobs, and what is not counted."""
    return "\n".join(_parts(costs, name))


def _parts(costs: Costs, name: str) -> Iterator[str]:
    day = f"prices of {' and '.join(costs.days)}" if costs.days else "no prices"
    yield f"{name} in {costs.region}: {day}, {costs.currency}, pay as you go\n"
    for state in STATES:
        rows = [row for row in costs.rows if row.billed.since == state]
        if rows:
            yield f"{TITLES[state]}\n{columns([_row(row) for row in rows], indent='  ')}"
    sums = [("", "an hour", f"a month of {hours_per_month()} hours", "")]
    for each in costs.sums:
        more = f"and {counted(len(each.missing), 'thing')} without a price" if each.missing else ""
        sums.append((_SUMS[each.state], _amount(each.per_hour), _amount(each.per_month), more))
    yield f"together\n{columns(sums, indent='  ')}"
    if costs.jobs:
        jobs = [("job", "node hours", "GPU hours", costs.currency)]
        for job in costs.jobs:
            jobs.append((job.name, f"{job.node_hours:,.0f}", f"{job.gpu_hours:,.0f}", _amount(job.amount)))
        yield f"training jobs, all steps to their time limits\n{columns(jobs, indent='  ')}"
        speeds = [("job", "", "GPU hours", costs.currency, ""), *(_published(job) for job in costs.jobs)]
        yield f"training alone, at published speed\n{columns(speeds, indent='  ')}"
    yield "not counted\n" + "".join(f"  {line}\n" for line in NOT_COUNTED)


def _published(job: JobCost) -> tuple[str, str, str, str, str]:
    found = job.published
    if found.reason:
        return job.name, "", "?", "?", found.reason
    speed = f"{found.metric} {found.published:g} on {counted(found.gpus, 'GPU')}"
    tokens = f"{found.tokens / 1e9:,.2f} billion tokens"
    return job.name, tokens, f"{found.gpu_hours:,.1f}", _amount(job.published_amount), speed


def _row(row: Cost) -> tuple[str, str, str, str]:
    each = row.billed
    number = f"{each.quantity:,} × " if each.quantity > 1 and "TiB" not in each.what else ""
    if row.per_hour is None:
        return each.title, f"{number}{each.what}", _amount(None), row.price.reason
    return each.title, f"{number}{each.what}", _amount(row.per_hour), row.price.meter


def _amount(value: float | None) -> str:
    if value is None:
        return "?"
    return f"{value:,.2f}" if value >= 0.1 else f"{value:,.4f}"
