"""Mutated and random definitions: a problem with a place, or a clean build; never a traceback."""

from __future__ import annotations

import random
import string
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generator import pipeline
from generator.problems.problem import locate
from generator.problems.text import render as render_problems
from tests.definitions.build import NAMES, path_of

WORDS = (
    "null",
    "true",
    "-1",
    "0",
    "99999999999",
    "1.5",
    "''",
    "[]",
    "{}",
    "[1, 2]",
    "{a: b}",
    "x" * 300,
    "ünïcödé",
    "10.0.0.0/33",
    "10.50.0.0/8",
    "0.0.0.0/0",
    "Standard_ND96isr_H100_v5",
    "Standard_Nope",
    "a_b",
    "../..",
    "/",
    "${HOME_NOT_SET}",
    "${",
    "&a [*a]",
    "!!python/object:os.system",
    "hpc",
    "eastus",
    "atlantis",
    "existing",
    "anf",
    "amlfs",
    "nfs",
    '"quoted"',
    "- a",
    "? b",
    "%",
    "@",
    "`",
    "2026-01-01",
    "0x10",
    "1e3",
    ".inf",
)
ALPHABET = string.ascii_letters + string.digits + " :-{}[]#&*!|>'\"%@`,?\n\t/.\\$"


def mutated(text: str, seed: int) -> str:
    """A few changes as a slip of the hand or a bad merge makes them."""
    choose = random.Random(seed)
    lines = text.splitlines()
    for _ in range(choose.randint(1, 4)):
        index = choose.randrange(len(lines)) if lines else 0
        match choose.randrange(8):
            case 0 if lines:
                del lines[index]
            case 1 if lines:
                lines.insert(choose.randrange(len(lines)), lines[index])
            case 2 if lines and ":" in lines[index]:
                lines[index] = lines[index].split(":", 1)[0] + ": " + choose.choice(WORDS)
            case 3 if lines:
                position = choose.randrange(len(lines[index]) + 1)
                lines[index] = lines[index][:position] + choose.choice(ALPHABET) + lines[index][position:]
            case 4 if lines:
                lines[index] = "  " + lines[index]
            case 5 if lines and len(lines[index]) > 1:
                position = choose.randrange(len(lines[index]))
                lines[index] = lines[index][:position] + lines[index][position + 1 :]
            case 6 if lines:
                parts = lines[index].split(", ")
                choose.shuffle(parts)
                lines[index] = ", ".join(parts[: choose.randint(1, len(parts))])
            case _:
                indent = choose.choice(["", "  ", "    "])
                key = choose.choice(["name", "slurm", "zone", "x", "size_tib", "tier"])
                lines.insert(index, f"{indent}{key}: {choose.choice(WORDS)}")
    return "\n".join(lines) + "\n"


def holds(text: bytes, folder: Path) -> None:
    """Problems with places that can be printed, or a folder that can be rendered."""
    checked = pipeline.check(text, "mutated.yaml", {}, folder)
    lines = max(len(checked.source.lines), 1)
    for problem in checked.problems:
        place = locate(problem, checked.source)
        assert 1 <= place.line <= lines
        assert 1 <= place.column <= place.end_column
        assert problem.message
    assert render_problems(checked.problems, checked.source) or not checked.problems
    if checked.plan is not None:
        assert pipeline.render(checked.plan, folder)
    else:
        assert any(problem.level == "error" for problem in checked.problems)


@given(name=st.sampled_from(NAMES), seed=st.integers(0, 2**32))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_mutated_definitions(name: str, seed: int) -> None:
    text = path_of(name).read_text(encoding="utf-8")
    holds(mutated(text, seed).encode("utf-8", "surrogatepass"), path_of(name).parent)


@given(st.text(max_size=300).map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=200))
@settings(max_examples=150, deadline=None)
def test_random_bytes(content: bytes) -> None:
    holds(content, Path())
