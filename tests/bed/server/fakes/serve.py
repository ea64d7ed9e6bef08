"""The stand-in site as a program of a machine: `python3 -m tests.bed.server.fakes.serve FOLDER`.

Everything but the web server that people see: that is a daemon of its own, which `cycle_server start` leaves behind.
FOLDER has `facts.json`, the payload's chunks in `chunks/`, and `site.pem`. A faked program `control` with a JSON object
as its argument sets faults and release; it prints what the site knows.
"""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

from tests.bed.server.fakes.accounts import Accounts
from tests.bed.server.fakes.faults import Faults
from tests.bed.server.fakes.releases import KNOWN
from tests.bed.server.fakes.site import Site

PORTS = (8001, 8002, 8003)
PORTAL = "https://localhost:443"


class Served(Site):
    """A site that can be set and read from outside."""

    def control(self, argv: list[str], _: dict[str, Any]) -> dict[str, Any]:
        wanted = json.loads(argv[0])
        if "release" in wanted:
            self.cli = next(release for release in KNOWN if release.build == wanted["release"])
            self.faults, self.accounts = Faults(), Accounts(self.accounts.scale)
            self.settings, self.keys, self.records, self.blobs = {}, {}, {}, {}
            self.templates, self.clusters, self.account, self.locker_state = {}, {}, None, ""
        for name, value in wanted.get("faults", {}).items():
            setattr(self.faults, name, value)
        known = {"dialogues": self.dialogues, "locks": self.accounts.locks, "records": self.records,
                 "clusters": sorted(self.clusters)}  # fmt: skip
        return {"output": json.dumps(known)}


def main(folder: Path) -> None:
    facts = json.loads((folder / "facts.json").read_text())
    chunks = {path.name: path.read_bytes() for path in sorted((folder / "chunks").iterdir())}
    site = Served(Path("/"), facts, chunks, folder / "site.pem", facts["scale"])
    site.programs["control"] = site.control
    site.start(PORTS)
    site.portal = PORTAL
    (folder / "ready").touch()
    signal.pause()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
