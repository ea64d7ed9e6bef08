"""Alarms of the guard against one shared cause, as the scheduler writes them beside the results (file `ALARM`)."""

from __future__ import annotations

import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from ..results.decode import Moment

MARK = b"partition "
"""How such a file begins."""
_LINE = re.compile(
    r"partition (?P<partition>\S+): (?P<check>\S+) fails on (?P<failing>\d+) of (?P<total>\d+) nodes, "
    r"since (?P<since>\S+) by (?P<source>\S+); (?P<words>.+)",
    re.ASCII,
)
"""A line of alarm_text() in guard-record.sh."""
_Nodes = Annotated[int, Meta(ge=0, le=999_999)]


class Alarm(Struct, frozen=True, order=True, forbid_unknown_fields=True):
    """One check that too many nodes of a partition fail at once."""

    partition: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{1,100}\Z", description="the name of a partition")]
    check: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9_.-]{0,99}\Z", description="the name of a check")]
    failing: _Nodes
    total: _Nodes
    since: Moment
    source: Literal["claims", "reasons"]
    """Who told the scheduler: the nodes (claims), or the reasons of their drains."""
    words: Annotated[str, Meta(pattern=r"^[ -~]{1,300}\Z", description="one line of at most 300 ASCII characters")]
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
        return msgspec.structs.asdict(self)


def alarms_of(text: str) -> tuple[Alarm, ...] | None:
    """Return the alarms of a file; None when some line is no alarm."""
    found = [_LINE.fullmatch(line) for line in text.splitlines()]
    try:
        rows = [match.groupdict() for match in found if match]
        return msgspec.convert(rows, tuple[Alarm, ...], strict=False) if rows and len(rows) == len(found) else None
    except msgspec.ValidationError:
        return None
