"""The work for a definition grows linearly with the number of its problems; counted in calls, not in seconds."""

from __future__ import annotations

import cProfile
import itertools
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from generator import pipeline
from generator.problems.text import as_json, render

HEAD = "name: big\nlocation: southcentralus\n"
PARTITION = "slurm:\n  partitions:\n    - {name: p, vm_size: Standard_D4ads_v5, max_nodes: 2}\n"
FEW, MANY = 100, 200
STARTS = itertools.count(10_000, 1000)
"""Every text has numbers of its own, so that nothing is remembered from the one before."""

Kind = Callable[[range], str]
"""The text of a definition with one thing for each number."""


def partitions(keys: Callable[[int], str]) -> Kind:
    """A definition with one partition for each number, `name` among the given keys."""

    def text(numbers: range) -> str:
        return f"{HEAD}slurm:\n  partitions:\n" + "".join(f"    - {{{keys(number)}}}\n" for number in numbers)

    return text


def section(head: str, row: Callable[[int], str]) -> Kind:
    """A definition with one good partition, and a section with one row for each number."""

    def text(numbers: range) -> str:
        return HEAD + PARTITION + head + "".join(f"{row(number)}\n" for number in numbers)

    return text


def one_line(numbers: range) -> str:
    """A definition that is one long line with a bad partition for each number."""
    rows = ", ".join(f"{{name: p{number}, vm_sise: Standard_D4ads_v5, max_nodes: 2}}" for number in numbers)
    return f"{HEAD}slurm: {{partitions: [{rows}]}}\n"


def unlike_digits(number: int) -> str:
    """The number in letters: digits are in the names of sizes, so how many are close would change with the number."""
    return str(number).translate(str.maketrans("0123456789", "ĉĝĥĵŝŭčěňř"))


GOOD_PARTITIONS = partitions(
    lambda n: f"name: p{n}, vm_size: Standard_D4ads_v5, max_nodes: 2" + ", default: true" * (n % 1000 == 0)
)
PARTITIONS = {
    "unknown key": partitions(lambda n: f"name: p{n}, vm_sise: Standard_D4ads_v5, max_nodes: 2"),
    "bad type": partitions(lambda n: f"name: p{n}, vm_size: Standard_D4ads_v5, max_nodes: two"),
    "unknown size": partitions(lambda n: f"name: p{n}, vm_size: Standard_D{unlike_digits(n)}bad_v5, max_nodes: 2"),
    "bad name": partitions(lambda n: f"name: P_{n}, vm_size: Standard_D4ads_v5, max_nodes: 2"),
    "same name": partitions(lambda _: "name: p, vm_size: Standard_D4ads_v5, max_nodes: 2"),
    "same key": partitions(lambda n: f"name: p{n}, name: q{n}, vm_size: Standard_D4ads_v5, max_nodes: 2"),
    "environment": partitions(lambda n: f"name: p{n}, vm_size: '${{SIZE{n}}}', max_nodes: 2"),
    "unset variable": partitions(lambda n: f"name: p{n}, vm_size: 'Standard_${{UNSET{n}}}', max_nodes: 2"),
    "unknown project": partitions(
        lambda n: f"name: p{n}, vm_size: Standard_D4ads_v5, max_nodes: 2, extra_projects: [misc_ubunto]"
    ),
}
OTHERS = {
    "several problems each": partitions(
        lambda n: f"name: P_{n}, vm_size: Standard_D{unlike_digits(n)}bad_v5, max_nodes: two, imige: x"
    ),
    "unknown top": section("", lambda n: f"locatoin{n}: 3"),
    "tags": section("tags:\n", lambda n: f"  'bad<{n}': x"),
    "broken variables": section("tags:\n", lambda n: f"  t{n}: '${{A{n}}} ${{B{n}}} ${{'"),
    "secrets": section("tags:\n", lambda n: f"  password{n}: hunter2{n}"),
    "aliases": section("tags:\n", lambda n: f"  t{n}: *nope{n}"),
    "settings": section("  settings:\n", lambda n: f"    SchedulrTimeSlice{n}: 3"),
    "same mount": section(
        "storage:\n  mounts:\n", lambda _: "    - {path: /data, type: existing, address: a.b, export_path: /x}"
    ),
    "mount inside another": section(
        "storage:\n  mounts:\n    - {path: /data, type: existing, address: a.b, export_path: /x}\n",
        lambda n: f"    - {{path: /data/{n}, type: existing, address: a.b, export_path: /x}}",
    ),
    "sources": section("network:\n  access: public\n  allowed_sources:\n", lambda n: f"    - 10.0.{n % 256}.1/8"),
    "silence": section("silence:\n", lambda n: f"  - {{rule: E{n}, reason: x}}"),
    "projects": section("projects:\n", lambda n: f"  - {{name: p{n}, version: 1.0.0}}"),
    "jobs": section("jobs:\n  training:\n", lambda n: f"    - {{recipe: gpt3-175c, name: j{n}}}"),
    "one line": one_line,
}
BAD = {**PARTITIONS, **OTHERS}
GOOD = "good"
KINDS = {GOOD: GOOD_PARTITIONS, **BAD}


def report(kind: Kind, count: int) -> int:
    """Check so many, print and list all problems; returns their number."""
    start = next(STARTS)
    numbers = range(start, start + count)
    env = {f"SIZE{number}": f"Standard_Hunter{unlike_digits(number)}_v5" for number in numbers}
    checked = pipeline.check(kind(numbers).encode(), "big.yaml", env, Path())
    render(checked.problems, checked.source)
    as_json(checked.problems, checked.source)
    return len(checked.problems)


@dataclass(frozen=True)
class Work:
    """What one check of a definition took and found."""

    calls: int
    """Calls of functions, ours and built-in ones, while it is checked and its problems are printed."""
    problems: int


@cache
def work(kind: str, count: int) -> Work:
    """Counted once: two tests compare the same definitions."""
    profile, before = cProfile.Profile(), sys.getprofile()
    try:
        problems = profile.runcall(report, KINDS[kind], count)
    finally:
        sys.setprofile(before)
    return Work(sum(entry.callcount for entry in profile.getstats()), problems)


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Everything is imported and the catalogue is read before anything is counted."""
    for kind in KINDS.values():
        report(kind, 2)


@pytest.mark.parametrize("kind", BAD, ids=[kind.replace(" ", "-") for kind in BAD])
def test_twice_the_problems_take_twice_the_work(kind: str) -> None:
    once, twice = work(kind, FEW), work(kind, MANY)

    assert once.problems >= FEW - 1
    # What does not depend on the number of problems makes it less than two; quadratic growth would make it four.
    assert twice.calls < 2.1 * once.calls


@pytest.mark.parametrize("kind", PARTITIONS, ids=[kind.replace(" ", "-") for kind in PARTITIONS])
def test_bad_partitions_take_a_bounded_multiple_of_the_work_of_good_ones(kind: str) -> None:
    """An unknown size is compared with all 536 by `difflib`: 3 ms, in 10,000 small calls."""
    assert work(kind, FEW).calls < 4 * work(GOOD, FEW).calls
