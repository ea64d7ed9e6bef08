"""A login to a host of a deployment, or its portal, on whatever way leads there."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from ..azure import addresses
from ..azure.reader import Reader
from ..cyclecloud import child
from ..cyclecloud.cluster import read_nodes
from ..cyclecloud.command_line import NotDone
from ..cyclecloud.shell import Shell, explained, no_ssh
from ..cyclecloud.stdio import carry
from ..cyclecloud.wire import NotAsked, Wire
from ..errors import AzureRefused, CannotRead
from ..plan.deployment import Plan
from ..plan.ssh_config import ROLES, SERVER, host_of, node_stems
from ..words.suggestions import suggestion
from ..words.terminal import printable
from . import asking, way
from .built import Built

PORTAL = "portal"
_NOT_THROUGH = b"stdio forwarding failed"
"""What ssh -W says where the server does not reach the host."""
_ADDRESS = re.compile(r"[0-9]{1,3}(\.[0-9]{1,3}){3}")


def host_in(plan: Plan, word: str) -> str:
    """Return the host that a word means, or PORTAL. Raises CannotRead for a name that no host of this deployment has.

    That is a typing error, or a command in the place of the host.
    """
    host = PORTAL if word == PORTAL else host_of(plan, word)
    slurm = plan.slurm
    names = [*(ROLES if slurm else (SERVER,)), *((slurm.scheduler.host_name,) if slurm else ())]
    starts = node_stems(plan) + (("login-",) if slurm else ())
    if host in (*names, PORTAL) or host.startswith(starts) or _ADDRESS.fullmatch(host):
        return host
    known = ", ".join((*names, PORTAL, *(f"{each}1" for each in starts)))
    raise CannotRead(f"{plan.name} has no host {host}", suggestion(host, [*names, PORTAL]) or f"hosts: {known}")


def login(found: Built, host: str, command: Sequence[str], subscription: str | None) -> list[str]:
    """Return the words of ssh. Raises AzureRefused first, because ssh would only say that the connection was closed."""
    shell = way.shell_of(found, host)
    way.facts_of(found.plan, subscription)
    return shell.line(" ".join(command))


# ------------------------------------------------------------ the connection of ssh


def stdio(found: Built, host: str, subscription: str | None, hear: Callable[[bytes], object]) -> int:
    """Carry the connection to a host on standard input and output; `hear` gets what ssh says. Return its status."""
    if host != SERVER:
        return _through_server(found, host, subscription, hear)
    with way.connected(found.plan, way.facts_of(found.plan, subscription)) as connection:
        carry(connection)
    return 0


def _through_server(found: Built, host: str, subscription: str | None, hear: Callable[[bytes], object]) -> int:
    """Any other host: ssh to the server, whose sshd connects to it."""
    shell = way.shell_of(found, SERVER)
    target = _address_of(found, shell, host, subscription)
    line = ["ssh", "-F", str(shell.config), "-W", f"{target}:{way.SSH_PORT}", SERVER]
    with _started(line) as ssh:
        assert ssh.stderr is not None
        is_cut = False
        for row in ssh.stderr:
            if _NOT_THROUGH in row:
                is_cut = True
            else:
                hear(row)
        status = ssh.wait()
    if status and is_cut:
        raise explained(host, _NOT_THROUGH.decode())
    return status


@contextmanager
def _started(line: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """ssh with our standard input and output, which does not outlive the block."""
    try:
        ssh = subprocess.Popen(line, stderr=subprocess.PIPE, env=child.environment())
    except FileNotFoundError:
        raise no_ssh() from None
    try:
        yield ssh
    finally:
        child.end(ssh)
        assert ssh.stderr is not None
        ssh.stderr.close()


def _address_of(found: Built, server: Shell, host: str, subscription: str | None) -> str:
    """How the server calls it: by its name, else by the address that CycleCloud knows, or Azure of a login node."""
    plan = found.plan
    known = _known_as(plan, host)
    if known is not None:
        return known
    try:
        return _listed_address(server, _listing(plan), host)
    except _NotTold:
        if host != "login":
            raise
        with Reader(asking.session_of(plan, subscription)) as reader:
            address = way.known(lambda: addresses.of_login_node(plan, _cluster_of(plan), reader))
        if not isinstance(address, str):
            raise
        return address


class _NotTold(AzureRefused):
    """The command line of the server does not list its nodes."""


def _known_as(plan: Plan, host: str) -> str | None:
    """Return the name or address by which the network knows a host; None where only its address leads there."""
    slurm = plan.slurm
    if slurm is None or _ADDRESS.fullmatch(host):
        return host
    if host == "scheduler" or host == slurm.scheduler.host_name:
        return slurm.scheduler.host_name
    if slurm.node_name_is_host_name and not host.startswith("login"):
        return host
    return None


def _listing(plan: Plan) -> str:
    """Return the command that asks CycleCloud, on the server, for the addresses of nodes."""
    return shlex.join(["cyclecloud", "show_nodes", "-c", _cluster_of(plan), "--states=Started", "--format=json"])


def _cluster_of(plan: Plan) -> str:
    return plan.slurm.cluster_name if plan.slurm else ""


def _listed_address(server: Shell, ask: str, host: str) -> str:
    ran = server.run(ask, limit_s=120)
    try:
        nodes = read_nodes(ran.out)
    except NotDone:
        nodes = ()
    if not nodes and (ran.status != 0 or ran.out.strip() not in ("", "[]")):
        said = " ".join((ran.err or ran.out).split())[:200]
        raise _NotTold(
            f"the server does not list its nodes: {printable(said)}",
            "run `cyclecloud initialize` once on the server; the README's section Connect has the line",
        )
    addresses = {node.name: node.address for node in nodes if node.address}
    wanted = [name for name in sorted(addresses) if name == host or (host == "login" and name.startswith("login"))]
    if not wanted:
        started = ", ".join(sorted(addresses)) or "none"
        raise AzureRefused(f"no node {host} is started", f"started are: {started}")
    return addresses[wanted[0]]


# ------------------------------------------------------------ the portal


class Portal(Struct, frozen=True):
    """The site's address, once it has proved that it is the one that the deployment has noted."""

    url: str
    certificate: str | None
    """Its SHA-256; None where the deployment has noted none."""
    is_forwarded: bool
    """Whether it can be reached only as long as it is held open here."""


