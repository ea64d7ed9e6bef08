"""The steps of the first boot, shown while `cycleforge deploy` watches the deployment that they are part of."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from generator.azure import first_boot
from generator.azure.first_boot import SHOW, BootWatch
from generator.azure.operation_tree import Part, news, tree_lines
from generator.azure.resource_ids import resource
from tests.bed.arm.exchange import RefusedError
from tests.bed.arm.machines import SIGNATURE
from tests.bed.arm.runs import timestamp
from tests.bed.arm.state import State
from tests.deploy.test_deploy import BOOT, DEPLOY
from tests.what_if.place import Place

CONSOLE, COMMAND = "*/retrieveBootDiagnosticsData", "*/runCommand"
GOING_ON = """\
CycleForge bootstrap of minimal: running
  done          4 s  Prepare the disk  nothing to do
  running      12 s  Start CycleCloud
  pending       0 s  Import the cluster
"""


@pytest.fixture
def booting(deployable: Place) -> Place:
    """A first boot of seven looks, each asked in the look itself; an older run is on the console."""
    deployable.patch.setattr(first_boot, "in_thread", inline)
    state = deployable.arm.state
    state.ticks["*/extensions/cycleforge-bootstrap"] = 35
    state.shell = lambda machine, script: (BOOT if script.endswith(SHOW) else "?", "")
    return deployable


def inline(work: Any) -> Any:
    work()
    return lambda: None


def line(state: State, step: str, at: int | None = None) -> str:
    stamp = timestamp(state, state.now if at is None else at)[:19]
    return f"minimal-server login: {stamp}Z cycleforge-bootstrap: step {step}\r\n"


def commands(place: Place) -> int:
    return len([each for each in place.arm.posts if each.endswith("/runCommand")])


def test_the_console_tells_while_it_goes_on(booting: Place) -> None:
    looks: list[str] = []

    def console(state: State, machine: str) -> str:
        looks.append(machine)
        old = line(state, "3/3 failed: Of an older run", -30)
        first = line(state, "1/3 running: Prepare the disk") + "[    9.1] a kernel\n"
        second = first + line(state, "1/3 done after 4 s: Prepare the disk")
        second += line(state, "2/3 running: Start CycleCloud")
        later = second + line(state, "2/3 warning: Start CycleCloud") + line(state, "3/3 running: Import")
        return old + ("", first, second + line(state, "2/3 warning: Half a line")[:-9], later)[min(len(looks) - 1, 3)]

    booting.arm.state.console = console
    code, _, err = booting(*DEPLOY)
    assert (code, booting.arm.refused) == (0, []), err
    shown = [text for text in err.splitlines() if text.partition(":")[0].split(" (")[0] in TITLES]
    assert shown == [
        "Prepare the disk: running",
        "Prepare the disk: done after 4 s",
        "Start CycleCloud: running",
        "Start CycleCloud (with a warning): done",
        "Import: running",
    ]
    assert err.index("Import: running") < err.index("cycleforge-bootstrap: done")
    assert SIGNATURE not in err
    assert commands(booting) == 1, "only in the end"
    assert BOOT in err


TITLES = ("Prepare the disk", "Start CycleCloud", "Import", "Of an older run", "Half a line")


def test_a_silent_console_and_an_agent_that_answers_at_once(booting: Place) -> None:
    booting.arm.state.is_agent_busy = False
    booting.arm.state.shell = lambda machine, script: (GOING_ON, "")
    code, _, err = booting(*DEPLOY)
    assert code == 0
    assert "Prepare the disk: done after 4 s\nStart CycleCloud: running\n" in err
    assert err.index("Start CycleCloud: running") < err.index("cycleforge-bootstrap: done")
    assert "Import the cluster:" not in err


def test_an_agent_that_answers_only_after_the_extension_is_asked_once(booting: Place) -> None:
    code, _, err = booting(*DEPLOY)
    assert (code, commands(booting), err.count(BOOT)) == (0, 1, 1)


def test_what_it_answered_too_early_is_asked_again(booting: Place) -> None:
    answers = [GOING_ON, BOOT]
    booting.arm.state.shell = lambda machine, script: (answers.pop(0), "")
    code, _, err = booting(*DEPLOY)
    assert (code, commands(booting), err.count(BOOT)) == (0, 2, 1)


def test_a_refused_console_is_said_once_and_the_run_command_takes_its_place(booting: Place) -> None:
    booting.arm.state.is_agent_busy = False
    booting.arm.state.shell = lambda machine, script: (GOING_ON, "")
    booting.arm.fail("POST", CONSOLE, RefusedError(403, "AuthorizationFailed", "no"), times=99)
    code, _, err = booting(*DEPLOY)
    assert (code, err.count("the serial console of the server cannot be read: AuthorizationFailed")) == (0, 1)
    assert "Start CycleCloud: running" in err
    assert len([each for each in booting.arm.posts if each.endswith("/retrieveBootDiagnosticsData")]) == 1


def test_both_refused_is_no_failure(booting: Place) -> None:
    for path in (CONSOLE, COMMAND):
        booting.arm.fail("POST", path, RefusedError(403, "AuthorizationFailed", "no"), times=99)
    code, out, err = booting(*DEPLOY)
    assert (code, "is deployed" in out) == (0, True)
    assert err.count("the server cannot be asked for its first boot: AuthorizationFailed") == 2, "once, and in the end"
    assert commands(booting) == 2


def test_storage_that_does_not_answer_is_said_without_its_address(booting: Place) -> None:
    booting.arm.lose("GET", "/bootdiagnostics/*", after_effect=False, times=99)
    code, _, err = booting(*DEPLOY)
    assert (code, err.count("the server's serial log: no connection to localhost")) == (0, 1)
    assert SIGNATURE not in err


def test_a_command_of_somebody_else_is_waited_for(booting: Place) -> None:
    busy = RefusedError(409, "Conflict", "Run command extension execution is in progress.")
    booting.arm.fail("POST", COMMAND, busy, times=7)
    code, _, err = booting(*DEPLOY)
    assert (code, err.count(BOOT), "Conflict" in err) == (0, 1, False)


def test_the_tree_does_not_wait_for_the_console(deployable: Place) -> None:
    asked, ended = threading.Event(), threading.Event()

    def slow(*_: Any) -> str:
        asked.set()
        ended.wait()
        return ""

    def end(self: BootWatch, pause: Any) -> str | None:
        assert asked.is_set()
        ended.set()
        return really(self, pause)

    really = BootWatch.end
    deployable.patch.setattr("generator.azure.first_boot.console_log", slow)
    deployable.patch.setattr(BootWatch, "end", end)
    deployable.arm.state.pace = 1
    code, _, err = deployable(*DEPLOY)
    assert (code, "cycleforge-bootstrap: done" in err) == (0, True)


def test_the_steps_stand_below_the_extension() -> None:
    extension = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/v/extensions/e"
    parts = (Part(resource(extension), "running", 60.0, (), (), 1.0),)
    steps = first_boot.of_status(GOING_ON)
    placed = first_boot.with_steps(parts, extension.upper(), steps)
    assert [row.split()[0] for row in tree_lines(placed)] == ["…", "✓", "…"]
    assert tree_lines(placed)[2].startswith("    … Start CycleCloud")
    said: dict[str, str] = {}
    assert len(news(placed, said)) == 3
    assert news(placed, said) == []
