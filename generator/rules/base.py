"""What rules look at, one class for each stage at which they do, and how they show values, places and suggestions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from ..catalog.sizes import VmSize
from ..definition.certificate import Certificate
from ..definition.model.definition import Definition
from ..definition.model.slurm import Slurm
from ..plan.custom_sizes import size_of
from ..plan.subnets import Layout
from ..problems.problem import Problem, Related
from ..problems.rule import Rule
from ..projects.local import LocalProject

if TYPE_CHECKING:
    from ..files.file import Files
    from ..plan.deployment import Plan

import re
from functools import cache, lru_cache
from typing import Any

from .. import catalog
from ..definition.model.definition import Job
from ..definition.model.slurm import Partition
from ..words.suggestions import did_you_mean

Path = tuple[str | int, ...]


class Site(Struct, frozen=True):
    """Everything that a rule may look at; rules do no input or output."""

    definition: Definition
    data: object
    """The plain data as the user wrote it, environment variables replaced."""
    layout: Layout | None
    """Subnets of a new network; None for an existing one and where the address space is not a CIDR."""
    local_projects: Mapping[str, LocalProject]
    secret_values: tuple[str, ...] = ()
    certificate: Certificate | None = None
    """Of the accounting database's authority, where the definition names one."""

    def vm_size(self, name: str) -> VmSize:
        """A VM size that the definition names; `known` is false where neither it nor the catalogue describes it."""
        return size_of(self.definition, name)


class Rendered(Struct, frozen=True):
    """What the deployment folder would hold."""

    site: Site
    files: Files


class Findings(Struct, frozen=True):
    """What all other rules found, from before silencing."""

    site: Site
    problems: Sequence[Problem]


class Together(Struct, frozen=True):
    """One of several definitions of a run that have no errors of their own."""

    filename: str
    plan: Plan


class DefinitionRule(Rule):
    """A rule about a definition; values may be anything that the model lets through."""

    stage = "definition"

    def check(self, site: Site) -> Iterator[Problem]:
        raise NotImplementedError

    def second(self, path: Path, message: str, first: Path, hint: str | None = None) -> Problem:
        """A problem of what is given a second time, with the place of the first."""
        return self.problem(path, message, hint, related=(Related("the first one", first),))


class ClusterRule(DefinitionRule):
    """A rule about the Slurm cluster; a definition without one cannot break it."""

    def check(self, site: Site) -> Iterator[Problem]:
        if site.definition.slurm is not None:
            yield from self.check_cluster(site, site.definition.slurm)

    def check_cluster(self, site: Site, slurm: Slurm) -> Iterator[Problem]:
        raise NotImplementedError


class PlanRule(Rule):
    """A rule that needs derived figures; it runs when the definition has no errors."""

    stage = "plan"

    def check(self, plan: Plan) -> Iterator[Problem]:
        """The problems of a plan, at places of its definition."""
        raise NotImplementedError


class FilesRule(Rule):
    """A rule about what was rendered."""

    stage = "files"

    def check(self, rendered: Rendered) -> Iterator[Problem]:
        raise NotImplementedError


class FindingsRule(Rule):
    """A rule about what the other rules found."""

    stage = "findings"

    def check(self, found: Findings) -> Iterator[Problem]:
        raise NotImplementedError


class RunRule(Rule):
    """A rule about two definitions of one run; it is asked once for each of them."""

    stage = "run"

    def check(self, this: Together, other: Together) -> Iterator[Problem]:
        """The problems at places of `this`."""
        raise NotImplementedError


_LONGEST_SUGGESTION = 80
_LONGEST_SHOWN = 60


def quoted(text: str) -> str:
    """A value as the user wrote it, on one line and short."""
    short = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
    return "'" + "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in short) + "'"


def meant(word: str, allowed: Sequence[str]) -> str | None:
    """The hint `did you mean '…'?`; None when nothing is close or the word is too long to be a slip."""
    return _meant(word, tuple(allowed)) if 0 < len(word) <= _LONGEST_SUGGESTION else None


def near(word: str, allowed: Sequence[str]) -> str | None:
    """The allowed word that was probably meant; None as in `meant`."""
    return did_you_mean(word, allowed) if 0 < len(word) <= _LONGEST_SUGGESTION else None


@lru_cache(maxsize=1024)
def _meant(word: str, allowed: tuple[str, ...]) -> str | None:
    close = did_you_mean(word, allowed)
    return f"did you mean '{close}'?" if close and close != word else None


def size_meant(word: str) -> str | None:
    """The hint for a misspelt VM size; the common `Standard_` does not count as likeness."""
    if not 0 < len(word) <= _LONGEST_SUGGESTION:
        return None
    near = catalog.canonical_vm_size(word)
    if near:
        return f"did you mean '{near}'?"
    hint = meant(re.sub("^standard_", "", word, flags=re.IGNORECASE), _short_sizes())
    return hint.replace("'", "'Standard_", 1) if hint else None


@cache
def _short_sizes() -> tuple[str, ...]:
    return tuple(name.removeprefix("Standard_") for name in catalog.vm_size_names())


def choose_from(word: str, allowed: Sequence[str], few: int = 12) -> str | None:
    """A suggestion, else the allowed words when they are few."""
    return meant(word, allowed) or (f"allowed: {', '.join(allowed)}" if 0 < len(allowed) <= few else None)


SCHEDULER: Path = ("slurm", "scheduler")
LOGIN: Path = ("slurm", "login")
PARTITIONS: Path = ("slurm", "partitions")


def given(site: Site, path: Path) -> bool:
    """Whether the user wrote a value at this path."""
    data: Any = site.data
    for step in path:
        in_list = isinstance(data, list) and isinstance(step, int) and 0 <= step < len(data)
        if not in_list and not (isinstance(data, Mapping) and step in data):
            return False
        data = data[step]
    return data is not None


def value_at(site: Site, path: Path) -> object:
    """The value of a key in the read definition; None where its section is not there."""
    found: object = site.definition
    for key in path:
        found = getattr(found, str(key), None)
    return found


def first_given(site: Site, *paths: Path) -> Path:
    """The first path that the user wrote; else the last one, whose section the position falls back to."""
    return next((path for path in paths if given(site, path)), paths[-1])


def listed_jobs(site: Site) -> Iterator[tuple[Path, Job]]:
    """The jobs that the definition lists, with their paths."""
    jobs = site.definition.jobs
    lists = {"validation": jobs.validation or [], "add_validation": jobs.add_validation, "training": jobs.training}
    for kind, entries in lists.items():
        for index, job in enumerate(entries):
            yield ("jobs", kind, index), job


def partitions(site: Site) -> Iterator[tuple[Path, Partition]]:
    slurm = site.definition.slurm
    for index, partition in enumerate(slurm.partitions if slurm else ()):
        yield (*PARTITIONS, index), partition
