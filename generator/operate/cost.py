"""`cost`: what a deployment costs at public prices."""

from __future__ import annotations

import os

from ..errors import CannotRead
from ..plan.deployment import Plan
from ..prices.costs import Costs, addresses_of, costs_of, currencies
from ..prices.service import PriceList, kept_prices


def currency_of(word: str) -> str:
    """Its code in the price list. Raises CannotRead."""
    code = word.upper()
    if code not in currencies():
        raise CannotRead(f"the price list has no currency '{word}'", f"it has {', '.join(currencies())}")
    return code


def costs(plan: Plan, currency: str = "USD", *, refresh: bool = False) -> Costs:
    """Ask the price list, where today's prices are not known, and add up. Raises CannotRead."""
    _must_be_public(plan)
    return costs_of(plan, PriceList(kept_prices(os.environ)), currency, refresh=refresh)


def addresses(plan: Plan, currency: str) -> list[str]:
    """What would be asked."""
    _must_be_public(plan)
    return addresses_of(plan, currency)


def _must_be_public(plan: Plan) -> None:
    if plan.cloud != "public":
        raise CannotRead(
            f"Azure publishes no price list for the cloud of {plan.location}", "its portal has a pricing calculator"
        )
