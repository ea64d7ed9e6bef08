"""Counts, sizes, columns: what every command prints alike."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from generator.words.counts import counted, first, first_lines, listed, size, size_in_kb, size_in_kib, size_of_gib
from generator.words.terminal import columns, printable


@pytest.mark.parametrize(
    ("number", "noun", "text"),
    [
        (0, "file", "0 files"),
        (1, "file", "1 file"),
        (2, "older result", "2 older results"),
        (1, "address", "1 address"),
        (2, "address", "2 addresses"),
        (2, "switch", "2 switches"),
        (3, "prefix", "3 prefixes"),
    ],
)
def test_numbers_with_nouns(number: int, noun: str, text: str) -> None:
    assert counted(number, noun) == text


def test_sizes_beside_a_limit_are_never_rounded_down() -> None:
    assert [size_in_kib(size_bytes) for size_bytes in (0, 1, 1024, 1025)] == ["0 KiB", "1 KiB", "1 KiB", "2 KiB"]
    assert [size_in_kb(size_bytes) for size_bytes in (0, 1, 1000, 1001)] == ["0 kB", "1 kB", "1 kB", "2 kB"]


def test_lists() -> None:
    assert [listed(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a and b", "a, b and c"]
    assert [first(["a", "b", "c"], shown) for shown in (3, 2)] == ["a, b, c", "a, b and 1 more"]
    assert first_lines(["a", "b"], 2) == ["a", "b"]
    assert first_lines(["a", "b", "c"], 1) == ["a", "… and 2 more; --json lists all"]


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1 KiB"),
        (3072, "3 KiB"),
        (1024**2 - 1, "1.0 MiB"),
        (1024**2, "1.0 MiB"),
        (12.3 * 1024**2, "12.3 MiB"),
        (1024**3 - 1, "1.0 GiB"),
        (2 * 1024**3, "2.0 GiB"),
        (5 * 1024**4, "5.0 TiB"),
        (5000 * 1024**4, "5000.0 TiB"),
    ],
)
def test_sizes(size_bytes: float, text: str) -> None:
    assert size(size_bytes) == text


@given(st.integers(0, 2**50))
def test_a_size_is_near_what_it_stands_for(size_bytes: int) -> None:
    amount, unit = size(size_bytes).split()
    power = ("B", "KiB", "MiB", "GiB", "TiB").index(unit)
    assert unit == "TiB" or float(amount) < 1024
    assert float(amount) * 1024**power == pytest.approx(size_bytes, rel=0.34 if unit == "KiB" else 0.05)


def test_sizes_in_gib() -> None:
    assert [size_of_gib(gib) for gib in (64, 1024, 1500, 131072)] == ["64 GiB", "1 TiB", "1500 GiB", "128 TiB"]


def test_columns() -> None:
    rows = [("NAME", "SIZE", "STATE"), ("a", 12, None), ("longer", None, ""), ("b",)]
    text = "NAME    SIZE  STATE\na       12    —\nlonger  —\nb\n"
    assert columns(rows) == text
    assert columns(rows, indent="  ") == re.sub("^(?=.)", "  ", text, flags=re.MULTILINE)
    assert columns([]) == ""


def test_colours_take_no_room() -> None:
    painted = columns([("\x1b[1;31mFAIL\x1b[0m", "x"), ("healthy", "\x1b[32my\x1b[0m")])
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == "FAIL     x\nhealthy  y\n"


@given(st.text())
def test_what_is_printed_steers_no_terminal(text: str) -> None:
    shown = printable(text)
    assert "\x1b" not in shown
    assert "\n" not in shown
    assert text.isprintable() <= (shown == text)


def test_the_library_of_the_progress_is_not_imported_without_a_bar() -> None:
    program = (
        "import sys\nfrom generator.cli import main\n"
        "code = main(['list', 'rules', 'E0101'])\nassert code == 0\nassert 'rich' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=60)
