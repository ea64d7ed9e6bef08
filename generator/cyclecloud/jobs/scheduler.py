"""What `cycleforge run` asks of the scheduler, each of it once however often it is asked."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from ...errors import AzureRefused
from . import prepared as preparing
from . import seen as seeing
from .connection import AGAIN, JOBS, Connection, Line, from_copy, program_of
from .prepared import Prepared
from .seen import Seen


class Scheduler:
    """The cluster's scheduler, and the runs in the user's home there."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def look(self, key: str) -> Seen:
        """The newest run of this key. Raises AzureRefused."""
        return self._seen(f"bash -s -- look {quote(key)}", preparing.program("runs.sh"))

    def state(self, name: str) -> Seen:
        """This run. Raises AzureRefused."""
        return self._seen(f"{program_of(name)} state {quote(name)}")

    def begin(self, prepared: Prepared, number: int, *, who: str, begin_at: str | None) -> Seen:
        """Copy a new run, and submit it; the same run that someone else has begun meanwhile is taken up instead."""
        name = f"{prepared.name}-{prepared.key}-{number}"
        partial = f".copy-{secrets.token_hex(8)}"
        with tempfile.TemporaryDirectory(prefix="cycleforge-") as folder:
            target = Path(folder, "run")
            preparing.write(prepared, target, who=who, begin_at=begin_at)
            self._connection.send(target, partial)
        return self._go(f"{from_copy(partial, name)} go {quote(name)} {quote(partial)} - 0")

    def go_on(self, seen: Seen, step: str = "-") -> Seen:
        """Submit what was not submitted; with a step, again from there."""
        return self._go(f"{program_of(seen.name)} go {quote(seen.name)} - {quote(step)} {seen.times}")

    def follow(self, name: str) -> Iterator[Line]:
        """What happens, as it happens, until all of it is over."""
        return self._connection.follow(name)

    def result(self, name: str, step: str) -> bytes:
        """The record of the step's last job; empty: there is none."""
        return self._connection.said(f"{program_of(name)} result {quote(name)} {quote(step)}").encode()

    def told(self, name: str) -> None:
        """Someone knows the result: the same command begins anew."""
        self._seen(f"{program_of(name)} seen {quote(name)}")

    def fetch(self, name: str, local: Path) -> list[str]:
        """The whole folder of the run, to a name that does not exist yet."""
        return self._connection.fetch(name, local)

    def prepare(self, command: str) -> None:
        """Shared folders of training jobs, which the root of their file system belongs to root for."""
        self._connection.said(command)

    def _go(self, command: str) -> Seen:
        seen = self._seen(command)
        if seen.silent and not seen.is_submitted:
            raise AzureRefused(seen.silent, AGAIN)
        if seen.refused:
            raise AzureRefused(f"Slurm refused {seen.refused}", f"what was copied is in ~/{JOBS}/{seen.name}")
        return seen

    def _seen(self, command: str, program: bytes = b"") -> Seen:
        return seeing.read(self._connection.said(command, program).splitlines())
