"""`cycleforge connect`: logs in to a host of a deployment, or opens the portal, on whatever way leads there."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from ..errors import OK, AzureRefused, CannotRead, ProgramMissing
from . import azure, common, whereabouts

if TYPE_CHECKING:
    from ..cyclecloud.shell import Shell
    from ..operate.built import Built
    from ..plan.types import Plan

DESCRIPTION = """\
Log in to the server, the scheduler, a login node or any other node of a deployment, or run a command there, or open the
portal in the browser. Opens what is needed: the public address, the private one behind the VPN of a hub
(which you connect), or a tunnel through the Bastion, which ends with the connection.

`ssh -F output/NAME/ssh_config HOST` does the same, as do scp, sftp and rsync; output/NAME/ssh_hosts is for an `Include`
in ~/.ssh/config, for example for VS Code. Nothing in Azure is changed."""
PORTAL = "portal"
_LAST_PORT = 65535
_NOT_THROUGH = b"stdio forwarding failed"
"""What ssh -W says where the server does not reach the host."""
_BY_ADDRESS = ""
"""A node that no name in the network leads to."""
_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the flags."""
    common.add_definitions(parser, many=False)
    text = "server (default), portal, scheduler, login, or the name of a node"
    parser.add_argument("host", metavar="HOST", nargs="?", default="server", help=text)
    parser.set_defaults(behind=[])
    parser.usage = "%(prog)s [options] NAME [HOST] [-- COMMAND ...]"
    common.add_out(parser)
    common.add_all(parser)
    azure.add_subscription(parser)
    parser.add_argument("--print", action="store_true", help="print the `az` and `ssh` lines that do the same")
    parser.add_argument("--stdio", action="store_true", help="be the connection: for ProxyCommand of `ssh_config`")
    parser.add_argument("--no-browser", action="store_true", help="print the portal's address, and open no browser")
    parser.add_argument("--port", type=int, default=0, help="port of this computer for the portal behind a Bastion")


def run(args: Namespace) -> int:
    """Do it; returns the exit code, that of the command where one was run."""
    from ..cyclecloud.shell import Unreachable
    from .built import looked_for

    if not 0 <= args.port <= _LAST_PORT:
        raise CannotRead(f"--port is a number up to {_LAST_PORT}, not {args.port}", "without --port one is chosen")
    if args.stdio:
        whereabouts.find(args)
    found = looked_for(args, quietly=True)
    if isinstance(found, int):
        return found
    if not args.stdio:
        whereabouts.tell(args, found)
        whereabouts.remember(found.plan.definition_name)
    try:
        return _connect(found, args)
    except Unreachable as error:
        raise AzureRefused(error.reason, error.hint) from None


def _connect(found: Built, args: Namespace) -> int:
    from ..plan.ssh_config import SERVER, host_of
    from . import ways

    host = PORTAL if args.host == PORTAL else host_of(found.plan, args.host)
    if host != PORTAL:
        must_be_there(found.plan, host)
    if args.print:
        return _print(found, args, host)
    if host == PORTAL:
        return _portal(found, args)
    if not args.stdio:
        shell = ways.shell_of(found, host)
        # ssh would only say that the connection was closed; this says why there is none.
        ways.facts_of(found.plan, azure.session_of(found.plan, args))
        return _login(shell, args.behind)
    if host != SERVER:
        return _through_server(found, host, args)
    return _carry(found, args)


def must_be_there(plan: Plan, host: str) -> None:
    """A name that no host of this deployment has is a slip, or a command in the place of the host."""
    from ..plan.ssh_config import ROLES, SERVER, node_stems
    from ..words.suggestions import suggestion

    slurm = plan.slurm
    names = [*(ROLES if slurm else (SERVER,)), *((slurm.scheduler.host_name,) if slurm else ())]
    starts = node_stems(plan) + (("login-",) if slurm else ())
    if host in names or host.startswith(starts) or _ADDRESS.fullmatch(host):
        return
    known = ", ".join((*names, PORTAL, *(f"{each}1" for each in starts)))
    raise CannotRead(f"{plan.name} has no host {host}", suggestion(host, [*names, PORTAL]) or f"hosts: {known}")


def _login(shell: Shell, command: list[str]) -> int:
    """ssh in our place: the terminal, signals and the exit status are its own."""
    return _become(shell.line(" ".join(command)))


