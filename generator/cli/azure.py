"""What the verbs that talk to Azure share: flags and a question."""

from __future__ import annotations

import sys
from argparse import ArgumentParser

from ..errors import CannotRead
from . import common


def add_subscription(parser: ArgumentParser) -> None:
    text = "id of the subscription; default: the definition's, AZURE_SUBSCRIPTION_ID, or what `az account set` chose"
    parser.add_argument("--subscription", metavar="ID", help=text)


def add_print(parser: ArgumentParser) -> None:
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
