"""What one run of the checks on one node says, as the project slurm_nhc writes it: one declaration per field.

The nodes write decimal numbers as text, because their Bash has no others. Fields that are not declared here may be
added later and are kept in a summary; a change of meaning raises `FORMAT`.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Annotated, Any, Literal

# Plugins of other packages have no business in the model, and looking for them costs a tenth of a second.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

from pydantic import AfterValidator, ConfigDict, Field, StrictBool, StringConstraints, TypeAdapter
from pydantic.dataclasses import dataclass

from .hostlist import NODE_NAME

FORMAT = 1
"""The format that this version reads."""

Kind = Literal["quick", "deep"]
KINDS: tuple[Kind, ...] = ("quick", "deep")
Verdict = Literal["pass", "warn", "fail", "not_measured", "no_baseline"]
RunVerdict = Literal["pass", "warn", "fail", "incomplete"]
Relation = Literal["ge", "le", "lt", "gt", "eq", "ne", ""]


def _moment(text: str) -> str:
    try:
        datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError("not a valid date and time") from error
    return text


Text = Annotated[str, StringConstraints(strict=True, max_length=4096)]
Word = Annotated[str, StringConstraints(strict=True, max_length=128)]
CheckName = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=128)]
NodeName = Annotated[str, StringConstraints(strict=True, pattern=f"^{NODE_NAME}$")]
_UTC = r"^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z$"
UtcTime = Annotated[str, StringConstraints(strict=True, pattern=_UTC), AfterValidator(_moment)]


# Dataclasses with slots: thirty checks of a thousand nodes are many objects.
@dataclass(config=ConfigDict(extra="ignore"), frozen=True, slots=True)
class Check:
    """One check. `value` and `limit` are decimal numbers as text, or empty."""

    check: CheckName
    verdict: Verdict
    value: Word = ""
    relation: Relation = ""
    limit: Word = ""
    unit: Word = ""
    detail: Text = ""


@dataclass(config=ConfigDict(extra="ignore"), frozen=True, slots=True)
class NodeResult:
    """One run on one node. `verdict` is the node's own conclusion, `reason` the text of its drain."""

    format: Annotated[int, Field(strict=True, ge=1, le=FORMAT)]
    node: NodeName
    vm_size: Word
    size_known: StrictBool
    """Whether the catalogue has figures for the VM size; without them the checks say little."""
    kind: Kind
    time: UtcTime
    verdict: RunVerdict
    checks: Annotated[list[Check], Field(max_length=2000)]
    engine: Word = ""
    boot_id: Word = ""
    physical_host: Word = ""
    """Empty where the node cannot know it."""
    duration_ms: Annotated[int, Field(strict=True, ge=0)] = 0
    reason: Text = ""

    @property
    def seconds(self) -> float:
        """The time of the run, in seconds since 1970 (UTC)."""
        return datetime.fromisoformat(self.time).timestamp()


FIELDS = frozenset(("node", "kind", "verdict", "checks"))
"""An object that has none of these is someone else's."""

_ADAPTER = TypeAdapter(NodeResult)


def validated(data: dict[str, Any]) -> NodeResult:
    """The typed result. Raises pydantic's ValidationError."""
    return _ADAPTER.validate_python(data)
