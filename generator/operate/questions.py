"""Questions that change nothing: `preflight`, `what-if`, `diff --deployed` and `cost`; and what preflight can fix."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING

from ..errors import CannotRead
from ..plan.deployment import Plan
from ..prices.costs import Costs, addresses_of, costs_of, currencies
from ..prices.service import PriceList, kept_prices
from .built import Built, difference

if TYPE_CHECKING:
    from ..azure.check import Remedy
    from ..azure.drift import Drift
    from ..azure.preflight import Fixed, Report
    from ..azure.session import Session
    from ..azure.what_if import WhatIf


def preflight(found: Built, session: Session) -> Report:
    """Ask Azure everything anew. What could not be asked is in the report."""
    from ..azure.check import Local
    from ..azure.preflight import preflight as ask
    from ..azure.reader import Reader

    with closing(Reader(session)) as reader:
        return ask(found.plan, reader, Local(found.folder, os.environ, partial(difference, found)))


def remedies(report: Report) -> tuple[Remedy, ...]:
    """Return what `fix` can do about the findings."""
    from ..azure import preflight as fixing

    return fixing.remedies(report.findings)


def fix(wanted: Sequence[Remedy], session: Session, say: Callable[[Fixed], None]) -> tuple[Fixed, ...]:
    """Carry out all remedies at once; `say` hears how each has ended."""
    from ..azure import preflight as fixing
    from ..azure.writer import Writer

    with closing(Writer(session)) as writer:
        return fixing.fix(wanted, writer, say)


def what_if(found: Built, subscription: str | None = None) -> WhatIf:
    """Ask Azure what deploying the built folder would do. Raises AzureRefused."""
    from ..azure.what_if import predicted
    from . import asking

    with asking.reader(found.plan, asking.session_of(found.plan, subscription)) as reader:
        return predicted(found.plan, reader, found.folder, os.environ)


def drift(found: Built, subscription: str | None = None) -> Drift:
    """Compare what Azure has with the built folder. Raises AzureRefused."""
    from ..azure import deployment
    from ..azure.drift import drift as compared
    from ..azure.what_if import predicted
    from . import asking

    plan = found.plan
    with asking.reader(plan, asking.session_of(plan, subscription)) as reader:
        last = deployment.last(plan, reader)
        answer = predicted(plan, reader, found.folder, os.environ)
    return compared(plan, answer, last, deployment.content_of(found.folder))


def currency_of(word: str) -> str:
    """Return the code that the price list has for a currency. Raises CannotRead."""
    code = word.upper()
    if code not in currencies():
        raise CannotRead(f"the price list has no currency '{word}'", f"it has {', '.join(currencies())}")
    return code


def costs(plan: Plan, currency: str = "USD", *, refresh: bool = False) -> Costs:
    """Ask the price list, where today's prices are not known, and add up. Raises CannotRead."""
    _must_be_public(plan)
    return costs_of(plan, PriceList(kept_prices(os.environ)), currency, refresh=refresh)


def addresses(plan: Plan, currency: str) -> list[str]:
    """Return the addresses that `costs` asks. Raises CannotRead."""
    _must_be_public(plan)
    return addresses_of(plan, currency)


def _must_be_public(plan: Plan) -> None:
    if plan.cloud != "public":
        raise CannotRead(
            f"Azure publishes no price list for the cloud of {plan.location}", "its portal has a pricing calculator"
        )
