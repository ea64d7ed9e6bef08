"""What a command printed, as the page shows it: what differs from one time to the next is written alike.

Nothing else is changed. The first paragraph of the page says the same.
"""

from __future__ import annotations

import re

ALIKE = (
    (r"\b(?:[0-9A-F]{2}:){31}[0-9A-F]{2}\b", ":".join(["AB"] * 32)),
    (r"\b20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-11-02T09:40:00Z"),
    (r"-20\d{6}T\d{6}Z-\d+\b", "-20261102T094000Z-1000"),
    # A run is named after the content of its job.
    (r"\b(smoke|prove)-[0-9a-f]{10}\b", r"\1-0123456789"),
    # The home folder; what plays the nodes.
    (r"/root/jobs/", "~/jobs/"),
    (r"\b\d+ CPUs, \d+ kB", "… CPUs, … kB"),
    # Which states of a job are seen depends on when it is looked at.
    (r"^job\.sbatch: job \d+: .*\n", ""),
    (r"^\S+ prove\.sh: job \d+ [A-Z_]+: .*\n", ""),
    (r" +$", ""),
)
"""Pattern and text."""


def shown(text: str) -> str:
    for pattern, alike in ALIKE:
        text = re.sub(pattern, alike, text, flags=re.MULTILINE)
    return text
