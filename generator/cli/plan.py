"""`cycleforge plan`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ..errors import OK
from . import common

DESCRIPTION = "Show what a definition results in. Only --html writes anything, and Azure is not contacted."


def add_arguments(parser: ArgumentParser) -> None:
    common.add_definitions(parser, many=False)
    common.add_all(parser)
    parser.add_argument(
        "--html",
        metavar="FILE",
        nargs="?",
        const="",
        help="write the plan as one HTML page: picture, subnets, roles, sizes, checks, jobs (default: NAME-plan.html)",
    )
    common.add_json(parser)


def run(args: Namespace) -> int:
    plan = common.read_one(args).plan
    if args.html is not None:
        from ..pages.shell import write
        from ..render.plan_page import plan_page

        path = Path(args.html or f"{plan.name}-plan.html")
        write(path, plan_page(plan), "--html")
        print(f"the page is in {path}", file=sys.stderr)
    if args.json:
        from ..pipeline import effective

        common.emit_json(effective(plan))
    elif args.html is None:
        from .plan_text import plan_text

        common.emit(plan_text(plan))
    return OK
