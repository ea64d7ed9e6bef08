"""Problems of a definition: what a rule reports, where it is, how it is sorted and silenced.

`generator.problems.text` prints them. A problem carries a path into the definition; the source knows line and column.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

Level = Literal["error", "warning", "info"]
UNKNOWN_SIZE = "E0401"
"""The rule about VM sizes of which nobody has said what they are."""
LEVELS: tuple[Level, ...] = ("error", "warning", "info")
KeyPath = tuple[str | int, ...]
"""Keys and list indexes from the top of the definition to a value."""


class Place(NamedTuple):
    """A stretch of one line. Line and columns count characters from 1; `end_column` is the first one after it."""

    line: int
    column: int
    end_column: int


class Related(Struct, frozen=True):
    """A second place that explains a problem, for example the first of two equal keys."""

    message: str
    path: KeyPath = ()
    on_key: bool = False
    place: Place | None = None


class Problem(Struct, frozen=True):
    """One finding.

    `on_key` puts the caret under the key instead of the value. `place` overrides the path where none fits (syntax).
    `hide_value` keeps the value out of the printed source line, for what may be a secret.
    """

    rule_id: str
    level: Level
    path: KeyPath
    message: str
    hint: str | None = None
    on_key: bool = False
    place: Place | None = None
    related: tuple[Related, ...] = ()
    hide_value: bool = False


class Source(Protocol):
    """The text that problems are about: `definition.text.source` has it for definitions."""

    @property
    def filename(self) -> str:
        """As the user named it."""

    @property
    def lines(self) -> tuple[str, ...]:
        """The text as it is in the file."""

    @property
    def environment(self) -> Mapping[str, str]:
        """Values of the environment that are in the text, by the variable's name."""

    def position(self, path: KeyPath, *, on_key: bool = False) -> Place:
        """Where a value, its key or its nearest section stands."""

    def is_from_environment(self, path: KeyPath) -> bool:
        """Whether a variable takes part in the value."""


def locate(problem: Problem | Related, source: Source) -> Place:
    """Line and columns of a problem: its own place, else that of its path or of the nearest section above."""
    return problem.place or source.position(problem.path, on_key=problem.on_key)


def can_be_silenced(rule_id: str) -> bool:
    """Return True when a definition may switch the rule off.

    E00xx (YAML, environment) and E01xx (keys, types) leave nothing that could be built, and the rules about silencing
    (17xx) guard the rest, so they always count. Without E0401 there would be no figures to plan with, and
    `custom_vm_sizes` gives them. The rules of cluster templates (2xxx) and of Azure (4xxx) look at nothing that a
    definition could excuse.
    """
    return rule_id[1:3] not in ("00", "01", "17") and rule_id[1:2] not in "24" and rule_id != UNKNOWN_SIZE


def silence(problems: Iterable[Problem], silenced: Sequence[tuple[str, str]]) -> tuple[Problem, ...]:
    """The problems without those whose rule the definition silences; `silenced` holds (rule id, reason)."""
    ids = {rule_id for rule_id, _ in silenced if can_be_silenced(rule_id)}
    return tuple(each for each in problems if each.rule_id not in ids)


def fails(problems: Iterable[Problem], *, strict: bool = False) -> bool:
    """Return True when the problems stop a build: errors do, and warnings with `strict`."""
    stopping = {"error", "warning"} if strict else {"error"}
    return any(each.level in stopping for each in problems)
