"""`cycleforge status`."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, CannotRead, ProblemsFound
from . import common

if TYPE_CHECKING:
    from ..operate.built import Built
    from ..operate.status import Looks
    from ..plan.deployment import Plan

DESCRIPTION = """\
Show the state of deployments: one screen for one, one line each for several. Azure gives the state of the deployment,
its server and its first boot; the CycleCloud site that of the cluster and its nodes, and why nodes failed. Nothing is
changed.

Azure needs no password. The site is asked when CYCLECLOUD_ADMIN_PASSWORD is set, or with --password, which prompts for
it without echo: directly, or through ssh when it is behind a Bastion or on the server of a different deployment.
Otherwise, or if the site cannot be reached, its server is asked through ssh, with your key. A password that the site
refused is not tried again within a minute, because five refusals lock the account.

The exit code is 0 when everything is known and nothing has failed, 1 when something has failed or is not deployed, even
if something else is unknown, and 4 when nothing is known to have failed but something is unknown.
"""
PAUSE_S = 10.0
"""Between two looks of --watch."""


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAMES", "--out", "--subscription", "--print")
    parser.add_argument("--watch", action="store_true", help="look again every 10 s, until Ctrl-C")
    parser.add_argument("--drift", action="store_true", help="also compare what Azure has with the built folder")
    parser.add_argument(
        "--cost", action="store_true", help="also show what is billed by the hour now, at public prices"
    )
    parser.add_argument(
        "--usage", action="store_true", help="also show the core hours of this month as the site counts them"
    )
    parser.add_argument("--password", action="store_true", help="ask for the administrator's password, without echo")
    common.add(parser, "--json")
    parser.set_defaults(all=False)


def run(args: Namespace) -> int:
    if args.watch and args.json:
        raise CannotRead(
            "--watch draws a screen and cannot print JSON", "repeat the command with --json and without --watch"
        )
    if args.password and not sys.stdin.isatty():
        raise CannotRead("there is no terminal to ask for the password on", "export CYCLECLOUD_ADMIN_PASSWORD")
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
    """Return the deployments, and the files whose definitions have errors. Raises HasErrors when there is only one."""
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
    """Prompt for the password, unless the environment has it and not only its id in a Key Vault."""
    from getpass import getpass

    exported = os.environ.get("CYCLECLOUD_ADMIN_PASSWORD", "")
    if exported and not exported.startswith("/subscriptions/"):
        return ""
    return getpass(f"password of {plan.admin.username} at the site of {plan.name}: ")


def _watch(look: Callable[[], Looks]) -> int:
    """Redraw the screen on a terminal; elsewhere print it when it has changed. Ctrl-C ends it."""
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
    if any(not isinstance(each, tuple) and each.has_failed for each in looks):
        return ProblemsFound.exit_code
    if any(isinstance(each, tuple) or each.is_partial for each in looks):
        return AzureRefused.exit_code
    return OK
