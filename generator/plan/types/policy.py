"""The scheduling policy as the scheduler reads it."""

from __future__ import annotations

from ...records import record


@record
class PolicyRow:
    """One setting of one object. Rows are in the order in which they can be applied."""

    kind: str
    """`qos`, `account`, `member` (a user in an account), `user`, `reservation`, `partition` or `overlay`."""
    name: str
    key: str
    """As sacctmgr and scontrol write it; `exists` for the object itself."""
    value: str

    @property
    def text(self) -> str:
        """The row on one line: words without spaces."""
        return f"{self.kind} {self.name} {self.key}={self.value}"


@record
class PolicyPlan:
    """What `slurm_policy` does on the scheduler."""

    rows: tuple[PolicyRow, ...]
    needs_accounting: bool
    """Whether some row is for slurmdbd."""
