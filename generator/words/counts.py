"""Numbers with their nouns, sizes in powers of 1024 unless stated otherwise, and lists of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_WHOLE = ("B", "KiB")
"""Units that are shown without a fraction."""


def counted(number: int, noun: str) -> str:
    """`1 file`, `2 files`, `2 addresses`."""
    return f"{number} {noun if number == 1 else _plural(noun)}"


def _plural(noun: str) -> str:
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def listed(words: Iterable[str]) -> str:
    """`a, b and c`."""
    items = list(words)
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}" if items else ""


def first(words: Sequence[str], shown: int) -> str:
    """`a, b and 3 more`: the first few of many."""
    text = ", ".join(words[:shown])
    return text if len(words) <= shown else f"{text} and {len(words) - shown} more"


def first_lines(lines: Sequence[str], shown: int, all_of_them: str = "--json lists all") -> list[str]:
    """At most so many lines, and how many there are more, with what shows all of them."""
    more = [f"… and {len(lines) - shown} more; {all_of_them}"] if len(lines) > shown else []
    return [*lines[:shown], *more]


def size(size_bytes: float) -> str:
    """`512 B`, `12 KiB`, `2.0 GiB`."""
    amount, text = float(size_bytes), ""
    for unit in _UNITS:
        text = f"{amount:.0f}" if unit in _WHOLE else f"{amount:.1f}"
        if float(text) < 1024 or unit == _UNITS[-1]:
            break
        amount /= 1024
    return f"{text} {unit}"


def size_of_gib(gib: int) -> str:
    """A size that is given in GiB: `128 TiB` where it is a whole number of those, else `1500 GiB`."""
    return f"{gib // 1024} TiB" if gib >= 1024 and gib % 1024 == 0 else f"{gib} GiB"


def size_in_kib(size_bytes: int) -> str:
    """In whole KiB, rounded up: what is compared with a limit must not look smaller than it is."""
    return f"{-(-size_bytes // 1024)} KiB"


def size_in_kb(size_bytes: int) -> str:
    """The same in units of 1,000 bytes, for limits that are given so."""
    return f"{-(-size_bytes // 1000)} kB"
