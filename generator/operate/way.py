"""The way from this machine to the server of a deployment: its address, or a tunnel through the Bastion.

What is true now is asked of Azure: outputs of the deployment, and where there are none, the resources themselves. The
ProxyCommand of `ssh_config` knows only a name, and ssh is used from any folder: where the definition is, is noted.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec import Struct

from ..azure import addresses, az_lines
from ..azure.deployment import look
from ..azure.resource_ids import server_id
from ..azure.standing import Unknown
from ..azure.standing import known as azure_known
from ..cyclecloud import child, host_keys
from ..cyclecloud.command_line import NotDone
from ..cyclecloud.shell import Shell, Unreachable, explained, last_line, no_ssh
from ..cyclecloud.wire import NotAsked as NotAnswered
from ..disk.user_cache import user_cache
from ..errors import AzureRefused, CannotRead, CycleForgeError, ProgramMissing
from ..plan.deployment import Plan
from ..plan.ssh_config import SERVER, ssh_plan
from ..words.terminal import printable
from . import asking, definitions
from .built import Built
from .reading import Target

SSH_PORT = 22
PORTAL_PORT = 443
CONNECT_S = 15.0
TUNNEL_S = 120.0
_OPEN = "open"
_Value = TypeVar("_Value")


class Facts(Struct, frozen=True):
    """What Azure knows of the server."""

    address: str
    """Where users reach it; empty behind a Bastion."""
    tunnel: tuple[str, ...]
    """`az network bastion tunnel` up to the port of the target; empty where there is an address."""
    host_keys: tuple[str, ...]
    certificate: str | None
    lines: tuple[str, ...]
    """The `az` lines that ask the same."""

    def tunnel_line(self, remote: int, local: int) -> list[str]:
        return [*self.tunnel, "--resource-port", str(remote), "--port", str(local)]


def facts_of(plan: Plan, subscription: str | None) -> Facts:
    """Ask, and change nothing. Raises AzureRefused."""
    session = asking.session_of(plan, subscription)
    with asking.reader(plan, session, "nothing was connected; try again when Azure can be reached") as reader:
        seen = look(plan, reader)
        if seen is None:
            raise AzureRefused(f"{plan.name} is not deployed", f"`cycleforge deploy {plan.definition_name}` does it")
        outputs = {name: entry.get("value") for name, entry in seen.outputs.items() if isinstance(entry, Mapping)}
        lines = list(reader.lines)
        address, tunnel = "", tuple[str, ...]()
        if plan.access.tunnel:
            bastion = str(outputs.get("bastionName") or "")
            where = (bastion or plan.names.bastion, plan.resource_group)
            if not bastion and plan.network.vnet_id:
                lines.append(az_lines.bastion_of(plan.network.vnet_id, session.subscription))
                where = _found(addresses.bastion(plan.network.vnet_id, reader), "Bastion of the network")
            target = str(outputs.get("serverId") or server_id(plan, session.subscription))
            words = ["az", "network", "bastion", "tunnel", "--name", where[0], "--resource-group", where[1]]
            tunnel = (*words, "--target-resource-id", target, "--subscription", session.subscription)
        else:
            output = outputs.get("serverPublicIp" if plan.access.address_field == "publicIps" else "serverPrivateIp")
            if not output:
                lines.append(az_lines.address_of(plan, session.subscription))
            address = str(output or _found(addresses.of_server(plan, reader), "address of the server"))
    keys = outputs.get("serverSshHostKeys") or ()
    return Facts(
        address, tunnel, tuple(map(str, keys)), str(outputs.get("serverCertificateSha256") or "") or None, tuple(lines)
    )


def _found(value: _Value | None, what: str) -> _Value:
    if value is None:
        raise AzureRefused(f"Azure knows no {what}", "the server must be there, and you need the right to read it")
    return value


@contextmanager
def refusals() -> Iterator[None]:
    """What a server or a host does not do as an error of the verb."""
    try:
        yield
    except NotDone as not_done:
        raise AzureRefused(printable(not_done.text), not_done.hint) from None
    except Unreachable as lost:
        raise AzureRefused(printable(lost.reason), lost.hint) from None


def known(ask: Callable[[], _Value]) -> _Value | Unknown:
    """Return an answer, or why it is not known: one source that is silent does not hide the others."""
    try:
        return azure_known(ask)
    except NotDone as not_done:
        return Unknown(printable(not_done.text), not_done.hint)
    except (Unreachable, NotAnswered) as lost:
        return Unknown(printable(lost.reason), lost.hint)
    except CycleForgeError as error:
        return Unknown(error.message, error.hint)


@contextmanager
def connected(plan: Plan, facts: Facts) -> Iterator[socket.socket]:
    """A connection to the server's sshd. Its pinned host keys are where ssh looks for them by then."""
    with _reached(plan, facts, SSH_PORT) as (address, port):
        ssh = ssh_plan(plan)
        known = ssh_home() / Path(ssh.known_hosts).name
        if facts.host_keys and not host_keys.is_known(known, ssh.key_alias, facts.host_keys):
            host_keys.learn(known, ssh.key_alias, facts.host_keys, address, port)
        with _opened(plan, address, port) as connection:
            yield connection


