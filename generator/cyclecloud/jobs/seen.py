"""What the scheduler says of a run: its steps, the tasks of each, and how far all of it is."""

from __future__ import annotations

from collections.abc import Iterable

from ...errors import AzureRefused
from ...records import record
from ...words.terminal import printable

FORGOTTEN = "FORGOTTEN"
"""Slurm knows nothing of the job any more, and there are no accounts."""
ENDED = frozenset((
    "COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "BOOT_FAIL", "DEADLINE",
    "REVOKED", "LAUNCH_FAILED", FORGOTTEN,
))  # fmt: skip
"""Source: man squeue, JOB STATE CODES."""


@record
class Task:
    """A job, or one task of an array."""

    id: str
    state: str
    exit: str
    """`status:signal`; empty where it has not ended, or nobody knows."""


@record
class Step:
    """One batch file."""

    file: str
    job: str
    """Slurm's number of its last job; empty: not submitted."""
    tasks: tuple[Task, ...] = ()

    @property
    def has_ended(self) -> bool:
        """All of its tasks."""
        return bool(self.tasks) and all(task.state in ENDED for task in self.tasks)

    @property
    def is_good(self) -> bool:
        """It let the next one begin."""
        return bool(self.tasks) and all(task.state == "COMPLETED" for task in self.tasks)

    @property
    def status(self) -> int | None:
        """The worst exit status of its tasks, as a shell has it; None: nobody knows."""
        found = [_status(task) for task in self.tasks]
        return None if None in found or not found else max(number for number in found if number is not None)

    @property
    def states(self) -> str:
        """In Slurm's words."""
        return ", ".join(dict.fromkeys(task.state for task in self.tasks))


@record
class Seen:
    """A run; `name` is empty where there is none."""

    name: str = ""
    who: str = ""
    times: int = 0
    """How often it went on after a failure."""
    is_told: bool = False
    """Somebody was told its result."""
    steps: tuple[Step, ...] = ()
    silent: str = ""
    """Why Slurm could not be asked."""
    refused: str = ""
    """What sbatch refused, and why."""
    joined: bool = False
    """Somebody else had begun the same run in the meantime."""

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
                raise AzureRefused(text, "the same command goes on from here")
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
