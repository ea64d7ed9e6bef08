"""What can be wrong with a file of results: the kinds, how much each counts, and the fix."""

from __future__ import annotations

from dataclasses import dataclass

from ..results import problems
from ..results.problems import ProblemKind

_COPY_AGAIN = "copy it again; if it is the same on the cluster, remove it there and let the node check again"
PROBLEM_KINDS: dict[str, ProblemKind] = {
    "unreadable": ProblemKind("error", "get the permission, or copy the folder again"),
    "not_a_file": ProblemKind("error", "name a file or a folder"),
    "loop": ProblemKind("warning", "the link is not followed; remove it"),
    "too_large": ProblemKind("error", "a result has about 10 KiB: remove the file if it is not one"),
    "empty": ProblemKind("error", f"the disk was full, or the node went down while it wrote; {_COPY_AGAIN}"),
    "truncated": ProblemKind("error", f"the node or the copy stopped halfway; {_COPY_AGAIN}"),
    "binary": ProblemKind("error", "remove the file if it is not a result, else copy it again"),
    "encoding": ProblemKind("error", "results are UTF-8; copy the file again without converting it"),
    "damaged": ProblemKind("error", _COPY_AGAIN),
    # Of summaries that earlier versions collected.
    "duplicate_key": ProblemKind("error", f"it is not clear which of the two is valid; {_COPY_AGAIN}"),
    "not_a_number": ProblemKind("error", f"JSON has no such number; {_COPY_AGAIN}"),
    "invalid": ProblemKind("error", "the node may run another version of slurm_nhc: compare it with this CycleForge"),
    "future_format": ProblemKind("error", "a newer slurm_nhc wrote it: update CycleForge here"),
    "conflict": ProblemKind("error", "two nodes may share one name, or a file was edited; the worse one counts"),
    "foreign": ProblemKind("warning", "it is left out; move it away if it does not belong here"),
}


@dataclass(frozen=True, order=True)
class FileProblem(problems.FileProblem):
    """One finding in a file of results. `node` where the file still tells it."""

    kinds = PROBLEM_KINDS

    node: str = ""
    check_kind: str = ""

    def as_json(self) -> dict[str, object]:
        """Plain data with stable keys."""
        return super().as_json() | {"node": self.node or None, "check_kind": self.check_kind or None}