@contextmanager
def portal_at(found: Built, facts: Facts, port: int = 0) -> Iterator[tuple[str, int]]:
    """Address and port of the portal, for as long as it is used. Raises AzureRefused and Unreachable."""
    if facts.tunnel:
        ports = found.plan.access.tunnel
        with forward(found, port, preferred=ports.portal if ports else 0) as local:
            yield "localhost", local
    else:
        _opened(found.plan, facts.address, PORTAL_PORT).close()
        yield facts.address, PORTAL_PORT


def shell_of(found: Built, host: str, *, options: Sequence[str] = (), told: Mapping[str, str] | None = None) -> Shell:
    """One host of the deployment. Raises CannotRead where the folder was built before it had an `ssh_config`."""
    config = config_of(found)
    if not config.is_file():
        raise CannotRead(f"there is no {config}", f"`cycleforge build {found.plan.definition_name}` makes it")
    return Shell(config, host, options=options, told=told)


def config_of(found: Built) -> Path:
    return found.folder / ssh_plan(found.plan).file_names[0]


def ssh_home() -> Path:
    """Where ssh looks for `~/.ssh`: the home of the account, whatever HOME says. Source: ssh(1)"""
    return Path(pwd.getpwuid(os.getuid()).pw_dir) / ".ssh"


# ------------------------------------------------------------


@contextmanager
def _reached(plan: Plan, facts: Facts, remote: int) -> Iterator[tuple[str, int]]:
    if not facts.tunnel:
        yield facts.address, remote
        return
    local = child.free_port()
    az = shutil.which("az")
    if az is None:
        raise ProgramMissing("az is not installed", "the Azure command line opens tunnels through a Bastion")
    line = [az, *facts.tunnel_line(remote, local)[1:]]
    with child.held(line, local) as tunnel:
        try:
            tunnel.wait_until_open(TUNNEL_S)
        except child.Ended as ended:
            said = last_line(ended.said)
            raise AzureRefused(
                f"the Bastion opens no tunnel: {said or 'az says nothing'}",
                "`az extension add --name bastion --upgrade`, `az login`; you need the right to read the server's VM, "
                "its network interface and the Bastion, which must be of the Standard SKU or better",
            ) from None
        yield "127.0.0.1", local


def _opened(plan: Plan, address: str, port: int) -> socket.socket:
    try:
        connection = socket.create_connection((address, port), CONNECT_S)
    except OSError as error:
        reason = error.strerror or ("no answer" if isinstance(error, TimeoutError) else str(error))
        hint = plan.access.when_silent(plan.network.allowed_sources)
        raise AzureRefused(f"{address} does not answer at port {port}: {reason.lower()}", hint) from None
    connection.settimeout(None)
    return connection


@contextmanager
def forward(
    found: Built,
    wanted: int = 0,
    *,
    preferred: int = 0,
    options: Sequence[str] = (),
    told: Mapping[str, str] | None = None,
) -> Iterator[int]:
    """The portal at a port of this machine, through ssh to the server: a tunnel of `az` serves one client only.

    Raises CannotRead where the `wanted` port is taken, and Unreachable.
    """
    shell = shell_of(found, SERVER, options=options, told=told)
    with ExitStack() as stack:
        local = child.free_port(wanted or preferred)
        if wanted and local != wanted:
            raise CannotRead(f"port {wanted} of this machine is taken", "without --port a free one is chosen")
        try:
            stack.enter_context(_forwarded(shell, local))
        except _TakenError:
            # Another command was faster.
            local = child.free_port()
            stack.enter_context(_forwarded(shell, local))
        yield local


