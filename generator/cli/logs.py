"""`cycleforge logs`."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace

from ..errors import OK, CannotRead
from . import azure, common

DESCRIPTION = """\
Show the ends of the logs of the server (first boot, CycleCloud), the scheduler (slurmctld, azslurm) or a node (slurmd,
health checks, jetpack, scripts of projects). Nothing is changed. Secrets and control characters are hidden.
"""
_MOST_LINES = 10_000


def add_arguments(parser: ArgumentParser) -> None:
    azure.add_cluster_arguments(parser, changes=False)
    parser.add_argument(
        "host", metavar="HOST", nargs="?", default="server", help="server (default), scheduler, or the name of a node"
    )
    parser.add_argument(
        "--lines", metavar="N", default="100", help="number of lines at the end of each file (default: 100)"
    )
    parser.add_argument("--follow", action="store_true", help="show new lines as they are written, until Ctrl-C")


def run(args: Namespace) -> int:
    if not args.lines.isdecimal() or not 1 <= int(args.lines) <= _MOST_LINES:
        raise CannotRead(f"--lines is a whole number from 1 to {_MOST_LINES:,}, not '{args.lines}'")
    from ..operate import nodes

    lines = int(args.lines)
    with azure.cluster_at(args) as place:
        if args.print:
            common.emit(shlex.join(nodes.log_line(place, args.host, lines)))
        elif args.follow:
            for row in nodes.follow(place, args.host, lines):
                common.emit(row)
        else:
            for log in nodes.logs(place, args.host, lines):
                common.emit(f"==> {log.path} <==")
                for row in (*log.lines, ""):
                    common.emit(row)
    return OK
