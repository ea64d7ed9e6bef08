"""`upload`: look at everything, then send."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..errors import ProblemsFound
from ..locker.container import Container
from ..locker.look import Look, look, wanted_of
from ..locker.upload import Done, Progress, replace
from ..locker.upload import upload as send
from ..projects.local import SHIPPED
from ..words.counts import first_lines
from .packages import Locker, Tell, destinations

_SHOWN = 10
"""Differences of a refused version that are listed."""


@dataclass
class Sending:
    """One project, and what became of it."""

    found: Look
    locker: str
    done: Done | None = None
    """None where it was not sent."""
    seconds: float = 0.0

    @property
    def title(self) -> str:
        """Name and version."""
        return f"{self.found.wanted.project.name} {self.found.wanted.project.version}"


def upload(
    words: Sequence[str],
    locker: Locker,
    rows: list[Sending],
    progress: Progress,
    *,
    force: bool = False,
    dry_run: bool = False,
    tell: Tell,
    ended: Callable[[Sending], None],
    note: Callable[[str], None],
) -> None:
    """Send the projects that the words mean; `rows` gets what is known of each, also where it is interrupted.

    Raises ProblemsFound before anything is sent where a version has other content; `force` replaces it.
    """
    containers: dict[str, Container] = {}
    for each in destinations(words, locker, tell):
        container = containers[str(each.address)] = locker.opened(each.address)
        rows += [Sending(look(container, wanted_of(package)), str(each.address)) for package in each.packages]
    refused = [row for row in rows if row.found.state == "different"]
    if refused and not force:
        raise _refusal(refused)
    for row in rows:
        if not dry_run:
            began = time.monotonic()
            row.done = _send(containers[row.locker], row.found, progress, note)
            row.seconds = time.monotonic() - began
        ended(row)


def _send(container: Container, found: Look, progress: Progress, note: Callable[[str], None]) -> Done:
    if found.state == "different":
        return replace(container, found, progress, note)
    return send(container, found, progress)


def _refusal(refused: Sequence[Sending]) -> ProblemsFound:
    """Everything that is refused, in one message."""
    texts = []
    for row in refused:
        lines = "".join(f"\n  {line}" for line in first_lines(row.found.reasons, _SHOWN))
        texts.append(f"the locker has different content under {row.title}; nothing was sent{lines}")
    looks = [row.found for row in refused]
    if all(look.reasons == ("differs: manifest.json",) and look.wanted.project.name in SHIPPED for look in looks):
        hint = (
            "only its list of project blobs differs: this machine has other blobs than the one that uploaded it; "
            "`cycleforge blobs status` shows them, `cycleforge blobs fetch` gets them, --force replaces the list"
        )
    else:
        first = looks[0].wanted.project
        word = first.name if first.name in SHIPPED else first.folder
        hint = (
            "a version never changes, because nodes remember what has run by its name: cycleforge project bump --taken "
            f"{word} makes the next one; --force replaces the content, and running nodes keep the old content"
        )
    return ProblemsFound("\n".join(texts), hint)
