"""One host: the real sshd, one process for each connection, which a thread of the test accepts.

So a host listens as soon as it is made, on a port that nobody else has, and the test decides what becomes of a
connection. Every command of every user of the host runs in the host's own home, with the host's own programs first in
PATH, through `ForceCommand`. Source: sshd(8) `-i`, sshd_config(5).
"""

from __future__ import annotations

import getpass
import os
import shlex
import shutil
import signal
import socket
import subprocess
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

USER = getpass.getuser()
_PRIVILEGED = Path("/run/sshd")
"""Where the program of Debian wants an empty folder of root; its unit makes it at each boot."""


def why_not() -> str | None:
    missing = [name for name in ("ssh", "sshd", "ssh-keygen") if shutil.which(name) is None]
    return f"{', '.join(missing)} not installed" if missing else None


def new_key(path: Path) -> Path:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path], check=True)
    return path


@dataclass
class Host:
    """A machine that is reached at `address` and `port`."""

    name: str
    folder: Path
    authorised: Path
    """Public keys that may log in."""
    address: str = "127.0.0.1"
    names: dict[str, str] = field(default_factory=dict)
    """Names that this host alone resolves, for those who jump through it; needs root."""
    fixed_port: int = 0
    mode: str = "answers"
    """`answers`, `refuses` (closes at once), `hangs` (takes the connection and says nothing)."""
    connections: int = 0

    def __post_init__(self) -> None:
        self.home, self.programs = self.folder / "home", self.folder / "bin"
        for each in (self.home, self.programs):
            each.mkdir(parents=True)
        self.key = new_key(self.folder / "host_key")
        self._listener = socket.create_server((self.address, self.fixed_port))
        self.port: int = self._listener.getsockname()[1]
        self._sessions: list[subprocess.Popen[bytes]] = []
        self._held: list[socket.socket] = []
        self._write_configuration()

    def __enter__(self) -> Self:
        if os.geteuid() == 0:
            _PRIVILEGED.mkdir(mode=0o755, exist_ok=True)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        self.cut()
        for each in self._held:
            each.close()

    @property
    def host_key(self) -> str:
        return " ".join(self.key.with_suffix(".pub").read_text().split()[:2])

    def cut(self) -> None:
        """Kill what serves its connections, as a machine that is lost."""
        for session in self._sessions:
            for pid in (session.pid, *children_of(session.pid)):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            session.wait()
        self._sessions.clear()

    def program(self, name: str, text: str) -> None:
        """A program that is found first on this host."""
        path = self.programs / name
        path.write_text(text)
        path.chmod(0o755)

    # ------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            try:
                taken, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            if self.mode == "refuses":
                taken.close()
            elif self.mode == "hangs":
                self._held.append(taken)
            else:
                self._session(taken)

    def _session(self, taken: socket.socket) -> None:
        with taken, (self.folder / "sshd.log").open("ab") as log:
            sshd = [shutil.which("sshd") or "sshd", "-i", "-e", "-f", str(self.folder / "sshd_config")]
            client = taken.fileno()
            self._sessions.append(subprocess.Popen(self._inside(sshd), stdin=client, stdout=client, stderr=log))

    def _inside(self, command: list[str]) -> list[str]:
        """The command, with this host's own /etc/hosts."""
        if not self.names:
            return command
        hosts = self.folder / "hosts"
        known = {"localhost": "127.0.0.1"} | self.names
        hosts.write_text("".join(f"{address} {name}\n" for name, address in known.items()))
        mount = f"mount --bind {shlex.quote(str(hosts))} /etc/hosts && exec {shlex.join(command)}"
        return ["unshare", "--mount", "sh", "-c", mount]  # fmt: skip

    def _write_configuration(self) -> None:
        entry = self.folder / "entry"
        entry.write_text(
            "#!/bin/bash\n"
            f"export HOME={shlex.quote(str(self.home))} HOSTNAME={self.name}\n"
            f"PATH={shlex.quote(str(self.programs))}:$PATH\n"
            'cd "$HOME" && exec bash -c "${SSH_ORIGINAL_COMMAND:-exec bash -l}"\n'
        )  # fmt: skip
        entry.chmod(0o755)
        (self.folder / "sshd_config").write_text(
            f"HostKey {self.key}\n"
            f"AuthorizedKeysFile {self.authorised}\n"
            f"ForceCommand {entry}\n"
            f"PidFile {self.folder}/pid\n"
            "Subsystem sftp /usr/lib/openssh/sftp-server\n"
            "StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nLogLevel VERBOSE\n"
            "AcceptEnv LANG LC_*\n"
            # The one that clients prefer takes them 90 ms of computing.
            "KexAlgorithms curve25519-sha256\n"
        )


def children_of(pid: int) -> list[int]:
    """Processes below one, each before those that it started: no sshd may tell how its command ended."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                found += [int(child), *children_of(int(child))]
    return found
