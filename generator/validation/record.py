"""The record of a run, `run.json`: its form as data (docs/records.md), and whether a file has it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from ..results.hostlist import NODE_NAME
from .verdicts import VERDICTS, Verdict, worst

FORMAT = 1
"""The form that this version reads."""
RECORD_KEYS = frozenset(("job", "run", "checks", "verdict"))
"""An object that has none of these is someone else's."""

Figure = int | float | str | None

_UTC = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,127}")
_NODE = re.compile(NODE_NAME)
_KNOWN_VERDICTS = frozenset(VERDICTS)
_NUMBERS, _TEXTS = frozenset((int, float)), frozenset((str,))
_LISTS, _OBJECTS = frozenset((list,)), frozenset((dict,))
_MOST = 1e300
"""Figures beyond are nonsense that arithmetic would stumble over."""


# Not frozen, which triples what making one costs: a hundred nodes and thirty runs are sixty thousand checks.
@dataclass(slots=True)
class Check:
    """One figure that was judged. `nodes` are those whose figure it is; empty means all nodes of the run."""

    check: str
    verdict: Verdict
    value: Figure
    expected: Figure
    unit: str
    detail: str
    source: str
    nodes: list[str]

    @property
    def number(self) -> float | None:
        """The value, where it is a figure."""
        return self.value if isinstance(self.value, int | float) else None

    @property
    def floor(self) -> float | None:
        """What was expected, where that is a figure."""
        return self.expected if isinstance(self.expected, int | float) else None

    @property
    def node(self) -> str:
        """The one node whose figure it is; empty where there is not exactly one."""
        return self.nodes[0] if len(self.nodes) == 1 else ""

    @property
    def subject(self) -> str:
        """The check without the name of its node, so that the same check of two nodes is called the same."""
        node = self.node
        words = self.check.split(" ")
        if not node or node not in words:
            return self.check
        return " ".join(word for word in words if word != node) or "node"


@dataclass(slots=True)
class Node:
    """One node of a run; `physical_host` is empty where it is not known."""

    name: str
    physical_host: str
    facts: dict[str, str]


@dataclass(slots=True)
class Series:
    """One curve."""

    name: str
    unit: str
    x_unit: str
    nodes: list[str]
    points: list[list[float]]

    @property
    def xs(self) -> list[float]:
        """Where it has points."""
        return [point[0] for point in self.points]

    @property
    def ys(self) -> list[float]:
        """Its values there."""
        return [point[1] for point in self.points]


@dataclass(slots=True)
class Run:
    """One run of one job."""

    job: str
    recipe: str
    run: str
    started: str
    ended: str
    """Empty while it runs, or when it was killed."""
    cluster: str
    partition: str
    vm_size: str
    stated: Verdict
    """The verdict of the file; `verdict` is what its checks leave of it."""
    summary: str
    nodes: list[Node]
    versions: dict[str, str]
    settings: dict[str, str]
    environment: dict[str, str]
    checks: list[Check]
    curves: tuple[Sequence[Any], ...]
    """The values of all series, key by key; `series` makes objects of them for those that look."""
    file: str = ""
    copies: tuple[str, ...] = ()
    """Other files with the same record."""
    doubt: str = field(default="", init=False)
    """Why the verdict of the file is not believed."""
    verdict: Verdict = field(default="error", init=False)
    _series: list[Series] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """A record that says better of itself than its checks is not believed."""
        of_checks = worst({each.verdict for each in self.checks})
        self.verdict = worst((self.stated, of_checks)) if self.checks else worst((self.stated, "error"))
        if self.stated == "pass" and not self.ended:
            self.verdict, self.doubt = worst((self.verdict, "error")), "it says pass, but has not ended"
        elif self.stated != self.verdict:
            why = f"one of its checks says {of_checks}" if self.checks else "it has no check"
            self.doubt = f"it says {self.stated}, but {why}"

    @property
    def seconds(self) -> float:
        """When it started, in seconds since 1970."""
        return datetime.fromisoformat(self.started).timestamp()

    @property
    def duration_s(self) -> float | None:
        """How long it took; None where it has no end."""
        return datetime.fromisoformat(self.ended).timestamp() - self.seconds if self.ended else None

    @property
    def series(self) -> list[Series]:
        """The curves."""
        if self._series is None:
            self._series = list(map(Series, *self.curves)) if self.curves else []
        return self._series

    @property
    def label(self) -> str:
        """As its folder among all runs is called."""
        return f"{self.job}-{self.run}"

    @property
    def place(self) -> tuple[str, str, str]:
        """Runs of one job in one place are comparable: cluster, partition, job."""
        return self.cluster, self.partition, self.job


class Fault(NamedTuple):
    """One thing that is wrong: where, what is there, and what should be; `wanted` is empty for what is missing."""

    where: str
    found: object
    wanted: str


