"""What a faked server, its Azure and its locker hold."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from tests.bed.server.fakes.accounts import Accounts
from tests.bed.server.fakes.faults import Faults
from tests.bed.server.fakes.releases import CLI_8_6_1, Release


class State:
    """One object for all fakes; `lock` is held while it is read or changed."""

    def __init__(self, root: Path, facts: dict[str, Any], chunks: dict[str, bytes], scale: float) -> None:
        self.root = root
        self.accounts = Accounts(scale)
        self.cli: Release = CLI_8_6_1
        self.dialogues: list[list[str]] = []
        """Calls that opened a dialogue: none may."""
        self.records: dict[str, dict[str, Any]] = {}
        """Templates of the deployments that the server itself has written, by name."""
        self.facts = facts
        self.chunks = chunks
        self.faults = Faults()
        self.calls: list[dict[str, Any]] = []
        self.running = True
        self.settings: dict[str, Any] = {}
        self.keys: dict[str, str] = {}
        self.known_projects: list[dict[str, Any]] = []
        self.account: dict[str, Any] | None = None
        self.locker_state = ""
        self.locker_asked: list[float] = []
        self.blobs: dict[str, bytes] = {}
        self.templates: dict[str, str] = {}
        self.clusters: dict[str, dict[str, Any]] = {}
        self.portal = ""
        self.lock = threading.RLock()

    @property
    def is_up(self) -> bool:
        return self.running and self.faults.slow_start == 0
