"""All projects on a fresh node and on its second boot, step by step, on a machine that boots a real systemd.

The second boot is that of a prepared image: what the projects made is there, the agent's markers are not. Disks, GPUs
and the node agent are imitations, and third-party blobs are not in the locker, so the times are those of the
scripts and of what the system itself does for them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import pytest

from benchmarks.table import Ratio
from tests.bed.machines import images
from tests.bed.machines.agent import ORDER, Agent, Ran
from tests.bed.machines.images import GPU_NODE
from tests.bed.machines.nodes import booted_image, booted_on, run_to_the_end
from tests.bed.machines.overlay import Machine, saved

ROUNDS = 3
PREPARED_LIMIT = 1.2
"""A prepared image must not cost more than a fresh one; the rest is for noise."""
STARTS_LIMIT = 100
"""A script on a prepared image may cost as much as starting a hundred shells: seconds for all, not minutes."""

Times = dict[tuple[str, str], float]
"""Milliseconds by script and step; of a script as a whole where the step is empty."""


def converge_ratios() -> Iterator[Ratio]:
    """Prepared beside fresh, and prepared beside one `bash -c true` per script; prints the table of steps first."""
    try:
        cold, prepared, bare, calls = _fastest()
    except pytest.skip.Exception as reason:
        print(f"--    all projects on a node: not measured, {reason}")
        return
    print("\n".join(_table(cold, prepared, calls)))
    fresh, again = _total(cold), _total(prepared)
    scripts = len({script for script, _ in prepared})
    yield Ratio("all projects, prepared image", again, "fresh node", fresh, PREPARED_LIMIT)
    yield Ratio("all projects, prepared image", again, f"bash -c true, {scripts} times", bare, STARTS_LIMIT)


def _fastest() -> tuple[Times, Times, float, int]:
    """The least times of some rounds, in milliseconds and for the shells in seconds; and calls of the agent."""
    cold: Times = {}
    prepared: Times = {}
    bare, calls = float("inf"), 0
    with booted_image(GPU_NODE) as image:
        for _ in range(ROUNDS):
            with booted_on(GPU_NODE, image) as (machine, agent):
                _keep_least(cold, _times(run_to_the_end(agent)))
                with saved(machine) as converged, booted_on(GPU_NODE, image, converged) as (second, again):
                    second.write("/var/lib/faked/calls", "")
                    again.forget_markers()
                    _keep_least(prepared, _times(run_to_the_end(again)))
                    calls = len(images.calls(second, "jetpack config"))
                    bare = min(bare, _shells(second, again))
    return cold, prepared, bare, calls


def _times(done: Mapping[str, Ran]) -> Times:
    found: Times = {}
    for name, ran in done.items():
        found[name, ""] = ran.seconds * 1000
        for step, _, ms in ran.steps():
            found[name, step] = found.get((name, step), 0) + ms
    return found


def _keep_least(least: Times, times: Times) -> None:
    for key, ms in times.items():
        least[key] = min(ms, least.get(key, ms))


def _shells(machine: Machine, agent: Agent) -> float:
    start = time.perf_counter()
    for _ in agent.scripts:
        machine.run("true")
    return time.perf_counter() - start


def _total(times: Times) -> float:
    """Seconds of all scripts."""
    return sum(ms for (_, step), ms in times.items() if not step) / 1000


def _table(cold: Times, prepared: Times, calls: int) -> Iterator[str]:
    yield f"      {'step':52}{'cold':>8} {'prepared':>9}   (ms)"
    for script, step in cold:
        first, second = cold[script, step], prepared.get((script, step))
        name = f"  {step}" if step else script
        yield f"      {name:52}{first:8.0f} {'-' if second is None else f'{second:.0f}':>9}"
    for project in ORDER:
        sums = [sum(ms for (script, step), ms in times.items() if not step and script.startswith(f"{project}/"))
                for times in (cold, prepared)]  # fmt: skip
        yield f"      {project:52}{sums[0]:8.0f} {sums[1]:9.0f}"
    total = f"all projects, {calls} calls of jetpack config"
    yield f"      {total:52}{_total(cold) * 1000:8.0f} {_total(prepared) * 1000:9.0f}"
