"""Why ssh did not come through, in words that say what to do.

Sources of the texts: https://github.com/openssh/openssh-portable (sshconnect.c, sshconnect2.c, packet.c, readconf.c).
"""

from __future__ import annotations

import re

from ..login import NOT_SIGNED_IN
from ..words.terminal import printable


class Unreachable(Exception):  # noqa: N818 - named by what happened
    """A host that ssh does not reach, or a connection that was lost."""

    def __init__(self, reason: str, hint: str | None = None) -> None:
        super().__init__(reason)
        self.reason, self.hint = reason, hint


class NotSignedIn(Unreachable):
    """Azure was to be asked for the way, and nobody is signed in there: no way that Azure opens leads to the host."""


_TAR_ENDS = "Exiting with failure status due to previous errors"
"""What tar says last, behind the reason."""
_AGAIN = "type the same command again; what was begun there may go on"
_VPN = "connect your VPN, where the deployment has private addresses"
_KNOWN = (
    (
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its host key is not the one that was known",
        "a new machine has a new key, but so has an attacker in between: see whether the machine was replaced, "
        "then forget the old key with the line `ssh-keygen -f …` that ssh prints",
    ),
    (
        "Host key verification failed",
        "its host key is not known",
        "`cycleforge connect NAME` writes the server's from the deployment",
    ),
    (
        "Permission denied",
        "it does not take your key",
        "the private key belongs to `admin.ssh_public_key`; `ssh-add -l` lists the ones that are offered",
    ),
    ("Could not resolve hostname", "its name is not known", "the name is one of `ssh_config` or of a running node"),
    ("Connection refused", "nobody listens at its port 22", "see whether the machine runs"),
    ("No route to host", "there is no way to its address", _VPN),
    ("Network is unreachable", "there is no way to its address", _VPN),
    ("timed out", "it does not answer", f"see whether the machine runs; {_VPN}"),
    (
        "stdio forwarding failed",
        "the server does not reach it",
        "it is not started, or still boots: `cycleforge nodes NAME` shows it, and `cycleforge start NAME` starts a "
        "cluster that is off",
    ),
    (
        "kex_exchange_identification",
        "it closes the connection at once",
        "see whether the machine is just booting, and try again",
    ),
    ("not responding", "the connection was lost", _AGAIN),
    ("Connection reset", "the connection was lost", _AGAIN),
    ("Broken pipe", "the connection was lost", _AGAIN),
    ("closed by remote host", "the connection was lost", _AGAIN),
    ("Connection closed by", "it closes the connection", "see whether the machine runs"),
)


_OURS = re.compile(r"^cycleforge: (?P<reason>.+)(?:\n  hint: (?P<hint>.+))?", re.MULTILINE)
"""What `cycleforge connect --stdio` says, behind which ssh only says that there is no connection."""


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
