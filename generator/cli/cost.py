"""`cycleforge cost`."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, ProblemsFound
from . import common

if TYPE_CHECKING:
    from ..operate.questions import Costs

DESCRIPTION = """\
Show what a deployment costs by the hour and month: stopped, idle, and with every partition full; for each billed item,
and for each training job, up to its time limit and at the published speed of its model.

Prices are those of Azure's public price list, without the discounts of an agreement, and are kept for a day. Your
subscription is not contacted. What has no price in the list is marked and left out of the sums.

The exit code is 0 when everything has a price, 1 when something has none, and 4 when the price list cannot be reached.
"""


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAME", "--all")
    parser.add_argument("--currency", metavar="CODE", default="USD", help="USD (default), EUR, …")
    parser.add_argument("--refresh", action="store_true", help="ask again, even for prices of today")
    parser.add_argument("--print", action="store_true", help="print the `curl` lines that ask the same")
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    from ..operate.questions import addresses, costs, currency_of

    currency = currency_of(args.currency)
    plan = common.read_one(args).plan
    if args.print:
        lines = (["curl", "--fail", "--silent", "--show-error", each] for each in addresses(plan, currency))
        common.emit("\n".join(map(shlex.join, lines)))
        return OK
    found = costs(plan, currency, refresh=args.refresh)
    if args.json:
        from ..prices.costs import as_json

        common.emit_json(as_json(found))
    else:
        from ..prices.text import text

        common.emit(text(found, plan.definition_name))
    return _exit_code(found)


def _exit_code(costs: Costs) -> int:
    for failure in costs.failures:
        used = "older prices are used" if costs.days else "there are no older prices on this machine"
        common.say(f"warning: the price list was not reached: {failure}; {used}")
    if costs.failures:
        return AzureRefused.exit_code
    return ProblemsFound.exit_code if costs.sums[-1].missing else OK
