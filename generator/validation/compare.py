"""Two runs, or two sets of runs, side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from os.path import normpath

from msgspec import Struct

from .. import catalog
from ..errors import CannotRead
from .figures import Measured, measured
from .peers import more_is_better
from .record import Run, rank


class Side(Struct, frozen=True):
    """The name that was given on the command line, and the newest run of each job that it means."""

    label: str
    runs: tuple[Run, ...]


class Change(Struct, frozen=True):
    """One check on both sides; None where a side does not have it."""

    job: str
    subject: str
    unit: str
    before: Measured | None
    after: Measured | None
    worse_nodes: tuple[str, ...]
    """Nodes whose own verdict is worse after than before."""

    @property
    def percent(self) -> float | None:
        before, after = (side.middle if side else None for side in (self.before, self.after))
        return None if not before or after is None else (after - before) * 100 / abs(before)

    @property
    def tone(self) -> str:
        """Return worse, better or same; empty when the two cannot be compared."""
        if self.before is None or self.after is None:
            return ""
        steps = rank(self.after.verdict) - rank(self.before.verdict)
        if steps:
            return "worse" if steps > 0 else "better"
        percent = self.percent
        if percent is None or not more_is_better(self.unit):
            return ""
        allowed = catalog.health().fleet_statistics.warn_percent_below_expected
        return "worse" if percent < -allowed else "better" if percent > allowed else "same"


class Difference(Struct, frozen=True):
    """A version, setting, variable or fact that the two sides do not share."""

    job: str
    what: str
    name: str
    before: str
    after: str


class Comparison(Struct, frozen=True):
    before: Side
    after: Side
    changes: tuple[Change, ...]
    differences: tuple[Difference, ...]


def side(word: str, runs: Sequence[Run]) -> Side:
    """Return the runs that a word means: a folder or file that was read, `<job>-<run>`, or the id of a run."""
    chosen = _below(word, runs) or [run for run in runs if word in (run.label, run.run)]
    if not chosen:
        raise CannotRead(
            f"there is no run '{word}' to compare", "name a folder with run.json files, or a run as <job>-<run>"
        )
    newest = {run.place: run for run in chosen}
    return Side(word, tuple(newest.values()))


def has_runs(folder: str, runs: Sequence[Run]) -> bool:
    return bool(_below(folder, runs))


def _below(word: str, runs: Sequence[Run]) -> list[Run]:
    folder = normpath(word)
    return [run for run in runs if any(_is_below(file, folder) for file in (run.file, *run.copies))]


def _is_below(file: str, folder: str) -> bool:
    path = normpath(file)
    return folder in (path, ".") or path.startswith(f"{folder}/")


def compare(before: Side, after: Side) -> Comparison:
    """Compare the jobs of the same name check by check; without any such job, those of the same recipe."""
    by_job = {run.job for run in before.runs} & {run.job for run in after.runs}
    first, second = ({run.job if by_job else run.recipe: run for run in side.runs} for side in (before, after))
    changes: list[Change] = []
    differences: list[Difference] = []
    for job in dict.fromkeys((*first, *second)):
        old, new = first.get(job), second.get(job)
        changes += _changes(job, old, new)
        if old is not None and new is not None:
            differences += _differences(job, old, new)
    return Comparison(before, after, tuple(changes), tuple(differences))


def _changes(job: str, old: Run | None, new: Run | None) -> Iterator[Change]:
    first, second = ({(each.subject, each.unit): each for each in measured(run)} if run else {} for run in (old, new))
    for key in dict.fromkeys((*first, *second)):
        a, b = first.get(key), second.get(key)
        yield Change(job, key[0], key[1], a, b, tuple(_worse(a, b)) if a and b else ())


def _worse(before: Measured, after: Measured) -> Iterator[str]:
    old = _verdicts(before)
    for node, verdict in _verdicts(after).items():
        if node in old and rank(verdict) > rank(old[node]):
            yield node


def _verdicts(each: Measured) -> dict[str, str]:
    found: dict[str, str] = {}
    for check in each.checks:
        if check.node and rank(check.verdict) >= rank(found.get(check.node, "pass")):
            found[check.node] = check.verdict
    return found


def _differences(job: str, old: Run, new: Run) -> Iterator[Difference]:
    tables: tuple[tuple[str, dict[str, str], dict[str, str]], ...] = (
        ("version", old.versions, new.versions),
        ("setting", old.settings, new.settings),
        ("variable", old.environment, new.environment),
        ("nodes", _usual_facts(old), _usual_facts(new)),
    )
    for what, first, second in tables:
        for name in sorted({*first, *second}):
            if first.get(name) != second.get(name):
                yield Difference(job, what, name, first.get(name, ""), second.get(name, ""))


def _usual_facts(run: Run) -> dict[str, str]:
    """Return the most frequent value of each fact, and the number of nodes."""
    usual = {name: counts.most_common(1)[0][0] for name, counts in facts_of([run]).items()}
    return {"number": str(len(run.nodes))} | usual


def facts_of(runs: Iterable[Run]) -> dict[str, Counter[str]]:
    """Count how many nodes have which value of each fact."""
    found: dict[str, Counter[str]] = {}
    for run in runs:
        for node in run.nodes:
            for name, value in node.facts.items():
                found.setdefault(name, Counter())[value] += 1
    return found
