"""`cycleforge status`."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, CannotRead, ProblemsFound
from . import azure, common

if TYPE_CHECKING:
    from ..operate.built import Built
    from ..operate.status import Looks
    from ..plan.deployment import Plan

DESCRIPTION = """\
Show how deployments are: one screen for one, a line for each of several. The deployment, its server and its first boot
as Azure has them; the cluster, its nodes by partition and state, and why nodes failed, as the CycleCloud site says.
Nothing is changed.

What Azure knows needs no password. The site is asked where CYCLECLOUD_ADMIN_PASSWORD is set, or with --password, which
asks for it without echo: directly, or behind a Bastion, and on a server that another deployment made, through a forward
of ssh. Otherwise, or where no way leads to it, its server is asked through ssh, with your key. A password that the site
refuses is not tried again within a minute, because five refused ones lock the account.

The exit code is 0 when all is known and nothing has failed, 1 when something has failed or is not deployed (whatever
else is not known), and 4 when nothing is known to have failed, and something is not known.
"""
PAUSE_S = 10.0
"""Between two looks of --watch."""


def add_arguments(parser: ArgumentParser) -> None:
    common.add_definitions(parser, many=True)
    common.add_out(parser)
    azure.add_subscription(parser)
    azure.add_print(parser)
    parser.add_argument("--watch", action="store_true", help="look again every 10 s, until Ctrl-C")
    parser.add_argument("--drift", action="store_true", help="compare what Azure has with the built folder, too")
    parser.add_argument("--cost", action="store_true", help="what is billed by the hour now, at public prices, too")
    parser.add_argument("--usage", action="store_true", help="core hours of this month as the site counts them, too")
    parser.add_argument("--password", action="store_true", help="ask for the administrator's password, without echo")
    common.add_json(parser)
    parser.set_defaults(all=False)


def run(args: Namespace) -> int:
    if args.watch and args.json:
        raise CannotRead("--watch draws a screen", "give --json without --watch, again and again")
    if args.password and not sys.stdin.isatty():
        raise CannotRead("there is no terminal on which to ask for the password", "export CYCLECLOUD_ADMIN_PASSWORD")
    from ..operate import status

    found, broken = _found(args)
    if args.print:
        common.emit("\n".join(line for each in found for line in status.lines(each, usage=args.usage)))
        return OK
    wishes = status.Wishes(args.drift, args.cost, args.usage)
    typed = _typed if args.password else lambda _: ""
    with status.lookers(found, broken, wishes=wishes, subscription=args.subscription, password=typed) as look:
        if args.watch:
            return _watch(look)
        looks = look()
    code = exit_code(looks)
    if args.json:
        rows = [
            {"name": each[0], "unknown": each[1]} if isinstance(each, tuple) else status.as_json(each) for each in looks
        ]
        common.emit_json({"ok": code == OK, "deployments": rows})
    else:
        common.emit(_text(looks))
    return code


def _found(args: Namespace) -> tuple[list[Built], list[str]]:
    """The deployments, and the files whose definitions have errors. Raises HasErrors where there is only one."""
    from ..operate import reading
    from ..operate.built import Built

    named = [reading.deployed(reading.Target(name, args.out)) for name in args.names]
    definitions = named or reading.read([])
    if len(definitions) == 1 and definitions[0].checked.plan is None:
        common.tell(definitions[0], args)
        raise reading.HasErrors(definitions[0])
    for each in named:
        common.tell_note(each)
    found = [(each, each.checked.plan) for each in definitions]
    built = [Built(each, plan, args.out / plan.name) for each, plan in found if plan is not None]
    return built, [each.filename for each, plan in found if plan is None]


def _typed(plan: Plan) -> str:
    """Asked for where the environment has none, or only the id of one in a Key Vault."""
    from getpass import getpass

    exported = os.environ.get("CYCLECLOUD_ADMIN_PASSWORD", "")
    if exported and not exported.startswith("/subscriptions/"):
        return ""
    return getpass(f"password of {plan.admin.username} at the site of {plan.name}: ")


def _watch(look: Callable[[], Looks]) -> int:
    """Draw it anew on a terminal; elsewhere print what has changed. Ctrl-C ends it."""
    from .live import drawn

    with drawn(is_drawn=sys.stdout.isatty() and os.environ.get("TERM") != "dumb") as draw:
        while True:
            draw(_text(look()))
            time.sleep(PAUSE_S)


def _text(looks: Looks) -> str:
    from .status_text import screen, table

    only = looks[0] if len(looks) == 1 else None
    return table(looks) if only is None or isinstance(only, tuple) else "\n".join(screen(only)) + "\n"


def exit_code(looks: Looks) -> int:
    """What a script may rest on."""
    if any(not isinstance(each, tuple) and each.has_failed for each in looks):
        return ProblemsFound.exit_code
    if any(isinstance(each, tuple) or each.is_partial for each in looks):
        return AzureRefused.exit_code
    return OK
