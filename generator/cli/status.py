"""`cycleforge status`."""

from __future__ import annotations

import os
import shlex
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, CannotRead, CycleForgeError, ProblemsFound
from . import azure, common

if TYPE_CHECKING:
    from ..operate.built import Built
    from .status_look import Look, Looker

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
    """Declare the flags."""
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
    """Look and tell."""
    if args.watch and args.json:
        raise CannotRead("--watch draws a screen", "give --json without --watch, again and again")
    if args.password and not sys.stdin.isatty():
        raise CannotRead("there is no terminal on which to ask for the password", "export CYCLECLOUD_ADMIN_PASSWORD")
    from ..operate import reading
    from ..operate.built import Built

    named = [reading.deployed(reading.Target(name, args.out)) for name in args.names]
    definitions = named or reading.read([])
    for each in named:
        common.tell_note(each)
    if len(definitions) == 1 and definitions[0].checked.plan is None:
        common.tell(definitions[0], args)
        raise reading.HasErrors(definitions[0])
    found = [
        Built(each, each.checked.plan, args.out / each.checked.plan.name) for each in definitions if each.checked.plan
    ]
    broken = [each.filename for each in definitions if each.checked.plan is None]
    if args.print:
        common.emit("\n".join(line for each in found for line in _lines(each, usage=args.usage)))
        return OK
    return _watched(found, broken, args)


def _lines(found: Built, *, usage: bool) -> list[str]:
    """What asks the same by hand."""
    from ..azure.requests import deployments
    from ..cyclecloud.requests import documented
    from ..cyclecloud.usage import of_this_month

    plan = found.plan
    lines = [f"az deployment sub show --name {plan.deployment_name}"]
    if plan.server is not None:
        at = {"group": plan.resource_group, "name": plan.server.vm_name}
        lines += [deployments.SERVER_VIEW(**at).az, deployments.FIRST_BOOT(**at).az]
    if plan.slurm is not None:
        call = documented.STATUS({"nodes": "true"}, cluster=plan.slurm.cluster_name)
        server = ["ssh", "-F", str(found.folder / "ssh_config"), "server"]
        lines.append(shlex.join([*server, call.cli]))
        if usage:
            # No command of `cyclecloud` shows it. On the server nobody is in between; curl asks for the password.
            address = f"https://localhost{of_this_month(plan.slurm.cluster_name).address}"
            words = ["curl", "--insecure", "--user", plan.admin.username, address]
            lines.append(shlex.join([*server[:-1], "-t", server[-1], shlex.join(words)]))
    return lines


def _watched(found: Sequence[Built], broken: Sequence[str], args: Namespace) -> int:
    from contextlib import ExitStack, closing

    from ..azure.reader import Reader
    from .portal import login_of
    from .status_look import Looker

    with ExitStack() as stack:
        lookers: list[Looker | tuple[str, str]] = [(name, "the definition has errors") for name in broken]
        for each in found:
            try:
                reader = stack.enter_context(closing(Reader(azure.session_of(each.plan, args))))
            except CycleForgeError as error:
                if len(found) == 1:
                    raise
                lookers.append((each.plan.name, error.message))
                continue
            login = login_of(each, ask=args.password)
            asked = {"drift": args.drift, "cost": args.cost, "usage": args.usage}
            looker = Looker(each, reader, login, **asked, subscription=args.subscription)
            lookers.append(stack.enter_context(closing(looker)))
        if not args.watch:
            looks = _looks(lookers)
            _show(looks, args)
            return exit_code(looks)
        return _watch(lookers)


def _looks(lookers: Sequence[Looker | tuple[str, str]]) -> list[Look | tuple[str, str]]:
    """All at the same time."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(max(1, min(8, len(lookers)))) as pool:
        return list(pool.map(lambda each: each if isinstance(each, tuple) else each.look(), lookers))


def _watch(lookers: Sequence[Looker | tuple[str, str]]) -> int:
    """Draw it anew on a terminal; elsewhere print what has changed. Ctrl-C ends it."""
    from .live import drawn

    with drawn(is_drawn=sys.stdout.isatty() and os.environ.get("TERM") != "dumb") as draw:
        while True:
            draw(_text(_looks(lookers)))
            time.sleep(PAUSE_S)


def _show(looks: Sequence[Look | tuple[str, str]], args: Namespace) -> None:
    if args.json:
        from .status_text import as_json

        rows = [{"name": each[0], "unknown": each[1]} if isinstance(each, tuple) else as_json(each) for each in looks]
        common.emit_json({"ok": exit_code(looks) == OK, "deployments": rows})
    else:
        common.emit(_text(looks))


def _text(looks: Sequence[Look | tuple[str, str]]) -> str:
    from .status_text import screen, table

    only = looks[0] if len(looks) == 1 else None
    return table(looks) if only is None or isinstance(only, tuple) else "\n".join(screen(only)) + "\n"


def exit_code(looks: Sequence[Look | tuple[str, str]]) -> int:
    """What a script may rest on."""
    if any(not isinstance(each, tuple) and each.has_failed for each in looks):
        return ProblemsFound.exit_code
    if any(isinstance(each, tuple) or each.is_partial for each in looks):
        return AzureRefused.exit_code
    return OK
