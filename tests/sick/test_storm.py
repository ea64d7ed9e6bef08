"""A storm of random faults, jobs, repairs and boots over emulated nodes; `make storm` has ten minutes of it."""

from __future__ import annotations

import os
import secrets
import sys
import time

import pytest

from tests.bed.sick import running_sick
from tests.bed.sick.storm import Storm

EVENTS = 40
LONG, LONG_S = 380, 600
"""How many events a storm has on any machine, and how long it goes on where they come quickly."""
NODES = 8
LINES = ("SchedulerParameters=nohold_on_prolog_fail",)


def seed() -> int:
    """The same every time, so that what was green stays so; CYCLEFORGE_STORM_SEED names another one, or `random`."""
    wanted = os.environ.get("CYCLEFORGE_STORM_SEED", "14")
    return secrets.randbelow(10**6) if wanted == "random" else int(wanted)


def storm(number: int, events: int, at_least_s: float = 0) -> int:
    """How many events it had."""
    with running_sick(NODES, lines=LINES) as cluster:
        return Storm(cluster, number).run(events, at_least_s)


def test_a_storm_loses_no_node_and_gives_no_job_to_a_sick_one() -> None:
    assert storm(seed(), EVENTS) == EVENTS


@pytest.mark.guard(7200)
@pytest.mark.skipif("CYCLEFORGE_STORM" not in os.environ, reason="ten minutes: make storm")
def test_a_long_storm(capfd: pytest.CaptureFixture[str]) -> None:
    number, given = seed(), os.environ.get("CYCLEFORGE_STORM_EVENTS")

    def say(text: str) -> None:
        with capfd.disabled():
            print(f"\nstorm: {text}", file=sys.stderr, flush=True)

    say(f"CYCLEFORGE_STORM_SEED={number} make storm   repeats its events, CYCLEFORGE_STORM_EVENTS=N only the first N")
    begin = time.monotonic()
    count = storm(number, int(given)) if given else storm(number, LONG, LONG_S)
    say(f"{count} events in {time.monotonic() - begin:.0f} s")
