"""Why Azure failed, in plain words and with what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, to_builtins

from .. import catalog
from ..words.terminal import printable
from .refusals import Cause


class Failure(Struct, frozen=True):
    """One innermost cause."""

    part: str
    """What it happened to; may be empty."""
    code: str
    message: str
    """Azure's own sentence."""
    words: str | None
    """What that means; None for a code that the catalogue does not know."""
    fix: str | None

    def as_json(self) -> dict[str, str | None]:
        plain: dict[str, str | None] = to_builtins(self)
        return plain


def explained(causes: Iterable[Cause], *, part: str = "", name: str, group: str) -> tuple[Failure, ...]:
    """Each cause with what the catalogue knows of it; `name` is the definition's."""
    return tuple(_explained(cause, part or cause.target, name, group) for cause in causes)


def _explained(cause: Cause, part: str, name: str, group: str) -> Failure:
    for row in catalog.azure_failures().failures.rows:
        if cause.code.lower() in (code.lower() for code in row.codes):
            fix = str(row.fix).format(name=name, group=group)
            return Failure(part, cause.code, cause.message, str(row.words), fix)
    return Failure(part, cause.code, cause.message, None, None)


def text(failures: Sequence[Failure]) -> str:
    """Each cause once: what it means first, then Azure's own sentence, then what to do."""
    lines: dict[str, None] = {}
    for each in failures:
        part = f"{each.part}: " if each.part else ""
        words = f"{part}{each.words or each.message}\n"
        own = f"  Azure: {each.code}: {each.message}\n" if each.words else f"  Azure's code: {each.code}\n"
        lines[words + own + (f"  hint: {each.fix}\n" if each.fix else "")] = None
    return "".join("\n".join(printable(line) for line in entry.split("\n")) for entry in lines)