class InvalidRecordError(ValueError):
    """All that is wrong with a record, as far as it was looked at."""

    def __init__(self, faults: list[Fault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = faults


def key_count(value: Any) -> int:
    """The keys of all objects of a record; -1 where it is laid out in another way."""
    try:
        nodes, checks, series = value["nodes"], value["checks"], value["series"]
        count = len(value) + sum(map(len, nodes)) + sum(map(len, checks)) + sum(map(len, series))
        count += sum(len(node["facts"]) for node in nodes)
        return count + sum(len(value[name]) for name in _TABLES)
    except (KeyError, TypeError):
        return -1


def validated(value: Mapping[str, Any], file: str = "") -> Run:
    """The typed record. Raises InvalidRecordError; `format` is the caller's to compare with `FORMAT`."""
    return _Reader(value).run(file)


_TABLES = ("versions", "settings", "environment")
_CHECK_KEYS = ("check", "verdict", "value", "expected", "unit", "detail", "source", "nodes")
_NODE_KEYS = ("name", "physical_host", "facts")
_SERIES_KEYS = ("name", "unit", "x_unit", "nodes", "points")


class _Reader:
    """Reads one record; collects what is wrong."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self._value = value
        self._faults: list[Fault] = []
        self._names: set[str] = set()
        """Names of nodes that were looked at already."""

    def run(self, file: str) -> Run:
        nodes = self._all_nodes()
        run = dict(
            job=self._text(self._value, "job", _NAME, "a name"),
            recipe=self._text(self._value, "recipe"),
            run=self._text(self._value, "run", _NAME, "a name"),
            started=self._moment("started"),
            ended="" if self._value.get("ended", "") is None else self._moment("ended"),
            cluster=self._text(self._value, "cluster"),
            partition=self._text(self._value, "partition"),
            vm_size=self._text(self._value, "vm_size"),
            stated=self._verdict(self._value, ""),
            summary=self._text(self._value, "summary"),
            nodes=nodes,
            checks=self._checks(),
            curves=self._curves(),
            file=file,
            **{name: self._table(self._value, name, "") for name in _TABLES},
        )
        if self._faults:
            raise InvalidRecordError(self._faults)
        return Run(**run)

    # ------------------------------------------------------------ parts

    def _all_nodes(self) -> list[Node]:
        entries = self._list("nodes")
        columns = _columns(entries, _NODE_KEYS)
        if columns is not None:
            names, hosts, facts = columns
            if (
                self._are_lists_of_nodes(([*names],))
                and _TEXTS.issuperset(map(type, hosts))
                and _OBJECTS.issuperset(map(type, facts))
                and _TEXTS.issuperset(map(type, chain.from_iterable(map(dict.values, facts))))
            ):
                return list(map(Node, *columns))
        found = [(f"entry {number} of 'nodes'", entry) for number, entry in enumerate(entries, 1)]
        return [self._node(f"{place}: ", entry) for place, entry in found if self._is_object(place, entry)]

    def _node(self, place: str, entry: dict[str, Any]) -> Node:
        name = self._text(entry, "name", _NODE, "the name of a node", place)
        self._names.add(name)
        return Node(name, self._text(entry, "physical_host", place=place), self._table(entry, "facts", place))

    def _checks(self) -> list[Check]:
        """A hundred nodes have thousands, so they are looked at column by column; one by one only to name a fault."""
        entries = self._list("checks")
        columns = _columns(entries, _CHECK_KEYS)
        if columns is not None:
            names, verdicts, values, expected, units, details, sources, nodes = columns
            if (
                _TEXTS.issuperset(map(type, chain(names, verdicts, units, details, sources)))
                and all(names)
                and _KNOWN_VERDICTS.issuperset(verdicts)
                and all(map(_is_figure, chain(values, expected)))
                and self._are_lists_of_nodes(nodes)
            ):
                return list(map(Check, *columns))
        found = [(f"entry {number} of 'checks'", entry) for number, entry in enumerate(entries, 1)]
        return [self._check_by_key(f"{place}: ", entry) for place, entry in found if self._is_object(place, entry)]

    def _curves(self) -> tuple[Sequence[Any], ...]:
        """The same for series, of which there is one for each pair of nodes."""
        entries = self._list("series")
        columns = _columns(entries, _SERIES_KEYS)
        if columns is not None:
            names, units, x_units, nodes, points = columns
            if (
                _TEXTS.issuperset(map(type, chain(names, units, x_units)))
                and self._are_lists_of_nodes(nodes)
                and _LISTS.issuperset(map(type, points))
                and _are_points(list(chain.from_iterable(points)))
            ):
                return columns
        found = [(f"entry {number} of 'series'", entry) for number, entry in enumerate(entries, 1)]
        rows = [self._series(f"{place}: ", entry) for place, entry in found if self._is_object(place, entry)]
        return tuple(zip(*rows, strict=True))

    def _check_by_key(self, place: str, entry: dict[str, Any]) -> Check:
        name = self._text(entry, "check", place=place)
        if not name:
            self._faults.append(Fault(f"{place}'check'", name, "a name"))
        return Check(
            name,
            self._verdict(entry, place),
            self._figure(entry, "value", place),
            self._figure(entry, "expected", place),
            self._text(entry, "unit", place=place),
            self._text(entry, "detail", place=place),
            self._text(entry, "source", place=place),
            self._nodes(entry, place),
        )

    def _series(self, place: str, entry: dict[str, Any]) -> tuple[Any, ...]:
        points = entry.get("points")
        if not isinstance(points, list):
            self._faults.append(Fault(f"{place}'points'", points, "a list" if "points" in entry else ""))
            points = []
        elif not _are_points(points):
            wrong = next((each for each in points if not _are_points([each])), None)
            self._faults.append(Fault(f"{place}a point", wrong, "two numbers"))
        texts = (self._text(entry, key, place=place) for key in _SERIES_KEYS[:3])
        return (*texts, self._nodes(entry, place), points)

    # ------------------------------------------------------------ values

    def _list(self, name: str) -> list[Any]:
        entries = self._value.get(name)
        if isinstance(entries, list):
            return entries
        self._faults.append(Fault(f"'{name}'", entries, "a list" if name in self._value else ""))
        return []

    def _is_object(self, place: str, entry: Any) -> bool:
        if isinstance(entry, dict):
            return True
        self._faults.append(Fault(place, entry, "an object"))
        return False

    def _text(
        self,
        entry: Mapping[str, Any],
        key: str,
        form: re.Pattern[str] | None = None,
        words: str = "a text",
        place: str = "",
    ) -> str:
        value = entry.get(key)
        if isinstance(value, str) and (form is None or form.fullmatch(value)):
            return value
        self._faults.append(Fault(f"{place}'{key}'", value, words if key in entry else ""))
        return ""

    def _moment(self, key: str) -> str:
        text = self._text(self._value, key, _UTC, "a UTC time such as 2026-11-23T06:30:00Z")
        if text and not _is_moment(text):
            self._faults.append(Fault(f"'{key}'", text, "a valid date and time"))
        return text

    def _verdict(self, entry: Mapping[str, Any], place: str) -> Any:
        value = entry.get("verdict")
        if not isinstance(value, str) or value not in _KNOWN_VERDICTS:
            wanted = f"one of {', '.join(VERDICTS)}" if "verdict" in entry else ""
            self._faults.append(Fault(f"{place}'verdict'", value, wanted))
        return value

    def _figure(self, entry: Mapping[str, Any], key: str, place: str) -> Figure:
        value = entry.get(key)
        if key in entry and _is_figure(value):
            return value
        self._faults.append(Fault(f"{place}'{key}'", value, "a number, a text or null" if key in entry else ""))
        return None

    def _table(self, entry: Mapping[str, Any], key: str, place: str) -> dict[str, str]:
        value = entry.get(key)
        if isinstance(value, dict) and all(isinstance(each, str) for each in value.values()):
            return value
        self._faults.append(Fault(f"{place}'{key}'", value, "an object of texts" if key in entry else ""))
        return {}

    def _nodes(self, entry: Mapping[str, Any], place: str) -> list[str]:
        value = entry.get("nodes")
        if isinstance(value, list) and self._are_nodes(value):
            return value
        self._faults.append(Fault(f"{place}'nodes'", value, "a list of names of nodes" if "nodes" in entry else ""))
        return []

    def _are_nodes(self, names: list[Any]) -> bool:
        return self._are_lists_of_nodes((names,))

    def _are_lists_of_nodes(self, lists: Sequence[Any]) -> bool:
        if not _LISTS.issuperset(map(type, lists)):
            return False
        try:
            new = set(chain.from_iterable(lists)) - self._names
        except TypeError:  # a list or an object among them
            return False
        if not all(type(name) is str and _NODE.fullmatch(name) for name in new):
            return False
        self._names |= new
        return True


def _columns(entries: list[Any], keys: tuple[str, ...]) -> tuple[tuple[Any, ...], ...] | None:
    """The values of objects that all have these keys, key by key."""
    if not entries or not _OBJECTS.issuperset(map(type, entries)):
        return None
    try:
        return tuple(zip(*map(itemgetter(*keys), entries), strict=True))
    except KeyError:
        return None


def _are_points(points: list[Any]) -> bool:
    """Whether all of them are two numbers that arithmetic can use."""
    if not points:
        return True
    if not _LISTS.issuperset(map(type, points)) or {*map(len, points)} != {2}:
        return False
    numbers = list(chain.from_iterable(points))
    return _NUMBERS.issuperset(map(type, numbers)) and min(numbers) > -_MOST and max(numbers) < _MOST


def _is_figure(value: Any) -> bool:
    if value is None or type(value) is str:
        return True
    return type(value) in _NUMBERS and -_MOST < value < _MOST


def _is_moment(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
