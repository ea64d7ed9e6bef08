"""What `cycleforge run` asks of the scheduler, each of it once however often it is asked."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from ...errors import AzureRefused
from ...records import record
from ..shell import Shell, Unreachable
from . import prepared as preparing
from . import seen as seeing
from .prepared import STATE, Prepared
from .seen import Seen

JOBS = "jobs"
"""Below the user's home on the cluster, where the README copies the jobs to: all runs share its folder `runs`."""
HOST = "scheduler"
LIMIT_S = 900.0
"""Of a request: Slurm is asked for a minute at most, and a lock waited for."""
PAUSE_S = 5.0
PATIENCE_S = 600.0
"""How long a lost connection is tried again while a job is followed."""

_WORDS = ("state", "log", "silent", "tick", "over")


@record
class Line:
    """Something that happened: `kind` is state, log, silent, lost or over."""

    kind: str
    step: str = ""
    words: tuple[str, ...] = ()


class Scheduler:
    """The cluster's scheduler, through its shell."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def look(self, key: str) -> Seen:
        """The newest run of this key. Changes nothing that matters. Raises AzureRefused."""
        return seeing.read(self._said(f"bash -s -- look {quote(key)}", preparing.program()))

    def begin(self, prepared: Prepared, number: int, *, who: str, begin_at: str | None) -> Seen:
        """Copy a new run, and submit it; the same run that somebody else has begun meanwhile is taken up instead."""
        name = f"{prepared.name}-{prepared.key}-{number}"
        partial = f".copy-{secrets.token_hex(8)}"
        with tempfile.TemporaryDirectory(prefix="cycleforge-") as folder:
            target = Path(folder, "run")
            preparing.write(prepared, target, who=who, begin_at=begin_at)
            try:
                self.shell.send(target, f"{JOBS}/{partial}")
            except Unreachable as lost:
                raise refused(lost) from None
        program = quote(f"{JOBS}/{partial}/{STATE}/runs.sh")
        # After an answer that was lost the copy has its own name already.
        placed = quote(f"{JOBS}/{name}/{STATE}/runs.sh")
        words = f"go {quote(name)} {quote(partial)} - 0"
        return self._go(f'p={program}; [ -e "$p" ] || p={placed}; bash -c "$(cat "$p")" runs.sh {words}')

    def go_on(self, seen: Seen, step: str = "-") -> Seen:
        """Submit what was not submitted; with a step, again from there."""
        return self._go(f"{_program(seen.name)} go {quote(seen.name)} - {quote(step)} {seen.times}")

    def follow(self, name: str) -> Iterator[Line]:
        """What happens, as it happens, until all of it is over; a lost connection is opened again."""
        offsets: dict[str, str] = {}
        lost_since: float | None = None
        while True:
            known = " ".join(quote(f"{step}={offset}") for step, offset in offsets.items())
            try:
                for text in self.shell.follow(f"{_program(name)} follow {quote(name)} {known}"):
                    word, *words = text.split("\t", 3 if text.startswith("log\t") else -1)
                    if word in _WORDS:
                        lost_since = None
                    if word == "over":
                        yield Line("over")
                        return
                    if word == "error":
                        raise AzureRefused(" ".join(words), "the same command goes on from here")
                    if word == "log" and len(words) == 3:
                        offsets[words[0]] = words[1]
                        yield Line("log", words[0], (words[2],))
                    elif word == "state" and len(words) == 4:
                        yield Line("state", words[0], tuple(words[1:]))
                    elif word == "silent":
                        yield Line("silent", "", tuple(words))
                reason = "it ended before the job did"
            except Unreachable as lost:
                reason = lost.reason
            if lost_since is not None and time.monotonic() - lost_since > PATIENCE_S:
                raise AzureRefused(reason, "the job goes on; the same command attaches to it again")
            if lost_since is None:
                lost_since = time.monotonic()
                yield Line("lost", "", (reason,))
            time.sleep(PAUSE_S)

    def result(self, name: str, step: str) -> bytes:
        """The record of the step's last job; empty: there is none."""
        return self._run(f"{_program(name)} result {quote(name)} {quote(step)}").encode()

    def told(self, name: str) -> None:
        """Somebody knows the result: the same command begins anew."""
        self._said(f"{_program(name)} seen {quote(name)}")

    def fetch(self, name: str, local: Path) -> None:
        """The whole folder of the run, to a name that is not there yet."""
        try:
            self.shell.fetch(f"{JOBS}/{name}", local)
        except Unreachable as lost:
            raise refused(lost) from None

    def prepare(self, command: str) -> None:
        """Shared folders of training jobs, which the root of their file system belongs to root for."""
        self._run(command)

    def _go(self, command: str) -> Seen:
        seen = seeing.read(self._said(command))
        if seen.refused:
            raise AzureRefused(f"Slurm refused {seen.refused}", f"what was copied is in ~/{JOBS}/{seen.name}")
        return seen

    def _said(self, command: str, program: bytes = b"") -> list[str]:
        return self._run(command, program).splitlines()

    def _run(self, command: str, program: bytes = b"") -> str:
        try:
            ran = self.shell.run(command, input=program, limit_s=LIMIT_S)
        except Unreachable as lost:
            raise refused(lost) from None
        if ran.status:
            last = next((line for line in reversed(ran.err.splitlines()) if line.strip()), f"status {ran.status}")
            raise AzureRefused(f"{HOST}: {last.strip()}", "the same command goes on from here")
        return ran.out


def _program(name: str) -> str:
    return f"bash {quote(f'{JOBS}/{name}/{STATE}/runs.sh')}"


def refused(lost: Unreachable) -> AzureRefused:
    """A host that was not reached, as an error of the command."""
    return AzureRefused(lost.reason, lost.hint or "the same command goes on from here")