class _TakenError(Unreachable):
    """Someone else listens at the port by now."""


@contextmanager
def _forwarded(shell: Shell, local: int) -> Iterator[None]:
    forward = f"127.0.0.1:{local}:localhost:{PORTAL_PORT}"
    # ssh listens before it begins the command there, which tells us so: at the port someone else might listen. It ends
    # when our end of its input does, and ssh with it, even if we are killed.
    told = ["-T", "-o", "ExitOnForwardFailure=yes", "-L", forward, shell.host, f"echo {_OPEN}; exec cat"]
    with tempfile.TemporaryFile() as said:
        line = ["ssh", "-F", str(shell.config), *shell.options, *told]
        environment = {**child.environment(), **shell.told}
        try:
            ssh = subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, env=environment)
        except FileNotFoundError:
            raise no_ssh() from None
        try:
            assert ssh.stdout is not None
            if ssh.stdout.readline().decode(errors="replace").strip() != _OPEN:
                ssh.wait()
                said.seek(0)
                words = said.read().decode(errors="replace")
                if "Address already in use" in words:
                    raise _TakenError(f"port {local} of this machine is taken")
                raise explained(shell.host, words)
            yield
        finally:
            child.end(ssh)
            assert ssh.stdout is not None
            ssh.stdout.close()


_TOLD = "CYCLEFORGE_CONNECT"
"""What ssh's ProxyCommand is told by the command of ours that starts ssh."""


class _Place(msgspec.Struct):
    definition: str
    out: str
    subscription: str | None = None
    deployment: str | None = None
    """Its name; the definition may have another one by now."""


def tell_ssh(found: Built, target: Target) -> None:
    """The ssh that this process starts finds this definition and its folder again, and `cycleforge` itself.

    It is noted as well, for whoever uses `ssh_config`, `ssh_hosts` or the lines of --print from elsewhere. That is only
    a convenience: a failure is none.
    """
    if target.name == "-":
        raise CannotRead("a definition from standard input has no name to connect by", "give it a file")
    os.environ |= told_ssh(found, target.subscription)
    path_with_us()
    try:
        note = _note(found.plan.definition_name)
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(os.environ[_TOLD], encoding="utf-8")
    except (OSError, CannotRead):
        return


def told_ssh(found: Built, subscription: str | None) -> dict[str, str]:
    """What one ssh alone is told, where one command starts several for several deployments."""
    definition, out = Path(found.definition.filename).resolve(), found.folder.parent.resolve()
    place = _Place(str(definition), str(out), subscription, found.plan.name)
    return {_TOLD: msgspec.json.encode(place).decode()}


def path_with_us() -> None:
    """ssh finds `cycleforge` although nobody has put its folder into PATH."""
    here = Path(sys.argv[0]).resolve().parent
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    if (here / "cycleforge").is_file() and str(here) not in folders:
        os.environ["PATH"] = os.pathsep.join([str(here), *folders])


def noted_target(target: Target) -> Target:
    """What whoever started ssh said, else what is here, else what was used last."""
    place = _read(os.environ.get(_TOLD, ""))
    if place is None or Path(place.definition).stem != target.name:
        place, here = _noted(target.name), _here(target.name)
        # One that CycleForge brings is not meant by a name that was used for another one.
        if here is not None and (place is None or not definitions.is_shipped(here)):
            return target
        if place is None:
            hint = f"use `cycleforge connect {target.name}` once in the folder that has the definition"
            raise CannotRead(f"there is no definition '{target.name}' here", hint)
    return Target(place.definition, Path(place.out), target.subscription or place.subscription, place.deployment)


def _here(name: str) -> Path | None:
    try:
        return definitions.look(name)
    except CannotRead:
        return None


def _note(name: str) -> Path:
    return user_cache(os.environ) / "connect" / f"{name}.json"


def _noted(name: str) -> _Place | None:
    try:
        return _read(_note(name).read_text(encoding="utf-8"))
    except (OSError, ValueError, CannotRead):
        return None


def _read(said: str) -> _Place | None:
    try:
        return msgspec.json.decode(said, type=_Place)
    except (msgspec.DecodeError, ValueError):
        return None
