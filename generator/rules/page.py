"""docs/rules.md: every rule with its reason, its fix and where to read more."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from ..problems.problem import can_be_silenced
from ..problems.rule import Rule
from . import all_rules

_HEAD = """\
# Rules

What `cycleforge validate` checks, with the numbers 2000 to 2499 what `cycleforge template check` does, and from 4000 on
what `cycleforge preflight` asks Azure. `cycleforge explain ID` prints the same text offline. The letter
of an id is its level: `E` an error, which stops the build; `W` a warning; `I` advice. The first two digits are the
subject. An id is never reused.

A rule that does not apply is silenced in the definition, with the reason:

```yaml
silence:
  - rule: W0502
    reason: All users of this cluster come for its GPUs.
```

This page is generated from the rules; `make accept` writes it.
"""


def render(checks: Sequence[type[Rule]]) -> str:
    """The whole page: the rules, and the checks of preflight, which stand above them."""
    infos = (*all_rules(), *checks)
    parts = [_HEAD, _overview(infos)]
    for subject, group in groupby(infos, key=_subject):
        parts.append(f"## {subject[0].upper()}{subject[1:]}\n")
        parts += [_section(info) for info in group]
    return "\n".join(parts)


def _subject(info: type[Rule]) -> str:
    return info.subject


def _overview(infos: tuple[type[Rule], ...]) -> str:
    rows = [f"| [{info.id}](#{info.id.lower()}) | {_subject(info)} | {_cell(info.summary)} |" for info in infos]
    return "\n".join(("| id | subject | what |", "|---|---|---|", *rows, ""))


def _section(info: type[Rule]) -> str:
    lines = [f"### {info.id}\n", f"**{info.summary}**\n", f"{info.why}\n", f"*Fix:* {info.fix}\n"]
    if info.source:
        lines.append(
            f"*Read more:* <{info.source}>\n" if info.source.startswith("https://") else f"*Read more:* {info.source}\n"
        )
    if not can_be_silenced(info.id) and info.stage not in ("template", "azure"):
        lines.append("*Always counts; cannot be silenced.*\n")
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
