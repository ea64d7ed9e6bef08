"""What the verbs share that talk to Azure or to a cluster: flags, questions, secrets, and the cluster that is meant."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from ..errors import CannotRead
from ..operate.decisions import Secrets
from ..plan.parameters import SecretPlan
from . import common

if TYPE_CHECKING:
    from ..operate.cluster import Place

_TRIES = 3


def asked(question: str, without_terminal: str) -> bool:
    """Return True when the user says yes. Without a terminal raises CannotRead, with the hint `without_terminal`."""
    if not sys.stdin.isatty():
        raise CannotRead(f"there is no terminal to ask on: {question}", without_terminal)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def confirmed(question: str, without_terminal: str) -> bool:
    """Ask, and say that nothing was changed when the user declines."""
    agreed = asked(question, without_terminal)
    if not agreed:
        common.say("nothing was changed")
    return agreed


def add_cluster_arguments(parser: ArgumentParser, *, changes: bool) -> None:
    common.add(parser, "NAME", "--out", "--all", "--subscription")
    parser.add_argument("--print", action="store_true", help="print the lines that do the same; change nothing")
    if changes:
        parser.add_argument("--yes", action="store_true", help="do not ask")


def cluster_at(args: Namespace) -> AbstractContextManager[Place]:
    """The cluster that `args.name` names, for as long as the block lasts."""
    from ..operate import cluster

    return cluster.at(common.target_of(args), common.say, partial(common.tell, args=args))


class Typed(Secrets):
    """Secrets from the environment, or typed without echo."""

    def must_be_there(self, wanted: Iterable[SecretPlan], otherwise: str = "") -> None:
        """Raise CannotRead before anything is asked of Azure, where nobody could be asked later."""
        if not sys.stdin.isatty():
            super().must_be_there(wanted, otherwise or ", and there is no terminal to ask on")

    def values(self, wanted: Iterable[SecretPlan]) -> Mapping[str, str]:
        return {secret.variable: os.environ.get(secret.variable) or _typed(secret) for secret in wanted}


def _typed(secret: SecretPlan) -> str:
    from getpass import getpass

    for _ in range(_TRIES):
        common.say(secret.description)
        typed = getpass(f"{secret.title}: ")
        broken = secret.broken_by(typed)
        if broken:
            common.say(f"  it must have {'; '.join(broken)}")
        elif getpass("once more: ") != typed:
            common.say("  these are two different ones")
        else:
            return typed
    raise CannotRead(f"no {secret.variable} was given", "run the command again; nothing was changed")
