"""`cycleforge delete`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import INTERRUPTED, OK, AzureRefused, CannotRead, ProblemsFound
from . import azure, common

if TYPE_CHECKING:
    from ..azure.deletion.decision import Decision
    from ..plan.types import Plan

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
_AGAIN = "the same command goes on from here"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
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
    """Show, ask, delete, prove."""
    plan = common.read_one(args, is_deployed=True).plan
    if args.yes is not None and args.yes != plan.name:
        raise CannotRead(f"--yes names '{args.yes}', but the deployment is '{plan.name}'", f"--yes {plan.name}")
    with _refusals():
        return _print(plan, args) if args.print else _delete(plan, args)


def _print(plan: Plan, args: Namespace) -> int:
    """The lines on standard output, what they are about on standard error; only asks."""
    from ..azure.deletion.decide import decide
    from ..azure.deletion.survey import survey
    from ..azure.deletion.text import lines, shown
    from ..azure.reader import Reader

    reader = Reader(azure.session_of(plan, args))
    try:
        seen = survey(plan, reader)
        decision = decide(plan, seen, keeps_data=args.keep_data)
        print(shown(plan, seen, decision), file=sys.stderr)
        common.emit("\n".join(lines(plan, seen, decision, reader)))
    finally:
        reader.close()
    return _in_the_way(decision)


def _in_the_way(decision: Decision) -> int:
    """1 when something must be mended first, 4 when something is not known, else 0."""
    if decision.obstacles:
        return ProblemsFound.exit_code
    return AzureRefused.exit_code if decision.not_seen else OK


def _delete(plan: Plan, args: Namespace) -> int:
    from ..azure.deletion.carry_out import Deleting
    from ..azure.deletion.decide import decide
    from ..azure.deletion.survey import survey
    from ..azure.deletion.text import shown
    from ..azure.writer import Writer

    writer = Writer(azure.session_of(plan, args))
    try:
        seen = survey(plan, writer)
        decision = decide(plan, seen, keeps_data=args.keep_data)
        common.emit(shown(plan, seen, decision))
        if decision.is_nothing:
            return _in_the_way(decision)
        if decision.obstacles:
            raise ProblemsFound("nothing was deleted: first fix what is in the way")
        _ask(plan, decision, args)
        run = Deleting(plan, writer, seen, decision, _say, keeps=args.keep_data)
        left, blind = run.run()
    except KeyboardInterrupt:
        print(f"\ninterrupted: what was begun goes on in Azure; {_AGAIN}", file=sys.stderr)
        return INTERRUPTED
    finally:
        writer.close()
    if not left.is_nothing:
        still = [each.text for each in left.going] + [f"{each.type} {each.name}" for each in left.nodes]
        raise ProblemsFound(f"still there: {'; '.join(still)}", _AGAIN)
    if blind:
        raise AzureRefused(
            f"not known {'; '.join(each.what for each in blind)}: {blind[0].reason}",
            f"all else of {plan.name} is gone; its identities were {', '.join(seen.principals) or 'not found'}",
        )
    common.emit(f"\n{plan.name}: {'what holds no data is gone' if args.keep_data else 'nothing is left'}")
    return OK


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


@contextmanager
def _refusals() -> Iterator[None]:
    """What ends it, as an error of the command."""
    from ..azure.deletion.cluster import NotDone
    from ..azure.deletion.decision import Stopped
    from ..azure.refusals import NotAsked, Refused

    try:
        yield
    except (Stopped, NotDone) as stopped:
        raise AzureRefused(stopped.text, stopped.hint or _AGAIN) from None
    except NotAsked as not_asked:
        raise AzureRefused(not_asked.reason, not_asked.hint or _AGAIN) from None
    except Refused as refused:
        raise AzureRefused(f"Azure refused: {refused}", _AGAIN) from None
