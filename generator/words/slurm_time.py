"""Times as Slurm writes them."""

from __future__ import annotations

import re
from math import ceil

_TIME = re.compile(
    r"(?:(?P<days>\d{1,5})-)?(?P<first>\d{1,7})(?::(?P<second>\d{1,2}))?(?::(?P<third>\d{1,2}))?", re.ASCII
)


def minutes(text: str) -> float | None:
    """A time as Slurm reads it, in minutes: `M`, `M:S`, `H:M:S`, `D-H`, `D-H:M`, `D-H:M:S`; None when it is none.

    Source: https://slurm.schedmd.com/sbatch.html#OPT_time
    """
    found = _TIME.fullmatch(text)
    if found is None:
        return None
    days = found["days"]
    first, second, third = (int(found[key] or 0) for key in ("first", "second", "third"))
    if second > 59 or third > 59:
        return None
    if days is not None:
        return int(days) * 1440 + first * 60 + second + third / 60
    if found["third"] is not None:
        return first * 60 + second + third / 60
    return first + second / 60


def whole_minutes(limit: str) -> int:
    """Whole minutes of a time limit that we have written ourselves, rounded up."""
    found = minutes(limit)
    if found is None:
        raise ValueError(f"{limit!r} is no time of Slurm")
    return ceil(found)
