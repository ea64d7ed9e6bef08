"""Numbers that jobs compare: in Bash what it can count, with awk the rest, and the same answer from both."""

from __future__ import annotations

import subprocess

from generator.files import assets

LIBRARY = assets.folder("recipes") / "lib/common.sh"
ROWS = [
    "1 2", "2.50 2.5", "2.5 2.50", "08.1 8.10000", "8.09 8.1", "8.1 8.09", "10.5 9.75", "0.000000001 0.000000002",
    "999999999.999999999 1000000000", "1000000000 999999999.999999999", "1e3 999", "999 1e3", "1.5e-3 0.002",
    "0.1 0.10", "189.99 190", "190 189.999999999",
]  # fmt: skip


def answers(*lines: str) -> list[str]:
    """What these lines print after the library's functions are there, in one Bash."""
    functions = "/^is_number() {/,/^}/p; /^at_least() {/,/^}/p"
    script = [f"set -euo pipefail; . <(sed -n '{functions}' '{LIBRARY}')", *lines]
    done = subprocess.run(["bash", "-c", "\n".join(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_a_number_is_at_least_another_one() -> None:
    found = answers(*(f"if at_least {row}; then echo {row} yes; else echo {row} no; fi" for row in ROWS))
    wanted = [(*row.split(), "yes" if float(row.split()[0]) >= float(row.split()[1]) else "no") for row in ROWS]
    assert found == [word for row in wanted for word in row]


def test_decimals_start_no_program() -> None:
    decimals = [row for row in ROWS if "e" not in row and "1000000000" not in row.split()]
    lines = [f"at_least {row} || :" for row in decimals] + ["is_number 0.25"]
    assert answers("awk() { echo started; }", *lines) == []


def test_what_is_a_positive_number() -> None:
    words = ["0", "0.0", "0e5", "00", "", "x", "nan", "inf", "5.", ".5", "-1", "1 2", "1", "0.001", "1e-5", "1E5", "10"]
    found = answers(*(f"if is_number '{word}'; then echo yes; else echo no; fi" for word in words))
    assert found == ["no"] * 12 + ["yes"] * 5
