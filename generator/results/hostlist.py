"""Host lists as Slurm writes them: `hpc-[1-16],gpu-[01-04]`, both ways, and the natural order of node names.

The grammar is that of `scontrol show hostnames`: brackets hold numbers and ranges, the lower bound gives the width of
the padding, several brackets make every combination, and nothing follows the last bracket of a name.
Source: https://slurm.schedmd.com/scontrol.html (show hostnames, show hostlist)
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import accumulate, product

from ..errors import CannotRead

MAX_NAMES = 65_536
"""The most names that a list may stand for, which is also the limit of Slurm for one range."""
NODE_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}"
"""A node name: the characters of host names, and the underscore."""

_DIGITS = 9
"""Longer numbers are part of the name: Slurm reads a number of a range into 64 bits and wraps silently."""
_PART = re.compile(r"\[(?P<ranges>[^\[\]]*)\]|(?P<text>[A-Za-z0-9._-]+)")
_RANGE = re.compile(rf"(\d{{1,{_DIGITS}}})(?:-(\d{{1,{_DIGITS}}}))?")
_TRAILING = re.compile(rf"(.*?)(\d{{1,{_DIGITS}}})", re.DOTALL)
_HINT = "write it as Slurm does, for example hpc-[1-16],gpu-[01-04]"


def natural_key(name: str) -> tuple[tuple[str | tuple[int, int], ...], str]:
    """Return the key that sorts hpc-2 before hpc-10, and equal numbers by their padding."""
    words = re.split(r"(\d+)", name)
    parts = [(int(word), len(word)) if index % 2 else word for index, word in enumerate(words)]
    return tuple(parts), name


def expand(text: str) -> tuple[str, ...]:
    """Return the names of a list in the order they are written, each once. Raise CannotRead."""
    names: dict[str, None] = {}
    for start, item in _items(text):
        parts = _parts(item, start, text)
        count = 1
        for part in parts:
            count *= sum(len(numbers) for numbers, _ in part) if isinstance(part, list) else 1
        if count + len(names) > MAX_NAMES:
            raise CannotRead(f"host list '{_short(text)}' stands for more than {MAX_NAMES} nodes", "name fewer nodes")
        choices = [list(_numbers(part)) if isinstance(part, list) else [part] for part in parts]
        for name in map("".join, product(*choices)):
            if re.fullmatch(NODE_NAME, name) is None:
                raise CannotRead(f"host list '{_short(text)}': '{_short(name)}' is not a valid node name", _HINT)
            names[name] = None
    if not names:
        raise CannotRead("the host list is empty", _HINT)
    return tuple(names)


def compress(names: Iterable[str]) -> str:
    """Return the shortest list, with the last number of each name in brackets, in natural order; padding is kept."""
    numbers: dict[str, set[str]] = {}
    plain: list[str] = []
    for name in set(names):
        found = _TRAILING.fullmatch(name)
        if found:
            numbers.setdefault(found[1], set()).add(found[2])
        else:
            plain.append(name)
    items = [(natural_key(name), name) for name in plain]
    for prefix, group in numbers.items():
        ranges = list(_ranges(group))
        text = ",".join(ranges)
        single = len(ranges) == 1 and "-" not in text
        items.append((natural_key(prefix), f"{prefix}{text}" if single else f"{prefix}[{text}]"))
    return ",".join(text for _, text in sorted(items))


# ---------------------------------------------------------------- reading

_Ranges = list[tuple[range, int]]
"""Numbers and the width that they are padded to."""


def _items(text: str) -> Iterator[tuple[int, str]]:
    """Yield the words between commas and spaces, with their places; extra commas are ignored, as in Slurm."""
    depth = start = 0
    for index, letter in enumerate(f"{text},"):
        if letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
        elif depth == 0 and (letter == "," or letter.isspace()):
            if index > start:
                yield start, text[start:index]
            start = index + 1
        if depth not in (0, 1):
            raise _wrong(text, index, "brackets do not match")
    if depth:
        raise _wrong(text, text.rindex("["), "a bracket is not closed")


def _parts(item: str, start: int, text: str) -> list[str | _Ranges]:
    parts: list[str | _Ranges] = []
    position = 0
    while position < len(item):
        found = _PART.match(item, position)
        if found is None:
            raise _wrong(text, start + position, f"'{item[position]}' is not allowed in a node name")
        if found["text"] is not None:
            parts.append(found["text"])
        else:
            words = found["ranges"].split(",")
            places = accumulate(words, lambda place, word: place + len(word) + 1, initial=start + position + 1)
            parts.append([_range(word, text, place) for word, place in zip(words, places, strict=False)])
        position = found.end()
    if len(parts) > 1 and isinstance(parts[-1], str) and any(isinstance(part, list) for part in parts):
        raise _wrong(text, start + len(item) - len(parts[-1]), "Slurm allows no text after the last bracket of a name")
    return parts


def _range(word: str, text: str, position: int) -> tuple[range, int]:
    found = _RANGE.fullmatch(word)
    if found is None:
        raise _wrong(text, position, f"'{_short(word)}' is neither a number nor a range such as 1-16")
    first, last = int(found[1]), int(found[2] or found[1])
    if first > last:
        raise _wrong(text, position, f"the range {word} runs backwards")
    return range(first, last + 1), len(found[1])


def _numbers(ranges: _Ranges) -> Iterator[str]:
    for numbers, width in ranges:
        for number in numbers:
            yield f"{number:0{width}}"


def _wrong(text: str, index: int, message: str) -> CannotRead:
    return CannotRead(f"host list '{_short(text)}', character {index + 1}: {message}", _HINT)


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"


# ---------------------------------------------------------------- writing


def _ranges(texts: set[str]) -> Iterator[str]:
    """Join numbers as written to ranges. A number without padding joins padded ones of its length: 09, 10."""
    padded = {len(text) for text in texts if len(text) > 1 and text.startswith("0")}
    ordered = sorted((int(text), len(text) if len(text) in padded else 0, text) for text in texts)
    runs: list[list[tuple[int, int, str]]] = []
    latest: dict[int, list[tuple[int, int, str]]] = {}
    """The last run of each width: 9, 09, 10 and 010 belong to three."""
    for entry in ordered:
        number, width, _ = entry
        run = latest.get(width)
        if run and run[-1][0] + 1 == number:
            run.append(entry)
        else:
            latest[width] = [entry]
            runs.append(latest[width])
    for run in sorted(runs):
        first, last = run[0][2], run[-1][2]
        yield first if first == last else f"{first}-{last}"
