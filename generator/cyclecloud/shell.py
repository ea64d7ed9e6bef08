"""One host of a deployment, through the user's own `ssh` and the `ssh_config` of the built folder.

Nobody here knows a Bastion, a hub or an address: `ssh_config` does. Commands are text for the host's POSIX shell.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct

from ..errors import CannotRead, ProgramMissing
from ..login import NOT_SIGNED_IN
from ..words.terminal import printable
from . import copying, unpack
from .child import MOST_ERRORS, Drain, environment, stop

_LOST = 255
"""What ssh ends with when the connection is what failed; a command may end with it, too."""
_MOST_BYTES = 256 * 1024**2
"""Of what one command says; a host that sends more is not listened to."""
_LONGEST_LINE = 1024**2
"""Bytes; a longer line of a command that is followed comes in pieces."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OWN = "\x1e255 is the command's own\x1e"
"""What the host says on its standard error where 255 is not ssh's."""
_TAR_ENDS = "Exiting with failure status due to previous errors"
"""What tar says last, behind the reason."""
_AGAIN = "run the same command again; what was started there may still be running"
_VPN = "connect your VPN if the deployment has private addresses"
_KNOWN = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the one that was known",
        "a new machine has a new key, but so does an attacker in between: check whether the machine was replaced, "
        "then remove the old key with the line `ssh-keygen -f …` that ssh prints",
    ),
    (
        "Host key verification failed",
        "its host key is not known",
        "`cycleforge connect NAME` writes the server's from the deployment",
    ),
    (
        "Permission denied",
        "it refuses your key",
        "the private key belongs to `admin.ssh_public_key`; `ssh-add -l` lists the ones that are offered",
    ),
    ("Could not resolve hostname", "its name is not known", "the name is one of `ssh_config` or of a running node"),
    ("Connection refused", "nothing listens on its port 22", "check that the machine is running"),
    ("No route to host", "its address cannot be reached", _VPN),
    ("Network is unreachable", "its address cannot be reached", _VPN),
    ("timed out", "it does not answer", f"check that the machine is running; {_VPN}"),
    (
        "stdio forwarding failed",
        "the server does not reach it",
        "it is stopped or still booting: `cycleforge nodes NAME` shows it, and `cycleforge start NAME` starts a "
        "cluster that is off",
    ),
    (
        "kex_exchange_identification",
        "it closes the connection at once",
        "it may still be booting: wait a moment and try again",
    ),
    ("not responding", "the connection was lost", _AGAIN),
    ("Connection reset", "the connection was lost", _AGAIN),
    ("Broken pipe", "the connection was lost", _AGAIN),
    ("closed by remote host", "the connection was lost", _AGAIN),
    ("Connection closed by", "it closes the connection", "check that the machine is running"),
)
"""(what ssh prints, why, what to do). Source: https://github.com/openssh/openssh-portable (sshconnect.c, sshconnect2.c,
packet.c, readconf.c)."""
_OURS = re.compile(r"^cycleforge: (?P<reason>.+)(?:\n  hint: (?P<hint>.+))?", re.MULTILINE)
"""What `cycleforge connect --stdio` says, behind which ssh only says that there is no connection."""


