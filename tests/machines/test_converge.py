"""All projects from start to end on a disposable node, as CycleCloud's agent runs them, twice, and after kills.

systemd does not run here, an imitation answers for it; `test_booted.py` has the real one, and the kinds of nodes that
are not here.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.bed.machines.agent import ORDER, Agent, Script
from tests.bed.machines.images import (
    ALMA_8,
    ALMA_9,
    CPU_NODE,
    GPU_NODE,
    SCHEDULER,
    UNKNOWN,
    NodeKind,
    calls,
    forbidden_calls,
)
from tests.bed.machines.nodes import (
    ACTS,
    QUICK,
    RESTARTS,
    SLURM_UNIT,
    commands_per_step,
    inodes,
    kills,
    node,
    rewritten,
    run_to_the_end,
    state,
)
from tests.bed.machines.overlay import Machine, differences, saved

KINDS = {
    "scheduler": SCHEDULER,
    "gpu-alma8": replace(GPU_NODE, system=ALMA_8),
    "unknown-system": replace(GPU_NODE, system=UNKNOWN),
    "unknown-size": replace(GPU_NODE, vm_size="Standard_ND1024_v9"),
}
KILLS_PER_STEP = int(os.environ.get("CYCLEFORGE_KILLS_PER_STEP", "1"))
"""More of them take longer and are for a run by hand."""

REPORTED = {"unknown-system": "opensuse-leap-15.6", "unknown-size": "standard_nd1024_v9"}
"""What a warning must name."""


def forget_calls(machine: Machine) -> None:
    machine.write("/var/lib/faked/calls", "")


@pytest.mark.parametrize("name", KINDS)
def test_a_second_converge_changes_and_restarts_nothing(name: str) -> None:
    with node(KINDS[name]) as (machine, agent):
        output = "".join(ran.output for ran in run_to_the_end(agent).values())
        assert name not in REPORTED or [line for line in agent.warnings() if REPORTED[name] in line]
        first = state(machine)
        assert forbidden_calls(machine) == []
        assert [call for call in calls(machine) if ACTS.match(call) and SLURM_UNIT.search(call)] == []
        assert "in this imitation" not in output
        forget_calls(machine)
        files = inodes(machine, first)
        agent.forget_markers()
        run_to_the_end(agent)
        assert differences(first, state(machine)) == []
        assert [call for call in calls(machine) if RESTARTS.match(call)] == []
        assert rewritten(files, inodes(machine, first)) == []


def check_kills(agent: Agent, kind: NodeKind, scripts: list[Script]) -> int:
    """Each script of the list in turn, killed at each of its steps and run again; how many kills there were."""
    done = 0
    for script in scripts:
        with saved(agent.machine) as before:
            ran, steps = commands_per_step(agent, script)
            assert ran.code == 0, ran.output
            expected = state(agent.machine)
            for kill in kills(script, steps, KILLS_PER_STEP):
                with node(kind, before) as (machine, other):
                    killed = other.run(script, **QUICK, **kill.environment())
                    assert killed.code == -9, f"{script} was to be killed at {kill}:\n{killed.output}"
                    assert not other.is_done(script)
                    again = other.run(script, **QUICK)
                    assert again.code == 0, f"{script} after a kill at {kill}:\n{again.output}"
                    assert differences(expected, state(machine)) == [], f"{script} killed at {kill}"
                    done += 1
    return done


GPU_PROJECTS = tuple(project for project in ORDER if project != "slurm_policy")


@pytest.mark.parametrize(
    ("kind", "projects"),
    [
        (GPU_NODE, GPU_PROJECTS),
        (SCHEDULER, ("slurm_nhc", "slurm_policy")),
        (replace(CPU_NODE, system=ALMA_9), ("misc_ubuntu",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else f"{value.role}-{value.system}",
)
def test_a_node_that_is_killed_at_any_step_ends_the_same(kind: NodeKind, projects: tuple[str, ...]) -> None:
    """One node goes through its projects in their order, and copies of it are killed on the way."""
    with node(kind) as (_, agent):
        for name in ORDER[: ORDER.index(projects[-1]) + 1]:
            if name in projects:
                scripts = [script for script in agent.scripts if script.project == name]
                assert check_kills(agent, kind, scripts) > 1, name
            else:
                run_to_the_end(agent, name)
