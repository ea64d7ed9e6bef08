"""A verb that is run whole, then ended at a request, then typed again."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

from tests.bed.arm.exchange import Asked
from tests.bed.arm.offers import terms_path
from tests.command import COMMAND
from tests.what_if.place import PASSWORD, Place

TERMS = terms_path("azurecyclecloud", "azure-cyclecloud", "cyclecloud8-gen2")
LIMIT_S = 60
GONE = ("ended the connection, or was not reached", "was not reached: ")
"""What is said of a connection that is gone."""


class Verb:
    """Runs in this process; `killed` starts one."""

    def __init__(self, place: Place) -> None:
        self.place, self.arm = place, place.arm

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Undisturbed."""
        self.arm.connect()
        result = self.place(*words)
        assert self.arm.refused == [], self.arm.refused
        return result

    def numbers(self, is_meant: Callable[[Asked], bool]) -> list[int]:
        """The numbers of those requests of the last run."""
        return [number for number, each in enumerate(self.arm.requests, 1) if is_meant(each)]

    def ends(self) -> list[tuple[int, bool]]:
        """Where the last run may be ended: request, and whether after its effect, which only what is no GET has."""
        return [
            (number, after)
            for number, each in enumerate(self.arm.requests, 1)
            for after in ((False,) if each.method == "GET" else (False, True))
        ]

    def broken_off(self, number: int, after: bool, *words: str) -> tuple[int, str, str]:
        """The connection is gone from that request on."""
        self.arm.connect()
        self.arm.break_off(number, after_effect=after)
        result = self.place(*words)
        assert self.arm.refused == [], self.arm.refused
        return result

    def killed(self, number: int, after: bool, *words: str) -> None:
        """A process of its own, killed at that request; it leaves no secret behind."""
        self.arm.connect()
        with subprocess.Popen(
            [*COMMAND, *words],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(_paths())},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            self.arm.break_off(number, after_effect=after, end=process.kill)
            said = process.communicate(timeout=LIMIT_S)
        assert process.returncode == -signal.SIGKILL, said
        texts = [each.read_bytes() for each in self.place.folder.rglob("*") if each.is_file()]
        assert not any(secret.encode() in text for text in texts for secret in (PASSWORD, self.arm.state.caller.secret))

    def kept(self) -> Any:
        """What is deployed and what runs, to come back to."""
        state = self.arm.state
        return copy.deepcopy((state.resources, state.runs, state.ticks, state.now), {id(state): state})

    def back(self, kept: Any) -> None:
        """As it was then."""
        state = self.arm.state
        state.resources, state.runs, state.ticks, state.now = copy.deepcopy(kept, {id(state): state})

    @property
    def state(self) -> dict[str, Any]:
        """What there is in Azure."""
        state = self.arm.state
        terms: Any = state.documents[TERMS]
        return {
            "resources": sorted(state.resources),
            "deployments": {key: run.state for key, run in state.runs.items()},
            "providers": {name: each["registrationState"] for name, each in state.providers.items()},
            "accepted": terms["properties"]["accepted"],
        }


def _paths() -> Iterator[str]:
    from tests.command import ROOT

    yield str(ROOT)
    if os.environ.get("PYTHONPATH"):
        yield os.environ["PYTHONPATH"]
