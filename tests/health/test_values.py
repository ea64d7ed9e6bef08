"""Values as numbers; ages and moments as users type them."""

from __future__ import annotations

import pytest

from generator.errors import CannotRead
from generator.health.ages import age_s, duration, moment_s
from generator.health.findings import HOLDS, in_words, number
from generator.results.units import is_rate


@pytest.mark.parametrize(
    ("value", "relation", "limit", "expected"),
    [
        # The pairs that text comparison gets wrong in the references.
        ("9.5", "ge", "23.0", False),
        ("97.5", "ge", "185.0", False),
        ("99.0", "ge", "228.0", False),
        ("100.2", "ge", "24", True),
        ("6.0", "ge", "52", False),
        ("48", "ge", "48.0", True),
        ("47.999", "ge", "48", False),
        ("8", "eq", "8.00", True),
        ("10", "lt", "9", False),
        ("-1", "le", "0", True),
        ("1e-6", "gt", "0.000001", False),
        ("2", "ne", "2.0", False),
    ],
)
def test_numbers_are_compared_as_numbers(value: str, relation: str, limit: str, expected: bool) -> None:
    """Never as text."""
    left, right = number(value), number(limit)
    assert left is not None
    assert right is not None
    assert HOLDS[relation](left, right) is expected


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "nan", "inf", "0x10", "1.", ".5", "1,5", "٣", "8/8", "1e999", "9" * 41]
)
def test_what_is_no_number(text: str) -> None:
    """Such a value is never compared."""
    assert number(text) is None


@pytest.mark.parametrize("unit", ["GB/s", "Gb/s", "MB/s", "TB/s", "Gbps", "Gb/sec", "GiB/s", "TFLOPS"])
def test_units_of_which_more_is_better(unit: str) -> None:
    """Bandwidths and speeds."""
    assert is_rate(unit)


@pytest.mark.parametrize("unit", ["", "GPUs", "us", "Celsius", "percent", "KiB", "steps", "errors/s", "maps"])
def test_units_that_say_nothing_about_speed(unit: str) -> None:
    """They are not compared within the fleet."""
    assert not is_rate(unit)


def test_words() -> None:
    """The unit stands with each number."""
    assert in_words("41.2", "ge", "48", "GB/s") == "41.2 GB/s, at least 48 GB/s"
    assert in_words("7", "eq", "8", "GPUs") == "7 GPUs, expected 8 GPUs"
    assert in_words("", "le", "0", "") == "at most 0"
    assert in_words("3", "", "", "rows") == "3 rows"
    assert in_words("", "", "", "GB/s") == ""


@pytest.mark.parametrize(
    ("text", "seconds"), [("2h", 7200), ("90m", 5400), ("1d12h", 129_600), ("45s", 45), (" 1h30m ", 5400), ("0s", 0)]
)
def test_ages(text: str, seconds: float) -> None:
    """Days, hours, minutes, seconds."""
    assert age_s(text, "--max-age") == seconds


@pytest.mark.parametrize("text", ["", "2", "h", "2 h", "-1h", "1m2h", "1.5h", "2w", "99999d"])
def test_what_is_no_age(text: str) -> None:
    """Says the option, the text and an example."""
    with pytest.raises(CannotRead, match="--max-age") as caught:
        age_s(text, "--max-age")
    assert "2h" in str(caught.value.hint)


def test_moments() -> None:
    """With a zone, or not at all."""
    assert moment_s("1970-01-01T01:00:00Z", "--now") == 3600
    assert moment_s("1970-01-01T01:00:00+01:00", "--now") == 0
    for text, words in (
        ("yesterday", "is not a valid time"),
        ("2026-11-21T10:00:00", "has no time zone"),
        ("", "is not a valid time"),
    ):
        with pytest.raises(CannotRead, match=words):
            moment_s(text, "--now")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (59.9, "59s"),
        (60, "1m"),
        (3599, "59m"),
        (3600, "1h"),
        (7500, "2h05m"),
        (86_400, "1d"),
        (180_000, "2d02h"),
    ],
)
def test_durations(seconds: float, text: str) -> None:
    """Short enough for a column."""
    assert duration(seconds) == text
