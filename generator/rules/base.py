"""What a rule is, and what it looks at."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from ..definition.model.definition import Definition
from ..plan.subnets import Layout
from ..problems.problem import Problem

Path = tuple[str | int, ...]


@dataclass(frozen=True)
class LocalProject:
    """A project folder that the definition names, already read: its facts, or what is wrong with it."""

    name: str
    version: str | None
    specs: tuple[str, ...]
    size_bytes: int
    problem: str | None


@dataclass(frozen=True)
class Site:
    """Everything that a rule may look at; rules do no input or output."""

    definition: Definition
    data: object
    """The plain data as the user wrote it, environment variables replaced."""
    layout: Layout | None
    """Subnets of a new network; None for an existing one and where the address space is not a CIDR."""
    local_projects: Mapping[str, LocalProject]
    secret_values: tuple[str, ...] = ()


class Rule:
    """One check. The class attributes are what `cycleforge explain` and docs/rules.md print."""

    id: ClassVar[str]
    summary: ClassVar[str]
    why: ClassVar[str]
    fix: ClassVar[str]
    source: ClassVar[str]

    @property
    def level(self) -> Literal["error", "warning", "info"]:
        """The first letter of the id decides."""
        return {"E": "error", "W": "warning", "I": "info"}[self.id[0]]  # type: ignore[return-value]

    def check(self, site: Site) -> Iterator[Problem]:
        """The problems of this site, in the order of the file."""
        raise NotImplementedError

    def problem(self, path: Path, message: str, hint: str | None = None, *, on_key: bool = False) -> Problem:
        """A problem of this rule at a place of the definition."""
        return Problem(self.id, self.level, path, message, hint=hint, on_key=on_key)
