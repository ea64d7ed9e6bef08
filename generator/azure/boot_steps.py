"""The steps of the server's first boot: from its console or its status into the tree of a deployment."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime

from ..records import record
from .operation_tree import Part, State

_CONSOLE = re.compile(
    r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ) cycleforge-bootstrap: "
    r"step (\d+)/\d+ (running|done|warning|failed)(?: after (\d+) s)?: ([^\r\n]+)\r?\n"
)
"""A whole line as bootstrap/cycleforge_bootstrap/runner.py writes it, whatever the kernel wrote before it."""
_STATUS = re.compile(r"^  (running|done|warning|failed) +(\d+) s  (.+?)(?:  .*)?$", re.MULTILINE)
"""As `summary` of bootstrap/cycleforge_bootstrap/status.py writes it."""
_GOING_ON = re.compile(r"^CycleForge bootstrap of \S+: running$", re.MULTILINE)
_STATES: Mapping[str, State] = {"running": "running", "done": "done", "warning": "done", "failed": "failed"}
_SKEW_S = 60.0
"""By so much the clock of a new server may be behind Azure's."""


@record
class BootStep:
    """One step that has begun."""

    title: str
    state: State
    seconds: float | None
    began: float


def of_console(log: str, since: float) -> tuple[BootStep, ...]:
    """The steps in a serial log, of the last run since a time in seconds since 1970; half a line is none."""
    found: dict[int, BootStep] = {}
    for stamp, number, state, seconds, title in _CONSOLE.findall(log):
        at = datetime.fromisoformat(stamp).timestamp()
        if at + _SKEW_S < since:
            continue
        if state == "running":  # a program that was killed begins anew
            found = {key: step for key, step in found.items() if key < int(number)}
        found[int(number)] = _step(title, state, seconds, at)
    return tuple(found[number] for number in sorted(found))


def of_status(text: str) -> tuple[BootStep, ...]:
    """The steps in what `cycleforge-bootstrap status` prints while a run goes on; one that has ended may be older."""
    if not is_going_on(text):
        return ()
    return tuple(_step(title, state, seconds, 0) for state, seconds, title in _STATUS.findall(text))


def is_going_on(text: str) -> bool:
    """Whether what `cycleforge-bootstrap status` prints is of a run that has not ended."""
    return _GOING_ON.search(text) is not None


def _step(title: str, state: str, seconds: str, began: float) -> BootStep:
    shown = f"{title} (with a warning)" if state == "warning" else title
    return BootStep(shown, _STATES[state], float(seconds) if seconds and state != "running" else None, began)


def with_steps(parts: Iterable[Part], extension: str, steps: Iterable[BootStep]) -> tuple[Part, ...]:
    """The tree with the steps below the extension of this id that runs them."""
    return tuple(
        replace(part, parts=_parts(part, steps))
        if part.resource.id.lower() == extension.lower()
        else replace(part, parts=with_steps(part.parts, extension, steps))
        for part in parts
    )


def _parts(extension: Part, steps: Iterable[BootStep]) -> tuple[Part, ...]:
    return tuple(
        Part(
            replace(extension.resource, id=f"{extension.resource.id}/step {number}"),
            step.state, step.seconds, (), (), step.began, step.title,
        )
        for number, step in enumerate(steps, 1)
    )  # fmt: skip
