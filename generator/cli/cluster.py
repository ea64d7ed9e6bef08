"""What the verbs share that drive a cluster: flags, progress, and the cluster that the command line names."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING

from . import azure, common

if TYPE_CHECKING:
    from ..operate.cluster import Place


def add_arguments(parser: ArgumentParser, *, changes: bool) -> None:
    common.add_definitions(parser, many=False)
    common.add_out(parser)
    common.add_all(parser)
    azure.add_subscription(parser)
    parser.add_argument("--print", action="store_true", help="print the lines that do the same; change nothing")
    if changes:
        parser.add_argument("--yes", action="store_true", help="do not ask")


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)


def at(args: Namespace) -> AbstractContextManager[Place]:
    """The cluster that `args.name` names, for as long as the block lasts."""
    from ..operate import cluster

    return cluster.at(common.target_of(args), say, partial(common.tell, args=args))
