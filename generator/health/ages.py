"""Ages and times as they are typed and printed: `2h`, `1d12h`, `2026-11-21T10:00:00Z`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from ..errors import CannotRead

_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_AGE = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,4})h)?(?:(\d{1,5})m)?(?:(\d{1,6})s)?", re.ASCII)


def age_s(text: str, option: str) -> float:
    """Return the seconds of an age. Raise CannotRead."""
    found = _AGE.fullmatch(text.strip())
    if found is None or not any(found.groups()):
        raise CannotRead(f"{option} '{text}' is not a valid age", "write days, hours, minutes, seconds: 2h, 90m, 1d12h")
    return float(sum(int(number or 0) * size for number, size in zip(found.groups(), _UNITS.values(), strict=True)))


def moment_s(text: str, option: str) -> float:
    """Return the seconds since 1970 of a time with its zone. Raise CannotRead."""
    hint = "write UTC as 2026-11-21T10:00:00Z, or the word now"
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise CannotRead(f"{option} '{text}' is not a valid time", hint) from None
    if moment.tzinfo is None:
        raise CannotRead(f"{option} '{text}' has no time zone", hint)
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()


def duration(seconds: float) -> str:
    """For example `45s`, `12m`, `3h05m`, `2d04h`."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole}s"
    minutes, hours, days = whole // 60, whole // 3600, whole // 86400
    if hours < 1:
        return f"{minutes}m"
    number, unit, rest = (days, "d", f"{hours % 24:02d}h") if days else (hours, "h", f"{minutes % 60:02d}m")
    return f"{number}{unit}{'' if rest.startswith('00') else rest}"


def utc(seconds: float) -> str:
    """Return a time in seconds since 1970 as `2026-11-21T10:00:00Z`."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