def _become(line: list[str]) -> int:
    from ..cyclecloud.child import environment

    program = shutil.which(line[0])
    if program is None:
        raise ProgramMissing(f"{line[0]} is not installed", "install OpenSSH's client (Debian: openssh-client)")
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(program, line, environment())  # noqa: S606 - no shell is wanted


# ------------------------------------------------------------ the connection of ssh


def _carry(found: Built, args: Namespace) -> int:
    """The server: the connection is ours to open."""
    from ..cyclecloud.stdio import carry
    from . import ways

    _end_politely()
    facts = ways.facts_of(found.plan, azure.session_of(found.plan, args))
    with ways.connected(found.plan, facts) as connection:
        carry(connection)
    return OK


def _end_politely() -> None:
    """ssh ends its ProxyCommand with SIGHUP; the tunnel has to go first."""

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    for number in (signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, end)


def _through_server(found: Built, host: str, args: Namespace) -> int:
    """Any other host: ssh to the server, whose sshd connects to it."""
    from ..cyclecloud.ssh_words import explained
    from ..plan.ssh_config import SERVER
    from . import ways

    shell = ways.shell_of(found, SERVER)
    target = _address_of(found, shell, host, args)
    line = ["ssh", "-F", str(shell.config), "-W", f"{target}:{ways.SSH_PORT}", SERVER]
    _end_politely()
    with _started(line, shell.told) as ssh:
        assert ssh.stderr is not None
        said = []
        for row in ssh.stderr:
            said.append(row)
            if _NOT_THROUGH not in row:
                sys.stderr.buffer.write(row)
                sys.stderr.flush()
        status = ssh.wait()
    if status and any(_NOT_THROUGH in row for row in said):
        raise explained(host, _NOT_THROUGH.decode())
    return status


