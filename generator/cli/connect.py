"""`cycleforge connect`."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from argparse import ArgumentParser, Namespace
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING

from ..errors import OK, CannotRead, ProgramMissing
from . import common

if TYPE_CHECKING:
    from ..operate.built import Built

DESCRIPTION = """\
Log in to the server, the scheduler, a login node or any other node of a deployment, run a command there, or open the
portal in the browser. It uses the public address, the private one through the VPN of a hub (which you connect), or a
tunnel through the Bastion, which ends with the connection.

`ssh -F output/NAME/ssh_config HOST` does the same, as do scp, sftp and rsync; output/NAME/ssh_hosts is for an `Include`
in ~/.ssh/config, for example for VS Code. Nothing in Azure is changed."""
_LAST_PORT = 65535


def add_arguments(parser: ArgumentParser) -> None:
    common.add(parser, "NAME")
    text = "server (default), portal, scheduler, login, or the name of a node"
    parser.add_argument("host", metavar="HOST", nargs="?", default="server", help=text)
    parser.set_defaults(behind=[])
    parser.usage = "%(prog)s [options] NAME [HOST] [-- COMMAND ...]"
    common.add(parser, "--out", "--all", "--subscription")
    parser.add_argument("--print", action="store_true", help="print the `az` and `ssh` lines that do the same")
    parser.add_argument("--stdio", action="store_true", help="be the connection: for ProxyCommand of `ssh_config`")
    parser.add_argument("--no-browser", action="store_true", help="print the address of the portal; open no browser")
    parser.add_argument("--port", type=int, default=0, help="port of this computer for the portal behind a Bastion")


def run(args: Namespace) -> int:
    from ..operate import connect, way
    from ..operate.built import looked_for

    if not 0 <= args.port <= _LAST_PORT:
        raise CannotRead(
            f"--port is a number up to {_LAST_PORT}, not {args.port}", "without --port a free one is chosen"
        )
    target = common.target_of(args)
    if args.stdio:
        target = way.noted_target(target)
    found = looked_for(target, partial(common.tell, args=args, quietly=True))
    if not args.stdio:
        way.tell_ssh(found, target)
    with way.refusals():
        host = connect.host_in(found.plan, args.host)
        if args.print:
            common.emit("\n".join(connect.lines(found, host, args.behind, args.port, target.subscription)))
            return OK
        if host == connect.PORTAL:
            return _portal(found, args.port, target.subscription, opens=not args.no_browser)
        if not args.stdio:
            return _become(connect.login(found, host, args.behind, target.subscription))
        _end_politely()
        return connect.stdio(found, host, target.subscription, _hear)


def _become(line: list[str]) -> int:
    """Become ssh, so that the terminal, signals and the exit status are its own."""
    from ..operate.connect import child

    program = shutil.which(line[0])
    if program is None:
        raise ProgramMissing(f"{line[0]} is not installed", "install OpenSSH's client (Debian: openssh-client)")
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(program, line, child.environment())  # noqa: S606 - no shell is wanted


def _hear(row: bytes) -> None:
    sys.stderr.buffer.write(row)
    sys.stderr.flush()


def _end_politely() -> None:
    """ssh ends its ProxyCommand with SIGHUP; the tunnel has to go first."""

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, end)


def _portal(found: Built, port: int, subscription: str | None, *, opens: bool) -> int:
    import webbrowser

    from ..operate.connect import portal

    with portal(found, port, subscription) as site:
        if site.certificate is None:
            common.say("the deployment has recorded no certificate of the site: compare it yourself")
        common.emit(site.url)
        if site.certificate is not None:
            common.say(f"this is the site of the deployment; its certificate is {site.certificate} (SHA-256)")
        if opens and not webbrowser.open(site.url):
            common.say("no browser was found; open the address above")
        if site.is_forwarded:
            common.say("Ctrl-C closes the tunnel")
            _until_interrupted()
    return OK


def _until_interrupted() -> None:
    _end_politely()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return
