"""What the verbs that talk to Azure share: flags, signing in, and a question."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import CannotRead
from ..operate import asking
from ..operate.asking import refusals
from . import common

if TYPE_CHECKING:
    from ..azure.session import Session
    from ..plan.types import Plan

__all__ = ["add_arguments", "add_print", "add_subscription", "confirmed", "refusals", "session_of"]


def add_subscription(parser: ArgumentParser) -> None:
    """--subscription."""
    text = "id of the subscription; default: the definition's, AZURE_SUBSCRIPTION_ID, or what `az account set` chose"
    parser.add_argument("--subscription", metavar="ID", help=text)


def add_print(parser: ArgumentParser) -> None:
    """--print."""
    parser.add_argument("--print", action="store_true", help="print the `az` lines that ask, or do, the same")


def add_arguments(parser: ArgumentParser) -> None:
    """The flags of those that read the built folder."""
    common.add_definitions(parser, many=False)
    common.add_out(parser)
    common.add_all(parser)
    add_subscription(parser)
    add_print(parser)


def confirmed(text: str, without_terminal: str) -> bool:
    """Whether somebody at a terminal says yes; raises CannotRead where there is none."""
    if not sys.stdin.isatty():
        raise CannotRead(f"there is no terminal on which to ask: {text}", without_terminal)
    print(f"{text} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    print("nothing was changed", file=sys.stderr)
    return False


def session_of(plan: Plan, args: Namespace) -> Session:
    """A session for the plan's cloud, in the subscription of the command line."""
    return asking.session_of(plan, args.subscription)
