"""What the jobs of a cluster keep on one file system."""

from __future__ import annotations

from ...records import record


@record
class LedgerEntry:
    """One thing on the file system, in bytes."""

    job: str
    """The first of those that share it."""
    what: str
    """`image`, `data: <stage>`, `data` of an unknown size, `checkpoints`, or `checkpoints: <model>` of a check."""
    needed_bytes: int
    how: str
    """How it was calculated, in words."""


@record
class LedgerPlan:
    """All that training jobs keep on one file system, against what it holds."""

    path: str
    rows: tuple[LedgerEntry, ...]
    capacity_bytes: int | None
    """None where the definition does not know it, as of a storage account."""

    @property
    def needed_bytes(self) -> int:
        """All rows."""
        return sum(entry.needed_bytes for entry in self.rows)

    @property
    def share(self) -> float | None:
        """Of the capacity."""
        return self.needed_bytes / self.capacity_bytes if self.capacity_bytes else None
