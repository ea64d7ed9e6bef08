"""What a check of preflight is, what it finds, and what --fix can do about a finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from ..plan.deployment import Plan
from ..problems.problem import KeyPath, Problem
from ..problems.rule import Rule
from .reader import Reader

if TYPE_CHECKING:
    from .bicep import Compiled
    from .writer import Writer


class Remedy(Struct, frozen=True):
    """What `preflight --fix` can do about a finding."""

    text: str
    """What would be done, as a command to oneself: "register the provider Microsoft.NetApp"."""
    apply: Callable[[Writer], None]
    """Does it and waits until it is done; raises `Refused` and `NotAsked`."""


class Finding(Problem, frozen=True):
    """A problem that Azure's answers show; with `is_known` false, one that could not be looked for."""

    is_known: bool = True
    reason: str = ""
    """Why it could not be looked for."""
    remedy: Remedy | None = None
    asks: bool = False
    """A warning that nothing is deployed over without a question."""


class Local(Struct, frozen=True):
    """What is on this machine and belongs to the deployment."""

    folder: Path
    """The deployment folder; it need not be there."""
    environment: Mapping[str, str]
    difference: Callable[[], str | None] = lambda: None
    """In which way the folder is not what the definition says now; None where it is."""
    made: Compiled | None = None
    """The folder's Bicep, if it has been compiled already."""


class Check(Rule):
    """One thing that would make the deployment or its first job fail, and that Azure can be asked about.

    It enters the register of rules by its id. `run` may ask at most three questions that wait for one another; whatever
    it lets through of `Refused` and `NotAsked` becomes a finding that says that it is not known.
    """

    stage = "azure"
    question: ClassVar[str]
    """What is not known when it could not be asked: "whether …"."""
    path: ClassVar[KeyPath] = ()
    """Where in the definition to say so."""

    def needed(self, plan: Plan) -> bool:
        """Whether this deployment depends on it."""
        del plan
        return True

    def run(self, plan: Plan, reader: Reader) -> Iterable[Finding]:
        raise NotImplementedError

    @classmethod
    def finding(cls, path: KeyPath, message: str, hint: str | None = None, remedy: Remedy | None = None) -> Finding:
        """Something is wrong at a place of the definition; `hint` is what to type."""
        return Finding(cls.id, cls.level, path, message, hint, remedy=remedy)

    @classmethod
    def not_known(cls, reason: str, hint: str | None = None, path: KeyPath | None = None) -> Finding:
        """It could not be asked, or Azure's answer does not tell."""
        where = cls.path if path is None else path
        text = f"not known {cls.question}: {reason}"
        return Finding(cls.id, cls.level, where, text, hint, is_known=False, reason=reason)


class LocalCheck(Check):
    def run_here(self, plan: Plan, reader: Reader, local: Local) -> Iterable[Finding]:
        raise NotImplementedError
