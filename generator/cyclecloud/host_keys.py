"""The server's SSH host keys, as the deployment has read them on it, in a file of known hosts of that deployment alone.

The deployment knows fingerprints, a file of known hosts has keys; a key is taken only if its fingerprint is known.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import subprocess
from collections.abc import Iterable
from pathlib import Path

from ..disk import file as whole
from ..disk.reasons import refusing
from ..errors import ProgramMissing
from ..words.terminal import printable
from .shell import Unreachable, last_line

_KINDS = (("ssh-ed25519", "ed25519"), ("ecdsa-sha2-", "ecdsa"), ("ssh-rsa", "rsa"))
"""What a type of key begins with, and what ssh-keyscan calls it: https://man.openbsd.org/ssh-keyscan"""
_LIMIT_S = 60


def is_known(file: Path, alias: str, pins: Iterable[str]) -> bool:
    """Whether the file has keys of that name, and none that is not pinned."""
    known = [pin for name, pin, _ in _lines(file) if name == alias]
    return bool(known) and set(known) <= set(pins)


def learn(file: Path, alias: str, pins: Iterable[str], address: str, port: int) -> None:
    """Ask the server for a key, and write it if it is pinned. Raises Unreachable for any other key, and CannotWrite."""
    wanted = sorted(pins)
    shown = list(_scanned(address, port, wanted))
    kept = [line for pin, line in shown if pin in wanted]
    if not kept:
        reason = f"the server shows the host key {printable(shown[0][0])}, which is not one of the deployment's"
        raise Unreachable(
            f"{reason} ({', '.join(map(printable, wanted))})",
            "nothing was sent to it. If its keys were renewed on purpose, `cycleforge deploy NAME "
            "--rerun-first-boot` records the new ones; otherwise someone may be in between",
        )
    others = [text for name, _, text in _lines(file) if name != alias]
    _write(file, [*others, *(f"{alias} {line}" for line in kept)])


def fingerprint(kind: str, key: str) -> str | None:
    """`ssh-ed25519 SHA256:…`, as the deployment has it; None for what is no key."""
    try:
        digest = hashlib.sha256(base64.b64decode(key, validate=True)).digest()
    except (binascii.Error, ValueError):
        return None
    return f"{kind} SHA256:{base64.b64encode(digest).decode('ascii').rstrip('=')}"


def _lines(file: Path) -> list[tuple[str, str, str]]:
    """(name, type and fingerprint, line) of each key."""
    try:
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    found = []
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 3 and not line.startswith("#"):
            found.append((fields[0], fingerprint(fields[1], fields[2]) or "", line))
    return found


def _scanned(address: str, port: int, pins: list[str]) -> Iterable[tuple[str, str]]:
    """(type and fingerprint, type and key) of what the server shows, of the best type that is pinned."""
    kind = next((name for start, name in _KINDS if any(pin.startswith(start) for pin in pins)), "ed25519")
    command = ["ssh-keyscan", "-T", "30", "-t", kind, "-p", str(port), address]
    try:
        done = subprocess.run(command, capture_output=True, timeout=_LIMIT_S, stdin=subprocess.DEVNULL, check=False)
    except FileNotFoundError:
        raise ProgramMissing("ssh-keyscan is not installed", "install OpenSSH's client") from None
    except subprocess.TimeoutExpired:
        raise Unreachable(f"the server did not show its host key within {_LIMIT_S} s") from None
    found = []
    for line in done.stdout.decode(errors="replace").splitlines():
        fields = line.split()
        pin = fingerprint(fields[1], fields[2]) if len(fields) == 3 and not line.startswith("#") else None
        if pin is not None:
            found.append((pin, f"{fields[1]} {fields[2]}"))
    if not found:
        said = last_line(done.stderr.decode(errors="replace"))
        raise Unreachable(
            "the server does not show its host key" + (f" ({said})" if said else ""),
            "check that the machine is running",
        )
    return found


def _write(file: Path, lines: list[str]) -> None:
    """As a whole: another ssh may read it now. Raises CannotWrite."""
    with refusing(f"cannot write {file}", "the deployment's host keys are kept there; make it writable for you"):
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        whole.write(file, "".join(f"{line}\n" for line in lines).encode(), mode=0o600)
