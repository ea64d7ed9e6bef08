"""What a deployment would do, as text for a terminal and as plain data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ..words.counts import counted, first_lines, listed
from ..words.terminal import columns, printable
from .what_if import Action, Row, Value, WhatIf

_SHOWN_VALUES = 12
"""Values of one resource that are printed as text: --json has all."""
_WIDTH = 60
"""Characters of a value in the text."""
_TITLES: dict[Action, tuple[str, str]] = {
    "delete": ("-", "to delete"),
    "change": ("~", "to change"),
    "create": ("+", "to create"),
    "unknown": ("?", "of which Azure cannot say what would change"),
}


def headline(answer: WhatIf) -> str:
    counts = [f"{len(answer.of(action))} {title}" for action, (_, title) in _TITLES.items() if answer.of(action)]
    if not counts:
        return "nothing changes" if answer.is_complete else "nothing changes, as far as Azure can say"
    return listed(counts)


def text(answer: WhatIf) -> str:
    return "".join(f"{line}\n" for line in _lines(answer))


def _lines(answer: WhatIf) -> Iterator[str]:
    yield headline(answer)
    for action, (sign, title) in _TITLES.items():
        rows = answer.of(action)
        if rows:
            yield ""
            yield f"{title}:"
            yield from _table(rows, sign)
    yield from _others(answer)


def _table(rows: Sequence[Row], sign: str) -> Iterator[str]:
    lines = columns([(sign, row.resource.type, row.resource.name, _notes(row)) for row in rows], indent="  ")
    for row, line in zip(rows, lines.splitlines(), strict=True):
        yield printable(line)
        # What is created is new as a whole; what is deleted goes as a whole.
        if row.action not in ("create", "delete"):
            yield from _values(row.values)


def _values(values: Sequence[Value]) -> Iterator[str]:
    """What goes is never cut off."""
    gone = [value for value in values if value.kind == "delete"]
    yield from (f"      {printable(_change(value))}" for value in gone)
    others = [f"      {printable(_change(value))}" for value in values if value.kind != "delete"]
    yield from first_lines(others, _SHOWN_VALUES)


def _notes(row: Row) -> str:
    notes = [] if row.is_certain else ["perhaps"]
    if row.action == "delete" and row.holds_data:
        notes.append("HOLDS DATA")
    if row.reason:
        notes.append(row.reason)
    return "; ".join(notes)


def _change(value: Value) -> str:
    if value.kind == "create":
        return f"{value.path}: {short(value.after)} (new)"
    if value.kind == "delete":
        return f"{value.path}: {short(value.before)} (no longer sent)"
    return f"{value.path}: {short(value.before)} → {short(value.after)}"


def short(value: Any) -> str:
    """A value on one line, its end cut off."""
    if isinstance(value, dict) and isinstance(value.get("name"), str):
        value = value["name"]
    shown = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return shown if len(shown) <= _WIDTH else f"{shown[: _WIDTH - 1]}…"


def _others(answer: WhatIf) -> Iterator[str]:
    ignored, same = answer.of("ignore"), answer.of("none")
    if answer.left_out:
        yield ""
        yield "not predicted:"
        yield from (f"  {printable(line)}" for line in answer.left_out)
    uncompared = [f"  {row.resource.name}, {line}" for row in answer.rows for line in row.uncompared]
    if uncompared:
        yield ""
        yield "not compared:"
        yield from map(printable, uncompared)
    folded = [f"  {row.resource.name}, {line}" for row in answer.rows for line in row.folded]
    if folded:
        yield ""
        yield "shown by Azure, and known not to happen:"
        yield from map(printable, folded)
    if same or ignored:
        yield ""
    if same:
        yield f"{counted(len(same), 'resource')} without a change"
    if ignored:
        yield f"{counted(len(ignored), 'resource')} beside the deployment, which it leaves alone:"
        names = [f"  {printable(f'{row.resource.type} {row.resource.name}')}" for row in ignored]
        yield from first_lines(names, _SHOWN_VALUES)


def as_json(answer: WhatIf) -> dict[str, object]:
    return {
        "changes": answer.changes,
        "is_complete": answer.is_complete,
        "resources": [row_json(row) for row in answer.rows],
        "left_out": list(answer.left_out),
    }


def row_json(row: Row) -> dict[str, object]:
    return {
        "action": row.action,
        "type": row.resource.type,
        "name": row.resource.name,
        "id": row.resource.id,
        "holds_data": row.holds_data,
        "is_certain": row.is_certain,
        "reason": row.reason,
        "values": [
            {"path": each.path, "kind": each.kind, "before": each.before, "after": each.after} for each in row.values
        ],
        "folded": list(row.folded),
        "uncompared": list(row.uncompared),
    }
