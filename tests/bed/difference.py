"""What differs between two texts, in a form that a snapshot keeps: short, and unmoved by what both have."""

from __future__ import annotations

import difflib


def changes(old: str, new: str) -> list[str]:
    """The places where they differ: the last line before each, how many lines of the first go out, and what comes in.

    There are no line numbers: a line more at the top would change all of them.
    """
    before, after = old.splitlines(), new.splitlines()
    lines: list[str] = []
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for tag, old_start, old_end, new_start, new_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        anchor = next((line.strip() for line in reversed(before[:old_start]) if line.strip()), "")
        lines.append(f"@@ {anchor}".rstrip())
        if old_end > old_start:
            lines.append(f"- {old_end - old_start} line{'s' if old_end - old_start > 1 else ''}")
        lines += [f"+{line}" for line in after[new_start:new_end]]
    return lines


def shown(text: str, base: str) -> str:
    """The whole text when it is the base itself, else what differs from it."""
    return text if text == base else "\n".join(changes(base, text))
