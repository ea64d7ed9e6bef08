"""`cycleforge logs`."""

from __future__ import annotations

import shlex
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, CannotRead
from . import cluster, common

if TYPE_CHECKING:
    from ..cyclecloud.hide import Hide
    from ..cyclecloud.logs import Role

DESCRIPTION = """\
Show the ends of the logs of the server, the scheduler or a node: first boot and CycleCloud; slurmctld and azslurm;
slurmd, health checks, jetpack and the scripts of projects. Changes nothing. Secrets and control characters are hidden.
"""
_MOST_LINES = 10_000
_BY_AZURE_BYTES = 6_000
"""Of each file, where 4,096 packed bytes pass: logs pack well."""


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    cluster.add_arguments(parser, changes=False)
    parser.add_argument(
        "host", metavar="HOST", nargs="?", default="server", help="server (default), scheduler, or the name of a node"
    )
    parser.add_argument("--lines", metavar="N", default="100", help="lines of each file, at its end (default: 100)")
    parser.add_argument("--follow", action="store_true", help="go on with what is added, until Ctrl-C")


def run(args: Namespace) -> int:
    """Ask the host for the ends of its files."""
    if not args.lines.isdecimal() or not 1 <= int(args.lines) <= _MOST_LINES:
        raise CannotRead(f"--lines is a whole number from 1 to {_MOST_LINES:,}, not '{args.lines}'")
    place = cluster.found(args)
    from ..cyclecloud.logs import line, role_of
    from ..plan.ssh_config import host_of

    args.host = host_of(place.plan, args.host)
    if args.host == place.slurm.scheduler.host_name:
        args.host = "scheduler"
    role = role_of(args.host)
    with cluster.refusals(place):
        if args.print:
            common.emit(shlex.join(place.node(args.host).line(line(role, int(args.lines)))))
            return OK
        return _follow(place, args, role) if args.follow else _show(place, args, role)


def _show(place: cluster.Place, args: Namespace, role: Role) -> int:
    from ..cyclecloud.logs import MOST_BYTES, PATHS, read

    hide = place.hide()
    host = place.server if role == "server" else place.node(args.host)
    if host is place.server:
        place.server.prove()
    most = MOST_BYTES if host is not place.server or place.server.is_direct else _BY_AZURE_BYTES
    logs = read(host, PATHS[role], int(args.lines), most)
    if not logs:
        raise _none(args.host, role)
    for log in logs:
        common.emit(f"==> {_line(log.path, hide)} <==")
        text, _ = hide.clean(log.text)
        for row in text.splitlines():
            common.emit(_line(row, None))
        common.emit("")
    return OK


def _follow(place: cluster.Place, args: Namespace, role: Role) -> int:
    from ..cyclecloud.logs import PATHS, follow_command

    hide, last = place.hide(), ""
    for row in place.node(args.host).follow(follow_command(PATHS[role], int(args.lines))):
        last = _line(row, hide)
        common.emit(last)
    # Only Ctrl-C ends it well.
    if not last:
        raise _none(args.host, role)
    raise AzureRefused(f"{args.host} does not show its logs any more: {last}", "type the same command again")


def _none(host: str, role: Role) -> AzureRefused:
    from ..cyclecloud.logs import PATHS

    return AzureRefused(f"{host} has none of these logs: {', '.join(PATHS[role])}", "they begin with its first boot")


def _line(text: str, hide: Hide | None) -> str:
    from ..words.terminal import printable

    return printable((hide.clean(text)[0] if hide else text).expandtabs())