class Unreachable(Exception):  # noqa: N818 - named by what happened
    """A host that ssh does not reach, or a connection that was lost."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


class NotSignedIn(Unreachable):
    """Azure was to be asked for the way, and there is no login for it: no way that Azure opens leads to the host."""


class Ran(Struct, frozen=True):
    status: int
    out: str
    err: str


class Runs(Protocol):
    def run(self, command: str, *, input: bytes = b"", limit_s: float) -> Ran:  # noqa: A002 - as subprocess calls it
        """Run it to its end. Raises Unreachable."""


class Shell:
    """One host, which `ssh_config` names."""

    def __init__(
        self, config: Path, host: str, *, options: Sequence[str] = (), told: Mapping[str, str] | None = None
    ) -> None:
        """`told`: what the ProxyCommand of this host alone finds in its environment."""
        if not _NAME.fullmatch(host):
            raise CannotRead(f"{host!r} is not the name of a host", "`cycleforge nodes NAME` lists them")
        self.config, self.host, self.options, self.told = config, host, tuple(options), told or {}

    def line(self, command: str = "", *, tty: bool = False) -> list[str]:
        """The words of ssh; without a command it is a shell."""
        words = ["ssh", "-F", str(self.config), *self.options, *(["-t"] if tty else []), self.host]
        return [*words, *([command] if command else [])]

    def run(self, command: str, *, input: bytes = b"", limit_s: float) -> Ran:  # noqa: A002 - as subprocess calls it
        """Run it to its end. Raises Unreachable; what was begun by then may go on."""
        status, out, err = self._bytes(command, input, limit_s)
        return Ran(status, out.decode(errors="replace"), err.decode(errors="replace"))

    def follow(self, command: str) -> Iterator[str]:
        """Its lines as they come, those of its standard error among them, without the ends of lines.

        Closing the iterator ends it. Raises Unreachable when the connection is lost.
        """
        with self._started(f"exec 2>&1; {command}", subprocess.DEVNULL) as (ssh, said):
            assert ssh.stdout is not None
            while line := ssh.stdout.readline(_LONGEST_LINE):
                yield line.decode(errors="replace").rstrip("\r\n")
            self._checked(ssh.wait(), said.content())

    def send(self, local: Path, remote: str) -> None:
        """Copy a file or a folder; `remote` is its new name, relative to the user's home unless it begins with a slash.

        It is there as a whole or not at all. In an existing folder, files of the same name are replaced,
        each as a whole, and what else is in it stays. Raises Unreachable, and OSError for what cannot be read here.
        """
        mark = copying.new_mark()
        command = copying.receive(remote, mark, is_folder=local.is_dir())
        with self._started(command, subprocess.PIPE) as (ssh, said):
            assert ssh.stdin is not None
            assert ssh.stdout is not None
            out = Drain(ssh.stdout, MOST_ERRORS)
            # A connection that is lost shows as a broken pipe here, and its reason in what ssh said.
            with suppress(BrokenPipeError), ssh.stdin as stream:
                copying.write(local, mark, stream)
            ended = self._checked(ssh.wait(), said.content())
            self._copied(ended, out.content(), f"copy {local} to {self.host}:{remote}")

    def fetch(self, remote: str, local: Path) -> list[str]:
        """Copy a file or a folder from there to its new name `local`. Return what was left behind, a line per reason.

        It is there as a whole or not at all, and a folder that is there is treated as `send` does. Links, devices and
        what is too large stay behind. Raises Unreachable, and OSError for what cannot be written here.
        """
        local.parent.mkdir(parents=True, exist_ok=True)
        what = f"copy {self.host}:{remote} to {local}"
        with (
            tempfile.TemporaryDirectory(prefix=f".{local.name}.part-", dir=local.parent) as folder,
            self._started(copying.give(remote), subprocess.DEVNULL) as (ssh, said),
        ):
            assert ssh.stdout is not None
            try:
                left = copying.read(ssh.stdout, Path(folder))
            except unpack.CutOff:
                self._copied(self._checked(ssh.wait(), said.content()), b"", what)
                raise Unreachable(
                    f"the transfer of {remote} from {self.host} was cut off",
                    f"run the command again; nothing of it was written to {local}",
                ) from None
            except unpack.Refused as refused:
                by_hand = shlex.join(["scp", "-F", str(self.config), "-r", f"{self.host}:{remote}", str(local)])
                raise Unreachable(
                    f"could not {what}: {self.host} sent {refused}",
                    f"nothing of it was written; if you trust that host, copy what you need with `{by_hand}`",
                ) from None
            self._copied(self._checked(ssh.wait(), said.content()), b"", what)
            copying.place(Path(folder), local)
        return left

    # ------------------------------------------------------------

    def _bytes(self, command: str, given: bytes, limit_s: float) -> tuple[int, bytes, bytes]:
        late = threading.Event()
        with self._started(command, subprocess.PIPE) as (ssh, said):
            assert ssh.stdin is not None
            assert ssh.stdout is not None
            out = Drain(ssh.stdout, _MOST_BYTES, lambda: stop(ssh))

            def give_up() -> None:
                late.set()
                stop(ssh)

            timer = threading.Timer(limit_s, give_up)
            timer.start()
            try:
                with suppress(BrokenPipeError), ssh.stdin as stream:
                    stream.write(given)
                status = ssh.wait()
                content, error = out.content(), said.content()
            finally:
                timer.cancel()
        hint = "what was started there may still be running; check before you repeat it"
        if out.is_cut:
            most = f"{_MOST_BYTES // 1024**2} MiB"
            raise Unreachable(f"{self.host} sent more than {most} in answer to `{_short(command)}`", hint)
        if late.is_set():
            raise Unreachable(f"{self.host} did not end `{_short(command)}` within {limit_s:g} s", hint)
        ended, words = self._checked(status, error)
        return ended, content, words

    @contextmanager
    def _started(self, command: str, stdin: int) -> Iterator[tuple[subprocess.Popen[bytes], Drain]]:
        """ssh, which does not outlive the block, and the end of what it and the command say on standard error."""
        pipe = subprocess.PIPE
        try:
            line = self.line(_told(command))
            ssh = subprocess.Popen(line, stdin=stdin, stdout=pipe, stderr=pipe, env={**environment(), **self.told})
        except FileNotFoundError:
            raise no_ssh() from None
        try:
            assert ssh.stderr is not None
            yield ssh, Drain(ssh.stderr, MOST_ERRORS)
        finally:
            _end(ssh)

    def _checked(self, status: int, said: bytes) -> tuple[int, bytes]:
        """The command's own status and words. Raises Unreachable where they are ssh's."""
        own = _OWN.encode()
        if status == _LOST and own in said:
            return status, said.replace(own, b"")
        if status == _LOST or status < 0:
            raise explained(self.host, said.decode(errors="replace"))
        return status, said

    @staticmethod
    def _copied(ended: tuple[int, bytes], out: bytes, what: str) -> None:
        status, said = ended
        if status:
            reason = last_line((said + out).decode(errors="replace")) or f"status {status}"
            raise Unreachable(f"could not {what}: {reason}", "nothing was left half copied")


def no_ssh() -> ProgramMissing:
    return ProgramMissing("ssh is not installed", "install OpenSSH's client (Debian: openssh-client)")


def _told(command: str) -> str:
    """The command, for whatever shell the user has there; its own 255 is marked."""
    marked = f"printf %s {shlex.quote(_OWN)} >&2"
    return f'sh -c {shlex.quote(command)}; s=$?; [ "$s" -ne {_LOST} ] || {marked}; exit "$s"'


def _short(command: str, width: int = 60) -> str:
    return command if len(command) <= width else f"{command[:width]}…"


def _end(ssh: subprocess.Popen[bytes]) -> None:
    stop(ssh)
    for stream in (ssh.stdin, ssh.stdout, ssh.stderr):
        if stream is not None:
            with suppress(OSError):
                stream.close()


def explained(host: str, said: str) -> Unreachable:
    """What ssh said, as an error; its own last line stays in it."""
    last = last_line(said).removeprefix("ssh: ")
    ours = _OURS.search(said)
    if ours:
        kind = NotSignedIn if ours["reason"].startswith(NOT_SIGNED_IN) else Unreachable
        return kind(f"{host}: {printable(ours['reason'])}", printable(ours["hint"] or "") or None)
    for text, why, hint in _KNOWN:
        if text.lower() in said.lower():
            return Unreachable(f"{host}: {why} (ssh: {last})", hint)
    return Unreachable(f"{host}: the connection was lost" + (f" (ssh: {last})" if last else ""), _AGAIN)


def last_line(said: str) -> str:
    """The last line that says something, for a terminal."""
    lines = [line.strip() for line in said.splitlines() if line.strip() and _TAR_ENDS not in line]
    return printable(lines[-1]) if lines else ""
