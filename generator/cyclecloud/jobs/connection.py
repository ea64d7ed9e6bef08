"""The scheduler's shell, as the programs of this folder are asked through it."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote

from msgspec import Struct

from ...errors import AzureRefused
from ..shell import Shell, Unreachable
from .prepared import PROGRAM, STATE

JOBS = "jobs"
"""Below the user's home on the cluster, where the README copies the jobs to: all runs share its folder `runs`."""
HOST = "scheduler"
LIMIT_S = 900.0
"""Of a request: Slurm is asked for a minute at most, and a lock waited for."""
PAUSE_S = 5.0
PATIENCE_S = 600.0
"""How long a lost connection is tried again while a job is followed, and a Slurm that does not answer is asked."""
AGAIN = "run the same command to continue from here"
_RUNS_ON = "the job continues; run the same command to reattach"
_ROUND = ("tick", "over")
_BROKEN = 5
"""Times in a row that our program ends on the scheduler without a word."""


class Line(Struct, frozen=True):
    """Something that happened: `kind` is state, log, note, silent, answers, lost, tick or over."""

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

    def fetch(self, name: str, local: Path) -> list[str]:
        """A folder, to a name that does not exist yet; return what was left behind, a line for each reason."""
        try:
            return self.shell.fetch(f"{JOBS}/{name}", local)
        except Unreachable as lost:
            raise refused(lost) from None

    def follow(self, name: str) -> Iterator[Line]:
        """What happens in a folder, as it happens, until all of it is over; a lost connection is opened again."""
        told, lost = _Told(), Patience()
        broken, is_away = 0, False
        while True:
            try:
                for line in told.lines(self.shell.follow(f"{program_of(name)} follow {quote(name)} {told.known}")):
                    if line.kind in _ROUND:
                        # Only a whole round is a sign of life: what was known before is said at each beginning.
                        lost.ends()
                        broken, is_away = 0, False
                    if line.kind != "tick":
                        yield line
                    if line.kind == "over":
                        return
                # The scheduler shuts down, or our program there is at fault; that does not mend itself.
                broken += 1
                reason = f"{HOST}: what follows the job there ended{f': {told.last}' if told.last else ''}"
            except Unreachable as unreachable:
                reason, is_away = unreachable.reason, True
            except AzureRefused as error:
                # A scheduler that comes back may accept logins before it has its file systems.
                if not is_away:
                    raise
                reason = error.message
            if broken >= _BROKEN and not is_away:
                raise AzureRefused(reason, _RUNS_ON)
            if lost.begins(reason):
                yield Line("lost", "", (reason,))
            time.sleep(PAUSE_S)


class _Told:
    """What our program says of one run, on one connection after the other."""

    def __init__(self) -> None:
        self.last = ""
        """What others have said last on this connection."""
        self._offsets: dict[str, str] = {}
        self._silent = Patience()

    @property
    def known(self) -> str:
        """Words for our program: how far each output was told."""
        return " ".join(quote(f"{key}:{offset}") for key, offset in self._offsets.items())

    def lines(self, texts: Iterable[str]) -> Iterator[Line]:
        """Of one connection. Raises AzureRefused for an error, and when Slurm is silent for too long."""
        self.last = ""
        for text in texts:
            line = _line(text)
            if line is None:
                self.last = text.strip() or self.last
                continue
            if line.kind == "silent" and not self._silent.begins(line.words[0]):
                continue
            if line.kind in _ROUND and self._silent.round_is_over():
                yield Line("answers")
            if line.kind == "log":
                task, _, offset = line.words[0].rpartition(":")
                self._offsets[f"{line.step}={task}"] = offset
                line = Line("log", line.step, (task, line.words[1]))
            yield line


class Patience:
    """How long something has been wrong."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._is_of_this_round = False

    def begins(self, reason: str) -> bool:
        """Note that it is wrong and return whether that is news. Raises AzureRefused when it lasts for too long."""
        self._is_of_this_round = True
        if self._since is None:
            self._since = time.monotonic()
            return True
        if time.monotonic() - self._since > PATIENCE_S:
            raise AzureRefused(reason, _RUNS_ON)
        return False

    def ends(self) -> bool:
        """Note that it is right and return whether that is news."""
        was_wrong, self._since = self._since is not None, None
        return was_wrong

    def round_is_over(self) -> bool:
        """End the round; what was not said to be wrong in it is right. Return whether that is news."""
        is_wrong, self._is_of_this_round = self._is_of_this_round, False
        return not is_wrong and self.ends()


def _line(text: str) -> Line | None:
    """What our program has said; None: someone else has. Raises AzureRefused for an error that it names."""
    word, *words = text.split("\t", 3 if text.startswith("log\t") else -1)
    match [word, *words]:
        case ["error", *_]:
            raise AzureRefused(" ".join(words), AGAIN)
        case ["log", step, _, _] | ["state", step, _, _, _] | ["note", step, _]:
            return Line(word, step, tuple(words[1:]))
        case ["silent", *_] | ["tick"] | ["over"]:
            return Line(word, "", (" ".join(words),))
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
