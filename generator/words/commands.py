"""Commands of ours in a text that somebody is to type."""

from __future__ import annotations

import re
import shlex

_OURS = re.compile(r"(cycleforge [a-z-]+(?: --[a-z-]+)*) NAME\b")


def with_name(text: str, name: str) -> str:
    """The text with the definition's name in the commands that take one: `cycleforge status NAME`."""
    return _OURS.sub(lambda found: f"{found[1]} {shlex.quote(name)}", text)
