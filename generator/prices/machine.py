"""Costs as plain data with stable keys."""

from __future__ import annotations

from ..plan.billed import NOT_COUNTED
from .costs import Cost, Costs, JobCost, hours_per_month


def as_json(costs: Costs) -> dict[str, object]:
    """Amounts are in `currency`, unrounded; `null` where no price was found."""
    return {
        "currency": costs.currency,
        "region": costs.region,
        "price_days": list(costs.days),
        "failures": list(costs.failures),
        "hours_per_month": hours_per_month(),
        "billed": [_row(row) for row in costs.rows],
        "together": {
            each.state: {"per_hour": each.per_hour, "per_month": each.per_month, "without_price": list(each.missing)}
            for each in costs.sums
        },
        "training_jobs": [_job(job) for job in costs.jobs],
        "not_counted": list(NOT_COUNTED),
    }


def _row(row: Cost) -> dict[str, object]:
    each = row.billed
    return {
        "title": each.title,
        "what": each.what,
        "quantity": each.quantity,
        "since": each.since,
        "state": row.price.state,
        "per_hour": row.per_hour,
        "meter": row.price.meter or None,
        "reason": row.price.reason or None,
    }


def _job(job: JobCost) -> dict[str, object]:
    found = job.published
    at_published_speed = {
        "gpu_hours": found.gpu_hours,
        "amount": job.published_amount,
        "tokens": found.tokens,
        "figure": found.metric,
        "published": found.published,
        "published_on_gpus": found.gpus,
    }
    return {
        "job": job.name,
        "node_hours": job.node_hours,
        "gpu_hours": job.gpu_hours,
        "amount": job.amount,
        "at_published_speed": None if found.reason else at_published_speed,
        "reason": found.reason or None,
    }
