"""CycleServer: its own program, its queries, and the records that it imports from files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.bed.server.fakes.state import State


class CycleServer:
    def __init__(self, site: State) -> None:
        self._site = site
        self._ignored: set[tuple[int, int]] = set()
        self._records = f"{site.root}/opt/cycle_server/config/data"

    def run(self, argv: list[str], request: dict[str, Any]) -> dict[str, Any]:
        if argv[0] in ("start", "stop"):
            self._site.running = argv[0] == "start"
            return {}
        if argv[0] == "await_startup":
            if not self._site.running:
                return {"status": 1, "errors": "CycleServer is not running\n"}
            if self._site.faults.strikes("slow_start"):
                return {"status": 1, "errors": "CycleServer did not start in time\n"}
            return {}
        if not self._site.is_up:
            return {"status": 1, "errors": "Unable to connect to CycleServer\n"}
        if argv[0] == "run_action" and argv[1] == "Retry:Cloud.Locker":
            self._site.locker_asked.append(time.monotonic())
            self._site.faults.locker_retries -= 1
            if self._site.account is not None and self._site.faults.locker_retries <= 0:
                self._site.locker_state = "Created"
            return {}
        if argv[0] == "run_action" and argv[1:] == [
            "Run:Application.Timer",
            "-eq",
            "Name",
            "plugin.azure.monitor_reference",
        ]:
            return {}
        if argv[:3] == ["execute", "--format", "json"]:
            records = self._query(argv[3])
            if records is not None:
                return {"output": json.dumps(records) + "\n"}
        return {"status": 1, "errors": f"unknown command: {argv}\n"}

    def _query(self, text: str) -> list[dict[str, Any]] | None:
        """Records of the queries that the bootstrap uses; None for one that the server would not understand."""
        strings = re.findall(r'"([^"]*)"', text)
        if "FROM Application.Setting" in text:
            value = self._site.settings.get(strings[0])
            return [] if value is None else [{"Name": strings[0], "Value": value}]
        if "FROM AuthenticatedUser" in text:
            return [{"Name": strings[0]}] if strings[0] in self._site.accounts.passwords else []
        if "FROM Credential" in text:
            return [{"Name": strings[0]}] if strings[0] in self._site.keys else []
        if "FROM Cloud.Project" in text:
            return [p for p in self._site.known_projects if [p["Name"], p["Version"]] == strings]
        if "FROM Cloud.Locker" in text:
            wanted = self._site.locker_state == "Created" or "State==" not in text
            record = {"Name": "azure-storage", "State": self._site.locker_state, "StatusMessage": "Staging resources"}
            return [record] if self._site.locker_state and wanted else []
        if "OUTER JOIN Azure.MachineType" in text:
            late = self._site.faults.strikes("machine_types_late")
            abstract = {"Name": "nodearraybase", "MachineType": None, "CMName": None}
            return [abstract, {"Name": "htc", "MachineType": None if late else "x", "CMName": "x"}]
        if "FROM Cloud.Cluster" in text:
            return [{"ClusterName": strings[0]}] if strings[0] in self._site.clusters else []
        if "FROM Cloud.Node" in text:
            status = self._scheduler(strings[0]) if strings[0] in self._site.clusters else ""
            return [{"Name": "scheduler", "State": "Unknown", "Status": status}] if status else []
        return None

    def _scheduler(self, cluster: str) -> str:
        if not self._site.clusters[cluster].get("started"):
            return "Off"
        if self._site.faults.scheduler_fails:
            return "Failed"
        return "Preparing" if self._site.faults.strikes("scheduler_polls") else "Ready"

    def import_records(self) -> None:
        # Whoever dropped a file may have taken it back, or the folder.
        with contextlib.suppress(FileNotFoundError), self._site.lock:
            found = os.listdir(self._records)  # noqa: PTH208 - a hundred times a second, without a Path each
            for name in sorted(name for name in found if name.endswith((".json", ".txt"))):
                path = Path(self._records, name)
                if self._site.is_up and not self._ignores(path):
                    self._import(path)
                    path.rename(path.with_name(path.name + ".imported"))

    def _ignores(self, path: Path) -> bool:
        info = path.stat()
        file = (info.st_ino, info.st_mtime_ns)
        if file not in self._ignored and self._site.faults.strikes("ignored_records"):
            self._ignored.add(file)
        return file in self._ignored or self._site.faults.strikes("no_import")

    def _import(self, path: Path) -> None:
        if path.suffix == ".txt":
            pairs = dict(line.split(" = ", 1) for line in path.read_text().splitlines())
            self._site.known_projects.append({key: json.loads(value) for key, value in pairs.items()})
            return
        content = json.loads(path.read_text())
        for record in content if isinstance(content, list) else [content]:
            if record["AdType"] == "AuthenticatedUser":
                self._site.accounts.passwords[record["Name"]] = record["RawPassword"]
            elif record["AdType"] == "Credential":
                self._site.keys[record["Name"]] = record["PublicKey"]
            else:
                self._site.settings[record["Name"]] = record["Value"]
