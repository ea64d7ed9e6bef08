"""The scheduler's shell, as the programs of this folder are asked through it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

from ...errors import AzureRefused
from ...records import record
from ..shell import Shell, Unreachable
from .prepared import PROGRAM, STATE

JOBS = "jobs"
"""Below the user's home on the cluster, where the README copies the jobs to: all runs share its folder `runs`."""
HOST = "scheduler"
LIMIT_S = 900.0
"""Of a request: Slurm is asked for a minute at most, and a lock waited for."""
PAUSE_S = 5.0
PATIENCE_S = 600.0
"""How long a lost connection is tried again while a job is followed."""
AGAIN = "the same command goes on from here"
_BROKEN = 5
"""Times in a row that our program ends on the scheduler without a word."""


@record
class Line:
    """Something that happened: `kind` is state, log, silent, lost, tick or over."""

    kind: str
    step: str = ""
    words: tuple[str, ...] = ()


class Connection:
    """To the scheduler of one deployment."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell

    def said(self, command: str, program: bytes = b"") -> str:
        """What a command says that must succeed. Raises AzureRefused."""
        try:
            ran = self.shell.run(command, input=program, limit_s=LIMIT_S)
        except Unreachable as lost:
            raise refused(lost) from None
        if ran.status:
            last = next((line for line in reversed(ran.err.splitlines()) if line.strip()), f"status {ran.status}")
            raise AzureRefused(f"{HOST}: {last.strip()}", AGAIN)
        return ran.out

    def send(self, local: Path, name: str) -> None:
        """A folder, to a name that is not there yet."""
        try:
            self.shell.send(local, f"{JOBS}/{name}")
        except Unreachable as lost:
            raise refused(lost) from None

    def fetch(self, name: str, local: Path) -> None:
        """A folder, to a name that is not there yet."""
        try:
            self.shell.fetch(f"{JOBS}/{name}", local)
        except Unreachable as lost:
            raise refused(lost) from None

    def follow(self, name: str) -> Iterator[Line]:
        """What happens in a folder, as it happens, until all of it is over; a lost connection is opened again."""
        offsets: dict[str, str] = {}
        lost_since: float | None = None
        broken = 0
        while True:
            last = ""
            known = " ".join(quote(f"{step}={offset}") for step, offset in offsets.items())
            try:
                for text in self.shell.follow(f"{program_of(name)} follow {quote(name)} {known}"):
                    line = _line(text)
                    if line is None:
                        last = text.strip() or last
                        continue
                    if line.kind == "tick":
                        # Only a whole round is a sign of life: what was known before is said at each beginning.
                        lost_since, broken = None, 0
                        continue
                    if line.kind == "log":
                        offsets[line.step], line = line.words[0], Line("log", line.step, line.words[1:])
                    yield line
                    if line.kind == "over":
                        return
                # The scheduler shuts down, or our program there is at fault; that does not mend itself.
                broken += 1
                reason = f"{HOST}: what follows the job there ended{f': {last}' if last else ''}"
                if broken == _BROKEN:
                    raise AzureRefused(reason, "the job goes on; the same command attaches to it again")
            except Unreachable as lost:
                reason = lost.reason
            if lost_since is not None and time.monotonic() - lost_since > PATIENCE_S:
                raise AzureRefused(reason, "the job goes on; the same command attaches to it again")
            if lost_since is None:
                lost_since = time.monotonic()
                yield Line("lost", "", (reason,))
            time.sleep(PAUSE_S)


def _line(text: str) -> Line | None:
    """What our program has said; None: someone else has. Raises AzureRefused for an error that it names."""
    word, *words = text.split("\t", 3 if text.startswith("log\t") else -1)
    match [word, *words]:
        case ["error", *_]:
            raise AzureRefused(" ".join(words), AGAIN)
        case ["log", step, _, _] | ["state", step, _, _, _]:
            return Line(word, step, tuple(words[1:]))
        case ["silent", *_] | ["tick"] | ["over"]:
            return Line(word, "", tuple(words))
    return None


def program_of(name: str) -> str:
    """What the scheduler runs of us for a folder."""
    return f"bash {quote(f'{JOBS}/{name}/{STATE}/{PROGRAM}')}"


def from_copy(partial: str, name: str) -> str:
    """The same, of a copy that gets its name while it runs, or had it before an answer was lost.

    As a text: someone else may have begun the same meanwhile, and then the copy goes.
    """
    first, then = (f"{JOBS}/{each}/{STATE}/{PROGRAM}" for each in (partial, name))
    return f'p={quote(first)}; [ -e "$p" ] || p={quote(then)}; bash -c "$(cat "$p")" {PROGRAM}'


def refused(lost: Unreachable) -> AzureRefused:
    """A host that was not reached, as an error of the command."""
    return AzureRefused(lost.reason, lost.hint or AGAIN)