@contextmanager
def portal(found: Built, port: int, subscription: str | None) -> Iterator[Portal]:
    """Raises AzureRefused, and Unreachable."""
    facts = way.facts_of(found.plan, subscription)
    with way.portal_at(found, facts, port) as (address, at):
        if facts.certificate is not None:
            try:
                Wire(address, at, facts.certificate).prove()
            except NotAsked as refused:
                raise AzureRefused(refused.reason, refused.hint) from None
        url = f"https://{address}" if at == way.PORTAL_PORT else f"https://{address}:{at}"
        yield Portal(url, facts.certificate, bool(facts.tunnel))


# ------------------------------------------------------------ what is printed


def lines(found: Built, host: str, command: Sequence[str], port: int, subscription: str | None) -> list[str]:
    plan = found.plan
    facts = way.facts_of(plan, subscription)
    typed = list(facts.lines)
    access = plan.access
    if host == PORTAL and not facts.tunnel:
        return [*typed, f"# open https://{facts.address}"]
    if facts.tunnel and access.tunnel:
        typed.append(f"{shlex.join(facts.tunnel_line(way.SSH_PORT, access.tunnel.ssh))} &")
        # Bash's own way to see whether somebody listens; a tunnel that az does not open ends the wait.
        typed.append(f"until (: </dev/tcp/127.0.0.1/{access.tunnel.ssh}) 2>/dev/null || ! kill -0 $!; do sleep 1; done")
        to = f"{access.ssh_options} {plan.admin.username}@127.0.0.1"
        jump = f"-o ProxyJump={plan.admin.username}@127.0.0.1:{access.tunnel.ssh}"
    else:
        to = f"{plan.admin.username}@{facts.address}"
        jump = f"-o ProxyJump={to}"
    words = shlex.join([" ".join(command)]) if command else ""
    if host == PORTAL:
        local = port or (access.tunnel.portal if access.tunnel else 0)
        typed += [f"ssh -N -L {local}:localhost:{way.PORTAL_PORT} {to}", f"# open https://localhost:{local}"]
    elif host == SERVER:
        typed.append(f"ssh {to} {words}".rstrip())
    else:
        known = _known_as(plan, host)
        target = shlex.quote(f"{plan.admin.username}@{known}")
        if known is None:
            # The server's own jq takes the address out of what the server knows of its nodes.
            wanted = 'startswith("login")' if host == "login" else f". == {json.dumps(host)}"
            chosen = f"[.[] | select(.Name | {wanted})] | sort_by(.Name)[0].Instance.PrivateIp"
            asked = f"{_listing(plan)} | jq -r {shlex.quote(chosen)}"
            typed.append(f"address=$(ssh {to} {shlex.quote(asked)})")
            target = f'{plan.admin.username}@"${{address}}"'
        typed.append(f"ssh {jump} {target} {words}".rstrip())
    return typed
