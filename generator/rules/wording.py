"""How rules show values and places, list words and suggest what was meant, and whether an author wrote something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Any

from .. import catalog
from ..definition.model.definition import Job
from ..definition.model.slurm import Partition
from ..words.suggestions import did_you_mean
from .base import Path, Site

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
    """The partitions with their paths; none without a cluster."""
    slurm = site.definition.slurm
    for index, partition in enumerate(slurm.partitions if slurm else ()):
        yield (*PARTITIONS, index), partition
