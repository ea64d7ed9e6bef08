"""`cycleforge delete`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import INTERRUPTED, OK, AzureRefused, CannotRead, ProblemsFound
from ..operate import delete
from . import azure, common

if TYPE_CHECKING:
    from ..operate.delete import Decision
    from ..plan.deployment import Plan

DESCRIPTION = """\
Delete a deployment: the cluster, roles of its identities, its connections to networks and DNS zones of others, and its
resource group, if that carries the tag which the deployment wrote when it created the group; otherwise what carries the
tag in it, one by one. First it shows what Azure says is there, what goes and what stays, and what is in the way.

CycleCloud terminates the cluster where someone is logged in with `cyclecloud` on its server. Otherwise the server is
stopped, and Azure deletes the machines that carry the tag. The server of someone else is not stopped: log in there.

With --keep-data file systems, locker, database and the server's data disk stay, with the network that leads to them.

It may be ended at any point: the same command goes on from there. In the end it asks Azure for everything once more.

The exit code is 0 when nothing is left, 1 when something is in the way or is still there, and 4 when Azure refuses,
cannot be reached, or something could not be asked.
"""


def add_arguments(parser: ArgumentParser) -> None:
    common.add_definitions(parser, many=False)
    common.add_out(parser)
    common.add_all(parser)
    azure.add_subscription(parser)
    parser.add_argument("--keep-data", action="store_true", help="keep what holds data, and what it is reached through")
    parser.add_argument("--yes", metavar="DEPLOYMENT", help="do not ask: the name of the deployment, once more")
    parser.add_argument(
        "--others-too", action="store_true", help="with --yes: also what others have made in the resource group"
    )
    parser.add_argument("--print", action="store_true", help="print the `az` lines that do the same; delete nothing")


def run(args: Namespace) -> int:
    plan = common.read_one(args, is_deployed=True).plan
    if args.yes is not None and args.yes != plan.name:
        raise CannotRead(f"--yes names '{args.yes}', but the deployment is '{plan.name}'", f"--yes {plan.name}")
    if args.print:
        looked, lines = delete.lines(plan, args.subscription, keeps_data=args.keep_data)
        print(_shown(looked), file=sys.stderr)
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
            delete.carry_out(looked, writer, _say)
    except KeyboardInterrupt:
        print(f"\ninterrupted: what was begun goes on in Azure; {delete.AGAIN}", file=sys.stderr)
        return INTERRUPTED
    common.emit(f"\n{plan.name}: {'what holds no data is gone' if args.keep_data else 'nothing is left'}")
    return OK


def _shown(looked: delete.Look) -> str:
    from ..azure.deletion.text import shown

    return shown(looked.plan, looked.seen, looked.decision)


def _in_the_way(decision: Decision) -> int:
    """1 when something must be mended first, 4 when something is not known, else 0."""
    if decision.obstacles:
        return ProblemsFound.exit_code
    return AzureRefused.exit_code if decision.not_seen else OK


def _ask(plan: Plan, decision: Decision, args: Namespace) -> None:
    """The user types the name; --yes is the name typed before."""
    if args.yes is not None:
        if decision.others and not args.others_too:
            raise ProblemsFound(
                "nothing was deleted: in the resource group is what this deployment did not make",
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


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
