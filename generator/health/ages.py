"""Ages and moments as a user types them: `2h`, `1d12h`, `2026-11-21T10:00:00Z`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ..errors import CannotRead

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_AGE = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?", re.ASCII)


def age_s(text: str, option: str) -> float:
    """Seconds of an age. CannotRead when it is none."""
    found = _AGE.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise CannotRead(f"{option} '{text}' is not a valid age", "write days, hours, minutes, seconds: 2h, 90m, 1d12h")
    return float(sum(int(number or 0) * size for number, size in zip(found.groups(), _UNITS.values(), strict=True)))


def moment_s(text: str, option: str) -> float:
    """Seconds since 1970 of a moment with its zone. CannotRead when it is none."""
    hint = "write UTC as 2026-11-21T10:00:00Z, or the word now"
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise CannotRead(f"{option} '{text}' is not a valid time", hint) from None
    if moment.tzinfo is None:
        raise CannotRead(f"{option} '{text}' has no time zone", hint)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()
