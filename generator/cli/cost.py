"""`cycleforge cost`."""

from __future__ import annotations

import os
import shlex
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, CannotRead, ProblemsFound
from . import common

if TYPE_CHECKING:
    from ..prices.costs import Costs

DESCRIPTION = """\
Show what a deployment costs by the hour and month: stopped, idle, and with every partition full; for each thing that is
billed, and for each training job: until its time limit, and at the speed that is published for its model.

Prices are those of Azure's public price list, without the discounts of an agreement, and are kept for a day. Nothing is
asked of your subscription. What has no price there is shown as such and left out of the sums.

The exit code is 0 when everything has a price, 1 when something has none, and 4 when the price list cannot be reached.
"""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    common.add_definitions(parser, many=False)
    common.add_all(parser)
    parser.add_argument("--currency", metavar="CODE", default="USD", help="USD (default), EUR, …")
    parser.add_argument("--refresh", action="store_true", help="ask again, also for prices of today")
    parser.add_argument("--print", action="store_true", help="print the `curl` lines that ask the same")
    common.add_json(parser)


def run(args: Namespace) -> int:
    """Ask, add up, show."""
    from ..prices.costs import addresses_of, costs_of, currencies
    from ..prices.kept import kept_prices
    from ..prices.service import PriceList

    currency = args.currency.upper()
    if currency not in currencies():
        raise CannotRead(f"the price list has no currency '{args.currency}'", f"it has {', '.join(currencies())}")
    plan = common.read_one(args).plan
    if plan.cloud != "public":
        raise CannotRead(
            f"Azure publishes no price list for the cloud of {plan.location}",
            "its portal has a pricing calculator",
        )
    if args.print:
        asked = addresses_of(plan, currency)
        common.emit("\n".join(shlex.join(["curl", "--fail", "--silent", "--show-error", each]) for each in asked))
        return OK
    costs = costs_of(plan, PriceList(kept_prices(os.environ)), currency, refresh=args.refresh)
    if args.json:
        from ..prices.machine import as_json

        common.emit_json(as_json(costs))
    else:
        from ..prices.text import text

        common.emit(text(costs, plan.definition_name))
    return _exit_code(costs)


def _exit_code(costs: Costs) -> int:
    for failure in costs.failures:
        used = "older prices are used" if costs.days else "there are no older prices on this machine"
        print(f"warning: the price list was not reached: {failure}; {used}", file=sys.stderr)
    if costs.failures:
        return AzureRefused.exit_code
    return ProblemsFound.exit_code if costs.sums[-1].missing else OK
