"""How figures and times are printed: the same in text, page and messages."""

from __future__ import annotations

from .record import Check, Figure

_DAY_S, _HOUR_S, _MINUTE_S = 86_400, 3_600, 60


def figure(value: Figure) -> str:
    """A number with four digits that count and no needless zeros; a text as it is."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    size = abs(value)
    if size != 0 and (size >= 1e15 or size < 1e-4):
        return f"{value:.3e}"
    if size >= 10_000:
        return f"{value:,.0f}".replace(",", "\u202f")
    if float(value).is_integer():
        return str(int(value))
    decimals = 0 if size >= 1000 else 1 if size >= 100 else 2 if size >= 10 else 3 if size >= 1 else 4
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def percent(value: float | None) -> str:
    """For example `-4.3 %`; empty when unknown."""
    return "" if value is None else f"{round(value, 1) + 0.0:+.1f} %"


def with_unit(value: Figure, unit: str) -> str:
    """For example `466.9 GB/s`."""
    text = figure(value)
    return f"{text} {unit}" if text and unit else text


def in_words(check: Check) -> str:
    """For example `437.9 GB/s, expected 460 GB/s`."""
    parts = [with_unit(check.value, check.unit)]
    if check.expected is not None and check.expected != "":
        parts.append(f"expected {with_unit(check.expected, check.unit)}")
    return ", ".join(part for part in parts if part)


def message_size(count: float) -> str:
    """Bytes as nccl-tests writes them, in powers of 1024: 8 B, 64 KiB, 16 GiB."""
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    place = 0
    while count >= 1024 and place < len(units) - 1:
        count /= 1024
        place += 1
    return f"{count:.4g} {units[place]}"


def duration(seconds: float | None) -> str:
    """For example `1 h 12 min`; empty when unknown."""
    if seconds is None:
        return ""
    whole = round(seconds)
    if whole < 0:
        return "negative"
    if whole >= 2 * _DAY_S:
        return _two(whole, (_DAY_S, "d"), (_HOUR_S, "h"))
    if whole >= _HOUR_S:
        return _two(whole, (_HOUR_S, "h"), (_MINUTE_S, "min"))
    return _two(whole, (_MINUTE_S, "min"), (1, "s")) if whole >= _MINUTE_S else f"{whole} s"


def _two(whole: int, large: tuple[int, str], small: tuple[int, str]) -> str:
    rest = whole % large[0] // small[0]
    return f"{whole // large[0]} {large[1]}" + (f" {rest} {small[1]}" if rest else "")


def moment(text: str) -> str:
    """`2026-11-23 06:30` of a UTC time."""
    return text[:16].replace("T", " ")
