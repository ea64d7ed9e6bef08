"""Numbers with their nouns, and lists of words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


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
