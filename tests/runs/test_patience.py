"""What is followed while nobody answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from generator.cyclecloud.jobs import connection
from generator.cyclecloud.jobs.connection import Connection
from generator.cyclecloud.shell import Shell, Unreachable
from generator.errors import AzureRefused


class Scheduler(Shell):
    """Says what a test has; `lost` and `end` are the end of a connection."""

    def __init__(self, *rounds: str) -> None:
        super().__init__(Path("ssh_config"), "scheduler")
        self.rounds = [*rounds]

    def follow(self, command: str) -> Iterator[str]:
        """One line after the other."""
        while self.rounds:
            line = self.rounds.pop(0)
            if line == "lost":
                raise Unreachable("the connection was closed", "")
            if line == "end":
                return
            yield line


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits here."""
    monkeypatch.setattr(connection, "PAUSE_S", 0.0)


def said(*rounds: str) -> list[str]:
    """The kinds of what is shown."""
    return [line.kind for line in Connection(Scheduler(*rounds)).follow("run")]


def test_silence_is_said_once_and_so_is_its_end() -> None:
    rounds = ("tick", "silent\tno", "tick", "silent\tno", "tick", "tick", "tick", "silent\tno", "tick", "over")
    assert said(*rounds) == ["silent", "answers", "silent", "answers", "over"]


def test_a_scheduler_that_comes_back_without_its_file_systems_is_waited_for() -> None:
    without = "error\tthe folder is not there"
    rounds = ("tick", "lost", *["bash: no such file", "end"] * 6, without, without, "tick", "lost", "over")
    assert said(*rounds) == ["lost", "lost", "over"]
    with pytest.raises(AzureRefused, match="the folder is not there"):
        said("tick", without)
    with pytest.raises(AzureRefused, match="ended: no such file"):
        said("tick", "lost", "tick", *["no such file", "end"] * 6)


@pytest.mark.parametrize("rounds", [("silent\tit is away", "tick") * 2, ("lost", "silent\tit is away", "lost") * 2])
def test_silence_ends_after_a_while(monkeypatch: pytest.MonkeyPatch, rounds: tuple[str, ...]) -> None:
    """Also where the connection is lost in between."""
    monkeypatch.setattr(connection, "PATIENCE_S", -1.0)
    with pytest.raises(AzureRefused) as refused:
        said(*rounds)
    assert refused.value.exit_code == 4
    assert refused.value.hint == "the job continues; run the same command to reattach"


def test_a_log_goes_on_behind_a_lost_connection() -> None:
    asked: list[str] = []

    class Asked(Scheduler):
        def follow(self, command: str) -> Iterator[str]:
            asked.append(command.partition(" follow ")[2])
            yield from super().follow(command)

    shell = Asked("log\ta\t7_1:4\tone", "log\ta\t7_2:5\ttwo", "log\ta\t7_1:8\tthree", "tick", "lost", "over")
    assert [line.words for line in Connection(shell).follow("run") if line.kind == "log"] == [
        ("7_1", "one"), ("7_2", "two"), ("7_1", "three")
    ]  # fmt: skip
    assert asked == ["run ", "run a=7_1:8 a=7_2:5"]
