"""What was decided: data for the text, for the lines of `--print` and for the steps."""

from __future__ import annotations

from ...records import record
from ..request import Call
from .seen import NotSeen, Thing

TURNS = ("stack", "role", "connection", "diagnostics", "mark", "resource", "group", "record")
"""The order; whatever is in one turn goes at the same time, resources type by type."""


@record
class Going:
    """One thing that is deleted, or what is done before it: the tag that a disk gets, the server that is stopped."""

    turn: str
    id: str
    text: str
    call: Call


@record
class Obstacle:
    """What must be mended before anything is deleted."""

    text: str
    hint: str


class Stopped(Exception):  # noqa: N818 - named by what happened
    """It does not go on; what was done stays done, and the same command goes on from there."""

    def __init__(self, text: str, hint: str | None = None) -> None:
        super().__init__(text)
        self.text, self.hint = text, hint


@record
class Decision:
    """What deleting means now."""

    nodes: tuple[Thing, ...]
    """Machines that CycleCloud made: the cluster is terminated, and they are waited for."""
    going: tuple[Going, ...]
    """In the order in which it goes."""
    gone: tuple[Thing, ...]
    """The resources among it, those that go with their group included."""
    others: tuple[Thing, ...]
    """Those of them that the deployment did not make."""
    staying: tuple[str, ...]
    obstacles: tuple[Obstacle, ...]
    not_seen: tuple[NotSeen, ...]

    @property
    def is_nothing(self) -> bool:
        """Whether there is nothing left to delete."""
        return not self.going and not self.nodes
