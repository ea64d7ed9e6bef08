"""What can be wrong with a file of records: the kinds, how much each counts, and the fix."""

from __future__ import annotations

from dataclasses import dataclass

from ..results import problems
from ..results.problems import ProblemKind

_AGAIN = "copy it again; if it is the same on the cluster, run the job again"
KINDS: dict[str, ProblemKind] = {
    "unreadable": ProblemKind("error", "get the permission, or copy the folder again"),
    "not_a_file": ProblemKind("error", "name a file or a folder"),
    "loop": ProblemKind("warning", "the link is not followed; remove it"),
    "too_large": ProblemKind("error", "a record has some 100 KiB: remove the file if it is not one"),
    "empty": ProblemKind("error", f"the disk was full, or the copy stopped; {_AGAIN}"),
    "truncated": ProblemKind("error", f"the copy stopped halfway; {_AGAIN}"),
    "binary": ProblemKind("error", f"it is no record; {_AGAIN}"),
    "encoding": ProblemKind("error", "records are UTF-8; copy the file again without converting it"),
    "damaged": ProblemKind("error", _AGAIN),
    "not_a_number": ProblemKind("error", f"JSON has no such number; {_AGAIN}"),
    "invalid": ProblemKind("error", "the file was edited, or the jobs folder is of another CycleForge: build it again"),
    "future_format": ProblemKind("error", "a newer CycleForge rendered the job: update CycleForge here"),
    "conflict": ProblemKind("error", "a file was edited, or two clusters share one name; the worse one counts"),
    "foreign": ProblemKind("error", "it has the name of a record, but is none: move it away"),
}


@dataclass(frozen=True, order=True)
class FileProblem(problems.FileProblem):
    """One finding in a file of records."""

    kinds = KINDS
