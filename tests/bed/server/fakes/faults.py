"""What fails on a faked server, and how often."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Faults:
    """How often something fails before it works; 999 is for ever."""

    slow_start: int = 0
    no_import: int = 0
    ignored_records: int = 0
    """So many files of records are never imported, however long they lie there."""
    no_token: int = 0
    account_refused: int = 0
    account_silent: int = 0
    locker_retries: int = 0
    upload_fails: dict[str, int] = field(default_factory=dict)
    upload_hangs_without_terminal: bool = False
    manifest_missing: int = 0
    file_missing: int = 0
    list_refused: int = 0
    list_page: int = 5000
    checksums: bool = True
    token_expired: int = 0
    arm_refused: int = 0
    arm_running: int = 0
    arm_no_output: int = 0
    arm_failed: str = ""
    arm_missing: str = ""
    damaged_chunk: bool = False
    import_silent: int = 0
    cluster_refused: int = 0
    machine_types_late: int = 0
    scheduler_polls: int = 0
    scheduler_fails: bool = False
    record_refused: int = 0
    kill_before: str = ""
    kill_after: str = ""

    def strikes(self, fault: str) -> bool:
        """Whether it fails this time; one time less is left then."""
        left = getattr(self, fault)
        if left:
            setattr(self, fault, left - 1)
        return bool(left)
