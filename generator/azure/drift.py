"""What Azure has, compared with the definition: the answer of what-if, read the other way round."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ..plan.deployment import Plan
from ..words.terminal import columns, printable
from .deployment import Seen
from .what_if import Row, WhatIf
from .what_if_text import short

_GONE = "in Azure, but no longer in the definition (operations.md says how to delete it):"
_NOT_PREDICTED = "in Azure, but no longer in the definition, unless it is of what is named below as not known:"


class Drift(Struct, frozen=True):
    """What differs; empty where Azure has what the folder says."""

    missing: tuple[Row, ...]
    """In the definition, not in Azure."""
    different: tuple[Row, ...]
    gone: tuple[Row, ...]
    """In Azure, of this deployment, and not in the definition any more."""
    unknown: tuple[Row, ...]
    left_out: tuple[str, ...]
    """Modules that Azure did not take apart, and values that it cannot compare."""
    record: str
    """What was deployed last, in words."""

    @property
    def any(self) -> bool:
        """Whether anything differs that Azure could tell."""
        return bool(self.missing or self.different or self.gone)


def drift(plan: Plan, answer: WhatIf, last: Seen | None, content: str) -> Drift:
    """`last` is the deployment's record, `content` the digest of the built folder."""
    own = tuple(row for row in answer.of("ignore") if row.tags.get(plan.cleanup.tag) == plan.name)
    missing, different = answer.of("create"), answer.of("change")
    uncompared = tuple(f"{row.resource.name}, {each}" for row in answer.rows for each in row.uncompared)
    not_known = (*answer.left_out, *uncompared)
    return Drift(missing, different, own, answer.of("unknown"), not_known, _record(plan, last, content))


def _record(plan: Plan, last: Seen | None, content: str) -> str:
    if last is None:
        return f"{plan.deployment_name} was never deployed, or its record was deleted"
    said = {"done": "was deployed", "failed": "failed", "canceled": "was cancelled", "running": "is being deployed"}
    what = "this folder" if last.content == content else "another content" if last.content else "an unknown content"
    return f"{plan.deployment_name} {said[last.state]} ({last.began}) with {what}"


def text(found: Drift) -> str:
    return "".join(f"{line}\n" for line in _lines(found))


def _lines(found: Drift) -> Iterator[str]:
    yield printable(found.record)
    yield from _table("missing in Azure:", found.missing)
    if found.different:
        yield "different in Azure (what it is there → what the definition says):"
        for row in found.different:
            yield printable(f"  {row.resource.type}  {row.resource.name}")
            for value in row.values:
                yield printable(f"      {value.path}: {short(value.before)} → {short(value.after)}")
    yield from _table(_NOT_PREDICTED if found.left_out else _GONE, found.gone)
    yield from _table("not known, because Azure cannot compare it:", found.unknown)
    yield from (printable(f"not known: {line}") for line in found.left_out)
    if not found.any:
        yield "no difference that Azure can tell" if found.unknown or found.left_out else "no difference"


def _table(title: str, rows: tuple[Row, ...]) -> Iterator[str]:
    if rows:
        yield title
        yield from columns([(each.resource.type, each.resource.name) for each in rows], indent="  ").splitlines()


def as_json(found: Drift) -> dict[str, object]:
    from .what_if_text import row_json

    return {
        "drift": found.any,
        "record": found.record,
        "missing": [row_json(each) for each in found.missing],
        "different": [row_json(each) for each in found.different],
        "gone": [row_json(each) for each in found.gone],
        "not_known": [row_json(each) for each in found.unknown],
        "left_out": list(found.left_out),
    }
