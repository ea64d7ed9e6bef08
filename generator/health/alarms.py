"""Alarms of the guard against one shared cause, as the scheduler writes them beside the results (file `ALARM`)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

_LINE = re.compile(
    r"partition (?P<partition>[\w.-]{1,100}): (?P<check>[a-z][a-z0-9_.-]{0,99}) fails on (?P<failing>\d{1,6}) of "
    r"(?P<total>\d{1,6}) nodes, since (?P<since>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) by (?P<source>claims|reasons); "
    r"(?P<words>[ -~]{1,300})",
    re.ASCII,
)
"""A line of alarm_text() in guard-record.sh."""
MARK = b"partition "
"""How such a file begins."""


@dataclass(frozen=True, order=True, slots=True)
class Alarm:
    """One check that too many nodes of a partition fail at once."""

    partition: str
    check: str
    failing: int
    total: int
    since: str
    source: str
    """Who told the scheduler: the nodes (claims), or the reasons of their drains."""
    words: str
    """What happens to drains and jobs meanwhile."""

    @property
    def text(self) -> str:
        """For people."""
        return (
            f"partition {self.partition}: {self.check} fails on {self.failing} of {self.total} nodes "
            f"since {self.since}; {self.words}"
        )

    def as_json(self) -> dict[str, object]:
        """Plain data with stable keys."""
        return asdict(self)


def alarms_of(text: str) -> tuple[Alarm, ...] | None:
    """The alarms of a file; None when some line is no alarm."""
    found = [_LINE.fullmatch(line) for line in text.splitlines()]
    if not found or None in found:
        return None
    return tuple(_alarm(match.groupdict()) for match in found if match)


def collected(value: Any) -> tuple[Alarm, ...] | None:
    """The alarms of a summary; None when they are not what `health collect` writes."""
    rows = value if isinstance(value, list) and all(isinstance(row, dict) for row in value) else None
    if rows is None:
        return None
    lines = [_written({name: row.get(name, "") for name in Alarm.__slots__}) for row in rows]
    return alarms_of("\n".join(lines)) if lines else ()


def _written(row: Mapping[str, Any]) -> str:
    return (
        f"partition {row['partition']}: {row['check']} fails on {row['failing']} of {row['total']} nodes, "
        f"since {row['since']} by {row['source']}; {row['words']}"
    )


def _alarm(words: Mapping[str, str]) -> Alarm:
    return Alarm(
        words["partition"],
        words["check"],
        int(words["failing"]),
        int(words["total"]),
        words["since"],
        words["source"],
        words["words"],
    )
