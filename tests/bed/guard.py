"""A guard against hanging: set-up, test and tear-down each end, however busy the machine is.

`@pytest.mark.guard(seconds)` gives a test another limit. It is a net, not a measure: at least ten times what the
slowest phase takes on an idle machine. The test fails with the place where it waited, what it started is killed, so
that nothing waits for that either, and the run continues. In a worker of pytest-xdist, tests run in the main thread,
which is where Python handles the signal.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

import pytest

GUARD_S = 900.0
AGAIN_S = 60.0
"""An exception may get lost, in a finaliser for example; so it comes again."""
LAST_TRY = 5
"""Then the process ends; pytest-xdist reports the test and starts another worker."""
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class Hung(BaseException):
    """The guard's limit has passed. Nothing that a test catches by chance."""


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "guard(seconds): another limit for hanging than the usual one")


def limit_of(item: pytest.Item) -> float:
    """Seconds that each phase of a test may take."""
    marker = item.get_closest_marker("guard")
    return float(marker.args[0]) if marker else GUARD_S


def descendants(started_after_s: float) -> Iterator[int]:
    """Processes below this one that began after a moment of the monotonic clock, deepest last."""
    children: dict[int, list[tuple[int, float]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                children.setdefault(int(fields[1]), []).append((int(entry.name), int(fields[19]) / _TICKS_PER_S))
    waiting = [os.getpid()]
    for parent in waiting:
        for pid, started_s in children.get(parent, []):
            waiting.append(pid)
            if started_s >= started_after_s:
                yield pid


@contextmanager
def guarded(limit_s: float, again_s: float = AGAIN_S) -> Iterator[None]:
    """Raise `Hung` in what runs inside when it takes longer, and kill what it started."""
    # Linux counts the start of a process in ticks of the clock that also runs while the machine sleeps.
    began_s = time.clock_gettime(time.CLOCK_BOOTTIME) - 1 / _TICKS_PER_S
    times = 0

    def ring(number: int, frame: FrameType | None) -> None:
        nonlocal times
        times += 1
        for pid in descendants(began_s):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if times >= LAST_TRY:
            print(f"hung: {times} exceptions did not end it", file=sys.__stderr__, flush=True)
            os._exit(70)
        raise Hung(f"not done after {limit_s:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, limit_s, again_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _phase(item: pytest.Item) -> Generator[None, object, object]:
    with guarded(limit_of(item)):
        try:
            return (yield)
        except Hung as hung:
            pytest.fail(f"{hung}: the guard of tests/bed/guard.py")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """Fixtures of a session or a module included."""
    return (yield from _phase(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    return (yield from _phase(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Also after a test that has failed."""
    return (yield from _phase(item))
