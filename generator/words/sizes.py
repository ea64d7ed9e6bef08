"""Sizes for people, in powers of 1024 unless stated otherwise."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_WHOLE = ("B", "KiB")
"""Units of which nobody wants a fraction."""


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