@contextmanager
def _started(line: list[str], told: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """ssh with our standard input and output, which does not outlive the block."""
    from ..cyclecloud import child
    from ..cyclecloud.shell import no_ssh

    try:
        ssh = subprocess.Popen(line, stderr=subprocess.PIPE, env={**child.environment(), **told})
    except FileNotFoundError:
        raise no_ssh() from None
    try:
        yield ssh
    finally:
        child.end(ssh)
        assert ssh.stderr is not None
        ssh.stderr.close()


def _address_of(found: Built, server: Shell, host: str, args: Namespace) -> str:
    """How the server calls it: by its name, else by the address that CycleCloud knows, or Azure of a login node."""
    known = _known_as(found.plan, host)
    if known != _BY_ADDRESS:
        return known
    try:
        return _listed_address(server, _listing(found.plan), host)
    except _NotTold as not_told:
        if host != "login":
            raise
        from .ways import login_address

        address = login_address(found.plan, _cluster_of(found.plan), azure.session_of(found.plan, args))
        if address is None:
            raise not_told from None
        return address


class _NotTold(AzureRefused):
    """The server's command line does not say where nodes are."""


def _known_as(plan: Plan, host: str) -> str:
    """How names in the network call it."""
    slurm = plan.slurm
    if slurm is None or _ADDRESS.fullmatch(host):
        return host
    if host == "scheduler" or host == slurm.scheduler.host_name:
        return slurm.scheduler.host_name
    if slurm.node_name_is_host_name and not host.startswith("login"):
        return host
    return _BY_ADDRESS


def _listing(plan: Plan) -> str:
    """What asks CycleCloud for the addresses of nodes, on the server."""
    return shlex.join(["cyclecloud", "show_nodes", "-c", _cluster_of(plan), "--states=Started", "--format=json"])


def _cluster_of(plan: Plan) -> str:
    return plan.slurm.cluster_name if plan.slurm else ""


def _address_filter(host: str) -> str:
    wanted = 'startswith("login")' if host == "login" else f". == {json.dumps(host)}"
    return f"[.[] | select(.Name | {wanted})] | sort_by(.Name)[0].Instance.PrivateIp"


def _listed_address(server: Shell, ask: str, host: str) -> str:
    from ..cyclecloud.command_line import NotDone
    from ..cyclecloud.nodes import read_nodes
    from ..words.terminal import printable

    ran = server.run(ask, limit_s=120)
    try:
        nodes = read_nodes(ran.out)
    except NotDone:
        nodes = ()
    if not nodes and (ran.status != 0 or ran.out.strip() not in ("", "[]")):
        said = " ".join((ran.err or ran.out).split())[:200]
        raise _NotTold(
            f"the server does not tell its nodes: {printable(said)}",
            "`cyclecloud initialize` once on the server lets it; the README's section Connect has the line",
        )
    addresses = {node.name: node.address for node in nodes if node.address}
    wanted = [name for name in sorted(addresses) if name == host or (host == "login" and name.startswith("login"))]
    if not wanted:
        started = ", ".join(sorted(addresses)) or "none"
        raise AzureRefused(f"no node {host} is started", f"started are: {started}")
    return addresses[wanted[0]]


# ------------------------------------------------------------ the portal


def _portal(found: Built, args: Namespace) -> int:
    """The browser, once the site has proved that it is the one that the deployment has noted."""
    from ..cyclecloud.refusals import NotAsked
    from ..cyclecloud.wire import Wire
    from . import ways

    session = azure.session_of(found.plan, args)
    facts = ways.facts_of(found.plan, session)
    with ways.portal_at(found, facts, args.port) as (address, port):
        if facts.certificate is None:
            print("the deployment has noted no certificate of the site: compare it yourself", file=sys.stderr)
        else:
            try:
                Wire(address, port, facts.certificate).prove()
            except NotAsked as refused:
                raise AzureRefused(refused.reason, refused.hint) from None
        url = f"https://{address}" if port == ways.PORTAL_PORT else f"https://{address}:{port}"
        common.emit(url)
        if facts.certificate is not None:
            print(f"the site is the deployment's; its certificate is {facts.certificate} (SHA-256)", file=sys.stderr)
        if not args.no_browser:
            _browse(url)
        if facts.tunnel:
            print("Ctrl-C closes the way to it", file=sys.stderr)
            _until_interrupted()
    return OK


def _browse(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        print("no browser was found; open the address above", file=sys.stderr)


def _until_interrupted() -> None:
    _end_politely()
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return


# ------------------------------------------------------------ what is printed


def _print(found: Built, args: Namespace, host: str) -> int:
    from ..plan.ssh_config import SERVER
    from . import ways

    plan = found.plan
    facts = ways.facts_of(plan, azure.session_of(plan, args))
    lines = list(facts.lines)
    access = plan.access
    if host == PORTAL and not facts.tunnel:
        common.emit("\n".join([*lines, f"# open https://{facts.address}"]))
        return OK
    if facts.tunnel and access.tunnel:
        lines.append(f"{shlex.join(facts.tunnel_line(ways.SSH_PORT, access.tunnel.ssh))} &")
        # Bash's own way to see whether somebody listens; a tunnel that az does not open ends the wait.
        lines.append(f"until (: </dev/tcp/127.0.0.1/{access.tunnel.ssh}) 2>/dev/null || ! kill -0 $!; do sleep 1; done")
        to = f"{access.ssh_options} {plan.admin.username}@127.0.0.1"
        jump = f"-o ProxyJump={plan.admin.username}@127.0.0.1:{access.tunnel.ssh}"
    else:
        to = f"{plan.admin.username}@{facts.address}"
        jump = f"-o ProxyJump={to}"
    command = shlex.join([" ".join(args.behind)]) if args.behind else ""
    if host == PORTAL:
        local = args.port or (access.tunnel.portal if access.tunnel else 0)
        lines += [f"ssh -N -L {local}:localhost:{ways.PORTAL_PORT} {to}", f"# open https://localhost:{local}"]
    elif host == SERVER:
        lines.append(f"ssh {to} {command}".rstrip())
    else:
        target = shlex.quote(f"{plan.admin.username}@{_known_as(plan, host)}")
        if _known_as(plan, host) == _BY_ADDRESS:
            # The server's own jq takes the address out of what the server knows of its nodes.
            asked = f"{_listing(plan)} | jq -r {shlex.quote(_address_filter(host))}"
            lines.append(f"address=$(ssh {to} {shlex.quote(asked)})")
            target = f'{plan.admin.username}@"${{address}}"'
        lines.append(f"ssh {jump} {target} {command}".rstrip())
    common.emit("\n".join(lines))
    return OK
