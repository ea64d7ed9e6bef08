"""Whatever is in a record: it is a run or a named problem, and every form of the report can be made of it."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from generator.validation.assess import assess
from generator.validation.compare import compare, side
from generator.validation.gather import gather
from generator.validation.machine import as_json
from generator.validation.page import report_page
from generator.validation.text import Report
from tests.validation import records

NUMBERS = (0, -1, 1e299, -1e299, 1e-300, -0.0, 10**18, 10**400, 5, 1e15, True)
TEXTS = (
    "",
    "x",
    "\u202e",
    "a" * 5000,
    "GB/s",
    "busbw ",
    "pair x",
    "gpu clock",
    "\x00",
    "bytes",
    "fail",
    "9999-12-31T23:59:59Z",
)
ANYTHING: tuple[Any, ...] = (
    *NUMBERS,
    *TEXTS,
    None,
    [],
    {},
    ["gpu-1", "gpu-2"],
    [[0, 0], [0, 0]],
    [[1, -5], [1024, 1e299]],
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value, of lists to the first few."""
    members = value.items() if isinstance(value, dict) else enumerate(value[:6]) if isinstance(value, list) else ()
    return [path, *(each for key, member in members for each in places(member, (*path, key)))]


def changed(value: Any, chance: random.Random, *, like: bool) -> Any:
    """A copy in which some values are others; with `like`, of the same type, so that most are still records."""
    value = json.loads(json.dumps(value))
    ways = places(value)[1:]
    for path in (chance.choice(ways) for _ in range(chance.randint(3, 20) if like else chance.randint(1, 3))):
        holder = value
        for key in path[:-1]:
            holder = holder[key]
        old = holder[path[-1]]
        if not like:
            holder[path[-1]] = chance.choice(ANYTHING)
            return value
        if isinstance(old, str):
            holder[path[-1]] = chance.choice(TEXTS)
        elif isinstance(old, int | float):
            holder[path[-1]] = chance.choice(NUMBERS)
    return value


@pytest.mark.parametrize("seed", range(8))
def test_every_form_of_the_report_can_be_made_of_any_records(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    for place, value in enumerate([*records.proof(100, 6), *records.proof(110, 6)]):
        (tmp_path / str(place)).mkdir()
        text = json.dumps(changed(value, chance, like=bool(seed % 2)))
        (tmp_path / str(place) / "run.json").write_text(text)
    gathered = gather([str(tmp_path)])
    assert len(gathered.runs) + gathered.copies + sum(each.kind != "conflict" for each in gathered.problems) == 10
    assessment = assess(gathered)
    comparison = None
    if gathered.runs:
        first, last = gathered.runs[0], gathered.runs[-1]
        comparison = compare(*(side(run.file, gathered.runs) for run in (first, last)))
    page = report_page(assessment, comparison)
    assert page.encode()
    assert json.loads(json.dumps(as_json(assessment, comparison)))["verdict"] == assessment.verdict
    assert "\x00" not in Report(assessment, comparison).text()
    if gathered.problems:
        assert assessment.verdict in ("error", "fail")
