"""What `cycleforge run` asks of the scheduler, each of it once however often it is asked."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from shlex import quote

from msgspec import Struct

from ...errors import AzureRefused
from ...words.terminal import printable
from . import prepared as preparing
from .connection import AGAIN, JOBS, Connection, Line, from_copy, program_of
from .prepared import Prepared

FORGOTTEN = "FORGOTTEN"
"""Slurm knows nothing of the job any more, and there are no accounts."""
ENDED = frozenset((
    "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
    "REVOKED", "LAUNCH_FAILED", FORGOTTEN,
))  # fmt: skip
"""Source: man squeue, JOB STATE CODES."""


class Task(Struct, frozen=True):
    """A job, or one task of an array."""

    id: str
    state: str
    exit: str
    """`status:signal`; empty where it has not ended, or that is unknown."""


class Step(Struct, frozen=True):
    file: str
    job: str
    """Slurm's number of its last job; empty: not submitted."""
    tasks: tuple[Task, ...] = ()

    @property
    def has_ended(self) -> bool:
        return bool(self.tasks) and all(task.state in ENDED for task in self.tasks)

    @property
    def is_good(self) -> bool:
        """It let the next one begin."""
        return bool(self.tasks) and all(task.state == "COMPLETED" for task in self.tasks)

    @property
    def status(self) -> int | None:
        """The worst exit status of its tasks, as a shell has it; None: unknown."""
        found = [_status(task) for task in self.tasks]
        return None if None in found or not found else max(number for number in found if number is not None)

    @property
    def states(self) -> str:
        return ", ".join(dict.fromkeys(task.state for task in self.tasks))


class Seen(Struct, frozen=True):
    """A run; `name` is empty where there is none."""

    name: str = ""
    who: str = ""
    times: int = 0
    """How often it went on after a failure."""
    is_told: bool = False
    """Its result has been shown."""
    steps: tuple[Step, ...] = ()
    silent: str = ""
    """Why Slurm could not be asked."""
    refused: str = ""
    """What sbatch refused, and why."""
    joined: bool = False
    """Someone else had begun the same run in the meantime."""

    @property
    def deciding(self) -> Step | None:
        """The step that the result is from: the first that did not end well, or the last; None: it is not over."""
        for step in self.steps:
            if not step.has_ended:
                return None
            if not step.is_good:
                return step
        return self.steps[-1] if self.steps else None

    @property
    def is_submitted(self) -> bool:
        """All steps that can be."""
        return self.deciding is not None or all(step.job for step in self.steps)

    @property
    def number(self) -> int:
        """The last part of its name; 0 without one."""
        last = self.name.rpartition("-")[2]
        return int(last) if last.isdigit() else 0


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
            raise AzureRefused(f"Slurm refused {seen.refused}", f"the copied files are in ~/{JOBS}/{seen.name}")
        return seen

    def _seen(self, command: str, program: bytes = b"") -> Seen:
        return read(self._connection.said(command, program).splitlines())


def read(lines: Iterable[str]) -> Seen:
    """What runs.sh has said. Raises AzureRefused for an error that it names."""
    name = who = silent = refused = ""
    times, is_told, joined = 0, False, False
    jobs: dict[str, str] = {}
    tasks: dict[str, list[Task]] = {}
    for line in lines:
        word, *rest = [printable(part) for part in line.split("\t")]
        match [word, *rest]:
            case ["error", text]:
                raise AzureRefused(text, "run the same command to continue from here")
            case ["run", name, who, count]:
                times = int(count) if count.strip().isdigit() else 0
            case ["seen"]:
                is_told = True
            case ["joined"]:
                joined = True
            case ["step", file, job]:
                jobs[file] = job
            case ["task", file, number, state, code]:
                tasks.setdefault(file, []).append(Task(number, state, code))
            case ["silent", text]:
                silent = text
            case ["refused", file, text]:
                refused = f"{file}: {text}"
    steps = tuple(Step(file, job, tuple(tasks.get(file, ()))) for file, job in jobs.items())
    return Seen(name, who, times, is_told, steps, silent, refused, joined)


def _status(task: Task) -> int | None:
    status, _, signal = task.exit.partition(":")
    if not status.isdigit() or not signal.isdigit():
        return None
    if int(signal):
        return 128 + int(signal)
    # Ended from outside before it could say anything itself.
    return 2 if int(status) == 0 and task.state != "COMPLETED" else int(status)
