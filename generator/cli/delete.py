"""`cycleforge delete`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import INTERRUPTED, OK, AzureRefused, CannotRead, ProblemsFound
from . import common

if TYPE_CHECKING:
    from ..operate.delete import Decision, Look
    from ..plan.deployment import Plan

DESCRIPTION = """\
Delete a deployment: the cluster, the roles of its identities, its connections to networks and DNS zones of others, and
its resource group. If the group does not carry the tag that the deployment writes into groups it creates, only the
resources in it that carry the tag are deleted, one by one. First it shows what exists, what is deleted, what stays, and
what prevents the deletion.

CycleCloud terminates the cluster if `cyclecloud` is logged in on its server. Otherwise the server is stopped, and Azure
deletes the machines that carry the tag. A server that belongs to someone else is not stopped: log in there.

With --keep-data, file systems, locker, database and the server's data disk stay, with the network that leads to them.

If it is interrupted, run the same command to continue. At the end it looks for everything in Azure once more.

The exit code is 0 when nothing is left, 1 when something prevents the deletion or is left, and 4 when Azure refuses,
cannot be reached, or something is unknown.
"""


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAME", "--out", "--all", "--subscription")
    parser.add_argument("--keep-data", action="store_true", help="keep what holds data, and the network to it")
    parser.add_argument("--yes", metavar="DEPLOYMENT", help="do not ask; repeat the name of the deployment")
    parser.add_argument(
        "--others-too", action="store_true", help="with --yes: also delete what others created in the resource group"
    )
    parser.add_argument("--print", action="store_true", help="print the `az` lines that do the same; delete nothing")


def run(args: Namespace) -> int:
    from ..operate import delete

    plan = common.read_one(args, is_deployed=True).plan
    if args.yes is not None and args.yes != plan.name:
        raise CannotRead(f"--yes names '{args.yes}', but the deployment is '{plan.name}'", f"--yes {plan.name}")
    if args.print:
        looked, lines = delete.lines(plan, args.subscription, keeps_data=args.keep_data)
        common.say(_shown(looked))
        common.emit("\n".join(lines))
        return _in_the_way(looked.decision)
    try:
        with delete.asking(plan, args.subscription) as writer:
            looked = delete.look(plan, writer, keeps_data=args.keep_data)
            common.emit(_shown(looked))
            if looked.decision.is_nothing:
                return _in_the_way(looked.decision)
            looked.must_be_free()
            _ask(plan, looked.decision, args)
            delete.carry_out(looked, writer, common.say)
    except KeyboardInterrupt:
        common.say(f"\ninterrupted: Azure continues what it has begun; {delete.AGAIN}")
        return INTERRUPTED
    common.emit(f"\n{plan.name}: {'only what holds data is left' if args.keep_data else 'nothing is left'}")
    return OK


def _shown(looked: Look) -> str:
    from ..azure.deletion.text import shown

    return shown(looked.plan, looked.seen, looked.decision)


def _in_the_way(decision: Decision) -> int:
    """Return 1 when something must be fixed first, 4 when something is unknown, else 0."""
    if decision.obstacles:
        return ProblemsFound.exit_code
    return AzureRefused.exit_code if decision.not_seen else OK


def _ask(plan: Plan, decision: Decision, args: Namespace) -> None:
    """Let the user type the name, unless --yes gives it."""
    if args.yes is not None:
        if decision.others and not args.others_too:
            raise ProblemsFound(
                "nothing was deleted: the resource group holds what this deployment did not create",
                "--others-too deletes it with the group; or run the command without --yes and type the name",
            )
        return
    if not sys.stdin.isatty():
        raise CannotRead(
            "nothing was deleted: there is no terminal to ask on", f"--yes {plan.name} deletes without asking"
        )
    print(f"\nType {plan.name} to delete it: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != plan.name:
        raise ProblemsFound("nothing was deleted")
