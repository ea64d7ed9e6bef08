"""What a value in a result may be: each rule gives None for a good value, and otherwise what it should have been."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeAlias

Wanted: TypeAlias = str | tuple[str, ...]
"""In words, or the values of which it has to be one."""
Accepts: TypeAlias = Callable[[Any], Wanted | None]
_NAME = "a name, or a UTC time such as 2026-11-21T10:00:00Z, as the field wants it"


def text(longest: int, *, shortest: int = 0) -> Accepts:
    """A text of so many characters."""

    def wanted(value: Any) -> Wanted | None:
        if type(value) is not str or len(value) < shortest:
            return "a text"
        if len(value) > longest:
            return "a text of this length"
        return None if value.isascii() or _is_unicode(value) else "a text of valid characters"

    return wanted


def matching(pattern: str) -> Accepts:
    """A text of this form."""
    form = re.compile(pattern)

    def wanted(value: Any) -> Wanted | None:
        if type(value) is not str:
            return "a text"
        return None if form.fullmatch(value) else _NAME

    return wanted


def moment(pattern: str) -> Accepts:
    """A time of this form that the calendar and the clock know."""
    form = matching(pattern)

    def wanted(value: Any) -> Wanted | None:
        found = form(value)
        if found is None:
            try:
                datetime.fromisoformat(value)
            except ValueError:
                return "a valid date and time"
        return found

    return wanted


def one_of(options: tuple[str, ...]) -> Accepts:
    """One of these texts."""
    known = frozenset(options)
    return lambda value: None if type(value) is str and value in known else options


def whole_number(at_least: int) -> Accepts:
    """A whole number that is not too small; true is none."""

    def wanted(value: Any) -> Wanted | None:
        if type(value) is not int:
            return "a whole number"
        return None if value >= at_least else f"a number from {at_least}"

    return wanted


def true_or_false(value: Any) -> Wanted | None:
    """A JSON boolean."""
    return None if type(value) is bool else "true or false"


def list_of(most: int) -> Accepts:
    """A list of at most so many; what its items are is another question."""

    def wanted(value: Any) -> Wanted | None:
        if type(value) is not list:
            return "a list"
        return None if len(value) <= most else f"a list of at most {most}"

    return wanted


def as_metadata(accepts: Accepts) -> Mapping[str, Accepts]:
    """For the field of a dataclass."""
    return {"accepts": accepts}


def _is_unicode(value: str) -> bool:
    """JSON can escape half a surrogate pair, which no file can hold."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
