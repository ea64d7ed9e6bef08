"""`cycleforge plan`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import OK
from ..words.terminal import columns
from . import common

if TYPE_CHECKING:
    from ..plan.deployment import Plan
    from ..render.plan_sections import Section

DESCRIPTION = "Show what a definition results in. Only --html writes anything, and Azure is not contacted."


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAME", "--all")
    parser.add_argument(
        "--html",
        metavar="FILE",
        nargs="?",
        const="",
        help="write the plan as one HTML page: picture, subnets, roles, sizes, checks, jobs (default: NAME-plan.html)",
    )
    common.add(parser, "--json")


def run(args: Namespace) -> int:
    plan = common.read_one(args).plan
    if args.html is not None:
        from ..pages.shell import write
        from ..render.plan_page import plan_page

        path = Path(args.html or f"{plan.name}-plan.html")
        write(path, plan_page(plan), "--html")
        common.say(f"the page is in {path}")
    if args.json:
        from ..pipeline import effective

        common.emit_json(effective(plan))
    elif args.html is None:
        common.emit(plan_text(plan))
    return OK


def plan_text(plan: Plan) -> str:
    """The whole plan in sections."""
    from ..render.plan_sections import sections

    return "\n".join(_text(section) for section in sections(plan))


def _text(section: Section) -> str:
    lines = "".join(f"  {line}\n" for line in section.lines)
    return f"{section.title}\n{lines}{columns(section.rows, indent='  ')}"
