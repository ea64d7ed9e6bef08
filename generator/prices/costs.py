"""What a plan costs by the hour: each thing that is billed with its price, and the sums of three states.

Also what is billed now, and all of it as plain data with stable keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import get_args

from msgspec import Struct

from .. import catalog
from ..plan.billed import NOT_COUNTED, billed
from ..plan.billing import Billed
from ..plan.deployment import Plan
from ..plan.fleet import Since
from ..plan.jobs import JobPlan
from ..plan.published_hours import PublishedHours, hours_of, published_hours
from .price import Price, Query, own_items, price_of, query
from .service import Answered, PriceList

STATES: tuple[Since, ...] = get_args(Since)
"""In the order in which each holds everything of those before it."""
NO_METER = Price("unknown", reason="its meter is unknown: the definition sets the disk itself")


class Cost(Struct, frozen=True):
    billed: Billed
    price: Price

    @property
    def per_hour(self) -> float | None:
        """Of all of it; None where no price was found."""
        return None if self.price.per_hour is None else self.price.per_hour * self.billed.quantity


class Sum(Struct, frozen=True):
    """What everything that is billed in a state costs."""

    state: Since
    per_hour: float | None
    """None: nothing in it has a price."""
    missing: tuple[str, ...]
    """Titles of what has no price, so that the sum is a lower bound."""

    @property
    def per_month(self) -> float | None:
        return None if self.per_hour is None else self.per_hour * hours_per_month()


class JobCost(Struct, frozen=True):
    """What all steps of a training job cost if each takes its whole time limit, and the training at published speed.

    Amounts are those of the nodes alone, in the currency; None where a price is missing.
    """

    name: str
    node_hours: float
    gpu_hours: float
    amount: float | None
    published: PublishedHours
    published_amount: float | None
    """None also where no speed is published, or the number of steps is unknown."""


class Costs(Struct, frozen=True):
    currency: str
    region: str
    rows: tuple[Cost, ...]
    sums: tuple[Sum, ...]
    jobs: tuple[JobCost, ...]
    days: tuple[str, ...]
    """The days of the prices used, sorted."""
    failures: tuple[str, ...]
    """Why prices were not got, or not got today; sorted, each once."""


def hours_per_month() -> int:
    """The hours of a month, as Azure's calculator counts them."""
    return int(catalog.meters().month.hours)


def currencies() -> Sequence[str]:
    return catalog.meters().price_list.currencies


def costs_of(plan: Plan, price_list: PriceList, currency: str, *, refresh: bool = False) -> Costs:
    """Ask the price list for all that the plan is billed for, unless today's answer is kept; `refresh` asks anyway."""
    things = billed(plan)
    queries = [_query(each, plan.location, currency) for each in things]
    answers = price_list.ask((asked for asked in queries if asked is not None), refresh=refresh)
    rows = tuple(Cost(each, _price(each, asked, answers)) for each, asked in zip(things, queries, strict=True))
    used = [answered for answered in answers.values() if answered.answer is not None]
    return Costs(
        currency=currency,
        region=plan.location,
        rows=rows,
        sums=tuple(_sum(state, rows) for state in STATES),
        jobs=tuple(_job(plan, job, rows) for job in plan.jobs if job.kind == "training"),
        days=tuple(sorted({answered.answer.day for answered in used if answered.answer})),
        failures=tuple(sorted({answered.failure for answered in answers.values() if answered.failure})),
    )


def addresses_of(plan: Plan, currency: str) -> list[str]:
    """What `costs_of` asks, in the order of what is billed; where an answer has a `NextPageLink`, it asks that, too."""
    queries = (_query(each, plan.location, currency) for each in billed(plan))
    return list(dict.fromkeys(asked.address for asked in queries if asked is not None))


def _query(each: Billed, region: str, currency: str) -> Query | None:
    return None if each.meter is None else query(each.meter, each.words, region, currency)


def _price(each: Billed, asked: Query | None, answers: Mapping[str, Answered]) -> Price:
    if asked is None:
        return NO_METER
    answered = answers[asked.address]
    if answered.answer is None:
        return Price("unknown", reason="the price list was not reached")
    return price_of(own_items(asked, answered.answer.items), each.quantity)


def _job(plan: Plan, job: JobPlan, rows: Iterable[Cost]) -> JobCost:
    nodes = {
        (each.partition, each.vm_size): row.price.per_hour for row in rows if (each := row.billed.machines) is not None
    }
    steps = hours_of(plan, job)
    prices = [nodes[step.array.partition, step.array.vm_size] for step in steps]
    amounts = [step.node_hours * price for step, price in zip(steps, prices, strict=True) if price is not None]
    published = published_hours(job)
    training, price = steps[-1], prices[-1]
    node_hours = published.gpu_hours / training.array.hardware.gpu_count if published.gpu_hours else None
    return JobCost(
        job.name,
        sum(step.node_hours for step in steps),
        sum(step.gpu_hours for step in steps),
        sum(amounts) if len(amounts) == len(steps) else None,
        published,
        None if price is None or node_hours is None else node_hours * price,
    )


def _sum(state: Since, rows: Iterable[Cost]) -> Sum:
    counted = [row for row in rows if STATES.index(row.billed.since) <= STATES.index(state)]
    found = [row.per_hour for row in counted if row.per_hour is not None]
    return Sum(state, sum(found) if found else None, tuple(row.billed.title for row in counted if row.per_hour is None))


class Spending(Struct, frozen=True):
    currency: str
    per_hour: float
    missing: tuple[str, ...]
    """Titles of what is there and has no price: the sum is a lower bound."""
    not_known: tuple[str, ...]
    """Titles of what exists in an unknown number."""


def spending(costs: Costs, there: Callable[[Billed], int | None]) -> Spending:
    """`there` says how many of a thing there are now; None where that is not known."""
    total, missing, not_known = 0.0, [], []
    for row in costs.rows:
        count = there(row.billed)
        if count is None:
            not_known.append(row.billed.title)
        elif count and row.price.per_hour is None:
            missing.append(row.billed.title)
        elif count:
            total += count * (row.price.per_hour or 0.0)
    return Spending(costs.currency, total, tuple(dict.fromkeys(missing)), tuple(dict.fromkeys(not_known)))


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
        "training_jobs": [_job_row(job) for job in costs.jobs],
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


def _job_row(job: JobCost) -> dict[str, object]:
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
