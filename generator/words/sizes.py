"""Sizes for people, in powers of 1024."""

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
