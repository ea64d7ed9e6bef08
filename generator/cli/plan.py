"""`cycleforge plan`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ..errors import OK
from . import common

DESCRIPTION = "Show what a definition results in. Nothing is written, and Azure is not contacted."


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    common.add_definitions(parser, many=False)
    common.add_all(parser)
    common.add_json(parser)


def run(args: Namespace) -> int:
    """Print the plan."""
    definition = common.read_definitions([args.name])[0]
    plan = definition.checked.plan
    if plan is None and args.json:
        common.emit_json({"ok": False, "problems": common.problems_json([definition])})
    if not args.json:
        common.print_problems([definition], args)
    if plan is None:
        return common.exit_code([definition])
    if args.json:
        from ..pipeline import effective

        common.emit_json(effective(plan))
    else:
        from .plan_text import plan_text

        common.emit(plan_text(plan))
    return OK
