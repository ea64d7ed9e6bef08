"""Commands of a README, as a reader copies them to the scheduler of a bed."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from generator.plan.deployment import Plan
from generator.render import readme


def readme_text(plan: Plan) -> str:
    return readme.render(plan)[PurePosixPath("README.md")].content.decode()


def remedy(text: str, reason: str, node: str) -> str:
    """The command on the scheduler that the troubleshooting row for a reason names, for a node; the bed is root."""
    row = next(line for line in text.splitlines() if line.startswith("|") and f"`{reason}`" in line)
    commands: list[str] = [command for command in re.findall(r"`sudo ([^`]+)`", row) if "NODE" in command]
    assert len(commands) == 1, row
    return commands[0].replace("NODE", node)
