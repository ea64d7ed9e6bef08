"""Every error that ends the program, with its exit code. Library code raises; only `generator.cli.main` catches."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # the module is imported by `cycleforge --help`, and typing takes a third of its time
    from typing import ClassVar


class CycleForgeError(Exception):
    """A failure that we can name. `message` says what is wrong, `hint` what to do about it."""

    exit_code: int
    is_told: bool = False
    """The user has been told what is wrong by the time it is raised."""
    when: ClassVar[str]
    """When it happens; the table of exit codes in the documentation is made from these."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class ProblemsFound(CycleForgeError):  # noqa: N818 - named by what happened
    """What was read is not as it should be: broken rules, differences, a taken version, a missing blob, a sick node."""

    exit_code = 1
    when = (
        "a definition breaks rules, `build --check` or `locker verify` found differences, a built file was edited, "
        "a version has different content, a blob could not be fetched, a node is unhealthy, a validation job failed, "
        "warns or proves nothing, something has no price, preflight found what would make the deployment fail, "
        "something is in the way of delete, stop or update, status found what has failed or is not deployed, a "
        "partition has not as many nodes as scale was asked for, or something is missing in a support archive"
    )


class CannotRead(CycleForgeError):  # noqa: N818 - named by what happened
    """The command line or an input file cannot be understood."""

    exit_code = 2
    when = "wrong command line, missing or unreadable file, broken YAML"


class ProgramMissing(CycleForgeError):  # noqa: N818 - named by what happened
    """A program that the command needs is not installed or too old."""

    exit_code = 3
    when = "az, bicep or cyclecloud is missing or too old"


class AzureRefused(CycleForgeError):  # noqa: N818 - named by what happened
    """Azure or the CycleCloud server answered with an error."""

    exit_code = 4
    when = (
        "Azure or the CycleCloud server refused a request or cannot be reached, or preflight or status could not "
        "ask everything"
    )


class CannotWrite(CycleForgeError):  # noqa: N818 - named by what happened
    """Nothing was written: the folder is not ours, the disk is full, a permission is missing."""

    exit_code = 5
    when = "the output cannot be written: folder not created by CycleForge, disk full, no permission"


OK = 0
BUG = 70
INTERRUPTED = 130
OUTPUT_CLOSED = 141

_CLASSES: tuple[type[CycleForgeError], ...] = (ProblemsFound, CannotRead, ProgramMissing, AzureRefused, CannotWrite)


def exit_codes() -> tuple[tuple[int, str], ...]:
    """(exit code, when), ascending: the table that `cycleforge --help` and the documentation show."""
    return (
        (OK, "success"),
        *((each.exit_code, each.when) for each in _CLASSES),
        (BUG, "a bug in CycleForge itself"),
        (INTERRUPTED, "interrupted with Ctrl-C"),
        (OUTPUT_CLOSED, "the reader of the output closed it (`cycleforge … | head`)"),
    )
