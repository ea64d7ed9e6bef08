"""What `cycleforge prove` asks of the scheduler: prove.sh, copied, started once, and followed."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shlex import join, quote

from msgspec import Struct

from ...errors import AzureRefused
from ...words.terminal import printable
from . import prepared as preparing
from .connection import AGAIN, Connection, Line, from_copy, program_of
from .prepared import PROGRAM

SCRIPT = "proofs.sh"
RUNS = "runs"
"""Where all jobs leave their records."""
RUNNING = "running"


class Proof(Struct, frozen=True):
    """A copied jobs folder and its last start; `name` is empty where there is no copy."""

    name: str = ""
    who: str = ""
    status: str = ""
    """Of prove.sh: RUNNING, an exit status, `lost` with its machine; empty: it was never started."""
    options: str = ""
    is_told: bool = False
    """Someone was told its status."""
    plan: tuple[str, ...] = ()

    @property
    def exit_status(self) -> int | None:
        """None: it has not ended."""
        return int(self.status) if self.status.isdigit() else None


class Proofs:
    """The jobs folder of one build on the cluster."""

    def __init__(self, connection: Connection, jobs: Path) -> None:
        self._connection, self._jobs = connection, jobs
        self.name = f"prove-{preparing.key_of(jobs)}"

    def look(self) -> Proof:
        """How it is. Raises AzureRefused."""
        return self._proof(f"bash -s -- look {quote(self.name)}", preparing.program(SCRIPT))

    def plan(self, options: Sequence[str], *, is_there: bool) -> Proof:
        """Copy it, unless it is there; what prove.sh would run."""
        if is_there:
            return self._proof(f"{program_of(self.name)} plan {quote(self.name)} .copy-none {join(options)}")
        partial = f".copy-{secrets.token_hex(8)}"
        with tempfile.TemporaryDirectory(prefix="cycleforge-") as folder:
            target = Path(folder, "jobs")
            (preparing.copy(self._jobs, target) / PROGRAM).write_bytes(preparing.program(SCRIPT))
            self._connection.send(target, partial)
        program = from_copy(partial, self.name)
        return self._proof(f"{program} plan {quote(self.name)} {quote(partial)} {join(options)}")

    def start(self, options: Sequence[str], who: str) -> Proof:
        """Start it once: one that runs, or whose status is unknown, is not started again."""
        return self._proof(f"{program_of(self.name)} start {quote(self.name)} {quote(who)} {join(options)}")

    def follow(self) -> Iterator[Line]:
        """What prove.sh says, until it has ended."""
        return self._connection.follow(self.name)

    def told(self) -> None:
        """Someone knows the status."""
        self._proof(f"{program_of(self.name)} seen {quote(self.name)}")

    def fetch(self, local: Path) -> list[str]:
        """The records of all its runs, to a name that does not exist yet."""
        return self._connection.fetch(f"{self.name}/{RUNS}", local)

    def _proof(self, command: str, program: bytes = b"") -> Proof:
        return _read(self._connection.said(command, program).splitlines())


def _read(lines: Iterable[str]) -> Proof:
    name = who = status = options = ""
    is_told = False
    plan: list[str] = []
    for line in lines:
        match line.split("\t"):
            case ["error", text]:
                raise AzureRefused(printable(" ".join([*plan, text])), AGAIN)
            case ["proof", name, who, status, options]:
                pass
            case ["seen"]:
                is_told = True
            case ["text", *words]:
                plan.append(printable("\t".join(words).expandtabs()))
    return Proof(name, printable(who), status, printable(options), is_told, tuple(plan))
