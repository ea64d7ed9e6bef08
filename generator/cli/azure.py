"""What the verbs that talk to Azure share: flags, signing in, a question, and what to say when Azure refuses."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..errors import AzureRefused, CannotRead
from . import common

if TYPE_CHECKING:
    from ..azure.session import Session
    from ..plan.types import Plan


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
    """A session for the plan's cloud and subscription; nobody is asked for a token yet."""
    from ..azure.clouds import cloud_of
    from ..azure.refusals import NotAsked
    from ..azure.session import sign_in, subscription_of

    subscription = subscription_of(args.subscription, plan.subscription_id, os.environ)
    try:
        return sign_in(cloud_of(plan.cloud, os.environ), subscription)
    except NotAsked as not_asked:
        raise AzureRefused(not_asked.reason, not_asked.hint) from None


@contextmanager
def refusals(plan: Plan, otherwise: str = "nothing was changed; try again when Azure can be reached") -> Iterator[None]:
    """What Azure refuses, and that it could not be asked, as an error of the command; `otherwise` is the usual hint."""
    from ..azure import failures
    from ..azure.refusals import NotAsked, Refused

    try:
        yield
    except NotAsked as error:
        raise AzureRefused(error.reason, error.hint or otherwise) from None
    except Refused as refused:
        found = failures.explained(refused.causes, name=plan.definition_name, group=plan.resource_group)
        text = failures.text(found).rstrip() or f"{refused.code}: {refused.message}"
        raise AzureRefused(f"Azure refused\n{text}") from None
